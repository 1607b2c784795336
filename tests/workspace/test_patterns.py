"""Patterns mean what they mean to git, and none of them takes long."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from archiver.workspace.defaults import MARKED, PATTERNS
from archiver.workspace.ignoring import own_rules
from archiver.workspace.patterns import PatternError, Patterns, rule
from workspace.trees import captured, kept

pieces = [
    "a",
    "b",
    "ab",
    "*",
    "**",
    "a*",
    "*b",
    "*a*b",
    "*a*a*",
    "?",
    "a?",
    "[ab]",
    "[!a]",
    "[a-c]b",
    "[[]",
    "a\\*",
]
steps = st.sampled_from(pieces)
patterns = st.builds(
    lambda no, top, parts, end: f"{no}{top}{'/'.join(parts)}{end}",
    st.sampled_from(["", "", "!"]), st.sampled_from(["", "", "/"]), st.lists(steps, min_size=1, max_size=4),
    st.sampled_from(["", "", "/"]),
)  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders three deep, with files whose names are those of folders and others."""
    root = tmp_path_factory.mktemp("patterns") / "root"
    for depth in range(4):
        for way in product(["a", "b", "ab"], repeat=depth):
            folder = root.joinpath(*way)
            folder.mkdir(parents=True)
            for name in ("ba", "bb", "a*", "aab") if depth == 3 else ("bb", "cb", "[", "aab\n"):
                (folder / name).touch()
    return root


def taken_by_git(root: Path, lines: list[str], place: Path) -> set[str]:
    place.write_text("".join(f"{line}\n" for line in lines))
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", f"--git-dir={place.parent / 'git'}", f"--work-tree={root}", "ls-files", "--others", "-z",
         f"--exclude-from={place}"],
        cwd=root, env=environment, capture_output=True, check=True,
    )  # fmt: skip
    return {os.fsdecode(path) for path in done.stdout.split(b"\0") if path}


@pytest.mark.skipif(shutil.which("git") is None, reason="git says what patterns mean")
@given(st.lists(patterns, min_size=1, max_size=5))
@example(["*", "!*/", "!bb"])
@example(["/*", "!/a/", "/a/*", "!/a/b"])
@example(["a/**", "!a/bb"])
@example(["**/a/**/b/**/ab"])
@example(["a[!x]b"])
@example(["a/"])
@example(["a/**/"])
@settings(
    max_examples=60, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
def test_they_take_what_git_takes(tree: Path, lines: list[str]) -> None:
    place = tree.parent / "exclude"
    if not (tree.parent / "git").exists():
        subprocess.run(["git", "init", "--quiet", "--bare", tree.parent / "git"], check=True)
    capture = captured(tree, ignore=tuple(lines), defaults=False)
    taken = {found.entry.path for found in capture.found if found.entry.type == "file"}
    assert taken == taken_by_git(tree, lines, place)


def verdict(lines: list[str], path: str, *, folder: bool = False) -> bool | None:
    rules = [found for line in lines if (found := rule(line)) is not None]
    return Patterns(rules).verdict(path, path.rpartition("/")[2], folder)


@pytest.mark.parametrize("line", ["foo", "*", "f*", "/foo", "?oo", "*o"])
def test_a_name_with_a_line_end_is_not_the_name_without(line: str) -> None:
    assert verdict([line], "foo")
    assert verdict([line], "foo\n") is (True if "*" in line and line != "*o" else None)


@pytest.mark.parametrize("line", ["x[!a]y", "x[+-9]y", "/x[^a]y"])
def test_a_set_takes_no_slash(line: str) -> None:
    assert verdict([line], "x/y") is None


@pytest.mark.parametrize("line", ["", "#comment", "  ", "/", "\\"])
def test_lines_that_are_no_pattern(line: str) -> None:
    if line == "\\":
        with pytest.raises(PatternError):
            rule(line)
    else:
        assert rule(line) is None


@pytest.mark.parametrize("line", ["a" * 1025, "[[:alpha:]]", "[z-a]", "x[a--b]", "a\\"])
def test_lines_that_cannot_be_used(line: str) -> None:
    with pytest.raises(PatternError):
        rule(line)


def test_no_pattern_takes_long() -> None:
    """Each of these takes the library's own expressions years."""
    lines = [
        f"{'*a' * 60}*b",
        f"{'[a-c]*' * 40}x",
        "/".join(["**", "a"] * 100) + "/x",
        f"**/{'*a' * 30}*b/**/c",
    ]
    name, way = "a" * 250, "/".join(["a"] * 250)
    before = time.process_time()
    for line in lines:
        for path in (name, way, f"{way}/{name}"):
            assert verdict([line], path) is None
    assert time.process_time() - before < 5


def test_defaults_ignore_what_a_command_makes_again(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for path in ("node_modules/x", "deep/node_modules/x", ".venv/bin/python", "a/__pycache__/m.pyc"):
        (root / path).parent.mkdir(parents=True)
        (root / path).touch()
    for path in (".DS_Store", ".main.py.swp", "main.py", "main.swp", "build", "deep/dist"):
        (root / path).touch()
    (root / ".#main.py").symlink_to("someone@host")
    saved = kept(root, tmp_path / "objects")
    assert saved.paths == ["a", "build", "deep", "deep/dist", "main.py", "main.swp"]
    assert saved.capture.ignored.count == 7
    assert saved.capture.skipped == []
    assert len(kept(root, tmp_path / "objects", defaults=False).entries) == 18


def test_a_name_that_is_also_used_for_work_needs_a_witness(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for path in (
        "crate/target/debug/a",
        "shots/target/enemy",
        "venv/bin/python",
        "street/venv/map",
        "env/prod",
    ):
        (root / path).parent.mkdir(parents=True)
        (root / path).touch()
    (root / "crate" / "Cargo.toml").touch()
    (root / "venv" / "pyvenv.cfg").touch()
    paths = kept(root, tmp_path / "objects").paths
    assert paths == [
        "crate", "crate/Cargo.toml", "env", "env/prod", "shots", "shots/target", "shots/target/enemy",
        "street",
        "street/venv", "street/venv/map",
    ]  # fmt: skip
    assert "crate/target/debug/a" in kept(root, tmp_path / "objects", ignore=("!target/",)).paths


def test_each_default_has_a_reason_and_fits_something() -> None:
    for default in PATTERNS:
        assert default.why
        assert rule(default.pattern) is not None
    for marked in MARKED:
        assert marked.why
    assert len({default.pattern for default in PATTERNS}) == len(PATTERNS)


def test_the_history_of_a_repository_is_left_out_with_a_word(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "clone" / ".git").mkdir(parents=True)
    (root / "clone" / ".git" / "HEAD").touch()
    (root / "clone" / "main.py").touch()
    (root / "module").mkdir()
    (root / "module" / ".git").write_text("gitdir: ../.git/modules/module\n")
    saved = kept(root, tmp_path / "objects")
    assert saved.paths == ["clone", "clone/main.py", "module", "module/.git"]
    assert saved.skipped == {"clone/.git": "the history of a repository; only its files are carried"}
    assert "clone/.git/HEAD" in kept(root, tmp_path / "objects", include=(".git/",)).paths
    assert kept(root, tmp_path / "objects", ignore=(".git/",)).skipped == {}


def test_the_order_of_patterns(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "node_modules").mkdir(parents=True)
    for name in ("a.log", "b.log", "c.log"):
        (root / name).touch()
    (root / ".archiverignore").write_text("!node_modules/\n*.log\n")
    saved = kept(root, tmp_path / "objects", ignore=("!b.log",), include=("c.log",))
    assert saved.paths == [".archiverignore", "b.log", "c.log", "node_modules"]


def test_files_of_git_are_not_looked_at(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / ".gitignore").write_text("*\n")
    (root / "result").touch()
    assert kept(root, tmp_path / "objects").paths == [".gitignore", "result"]


def test_includes_reach_into_ignored_folders_by_name(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for path in (
        "node_modules/mine/src/a", "node_modules/mine/node_modules/b", "node_modules/other/c",
        "node_modules/d.patch",
        "vendor/x/y/patches/e", "vendor/x/f",
    ):  # fmt: skip
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    include = ("node_modules/mine/", "vendor/**/patches/", "*.patch", "!node_modules/mine/src/")
    saved = kept(root, tmp_path / "objects", ignore=("vendor/",), include=include)
    assert saved.paths == [
        "node_modules", "node_modules/d.patch", "node_modules/mine", "node_modules/mine/node_modules",
        "node_modules/mine/node_modules/b", "node_modules/mine/src", "node_modules/mine/src/a", "vendor",
        "vendor/x",
        "vendor/x/y", "vendor/x/y/patches", "vendor/x/y/patches/e",
    ]  # fmt: skip


def test_a_name_alone_opens_no_ignored_folder(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "node_modules").mkdir(parents=True)
    (root / "node_modules" / "d.patch").touch()
    assert kept(root, tmp_path / "objects", include=("*.patch",)).paths == []


def test_lines_of_the_own_file_that_do_not_count_are_told(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / ".archiverignore").write_bytes(b"# mine\r\n[z-a]\n\n*.log\r\n\xff\n")
    (root / "a.log").touch()
    saved = kept(root, tmp_path / "objects")
    assert saved.paths == [".archiverignore"]
    assert saved.skipped == {".archiverignore": "its line 2 does not count: it is not well formed"}
    rules, problems = own_rules(b"a\n" * 600)
    assert len(rules) == 512
    assert problems == ["its line 513 and those after it do not count: 512 came before"]


@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "large"])
def test_an_own_file_that_is_none_is_told(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    own = root / ".archiverignore"
    if kind == "folder":
        own.mkdir()
    elif kind == "pipe":
        os.mkfifo(own)
    elif kind == "link":
        (tmp_path / "outside").write_text("*\n")
        own.symlink_to(tmp_path / "outside")
    else:
        own.write_bytes(b"*\n" * 200_000)
    (root / "work").touch()
    saved = kept(root, tmp_path / "objects")
    assert "work" in saved.paths
    assert any(one.reason.startswith("its patterns do not count") for one in saved.capture.skipped)
