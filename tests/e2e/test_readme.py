"""What the README and the demo say is what happens."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from inside import command
from servers.seaweed import Seaweed

from archiver.age import generate
from archiver.archive import Source, archive
from archiver.setup import Setup

from .scanning import token

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> str:
    work = tmp_path_factory.mktemp("demo") / "run"
    done = subprocess.run(
        ["sh", str(ROOT / "examples" / "demo.sh"), str(BIN), str(work)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_demo_shows_the_whole_way(demo: str) -> None:
    for said in (
        "github-token (2)",  # what was redacted
        "git_commit\tSTALE",  # what is stale
        "(exit 3: something is stale)",
        "repaired\t1 place",
        "claude --resume",
        "A key beside its store protects nothing",
        "REPORT.md",
    ):
        assert said in demo


def test_the_walk_through_of_the_readme_is_that_of_the_demo(demo: str) -> None:
    lines = re.findall(r"^    (.+)$", README.split("## A restore, step by step")[1].split("\n## ")[0], re.M)
    commands = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    assert len(commands) == 4
    script = (ROOT / "examples" / "demo.sh").read_text(encoding="utf-8")
    ran = [shlex.split(line[2:]) for line in demo.splitlines() if line.startswith("$ ")]
    for line in commands:
        words = shlex.split(line)
        if words[0] == "sed":
            assert words[1:3] == ["-n", "/^## Next/,$p"]
            assert "sed -n '/^## Next/,$p'" in script
            continue
        assert any(_same(words, other) for other in ran), line
    shown = [line for line in lines if not line.startswith("$ ")]
    assert len(shown) > 15
    for line in shown:
        assert re.search(rf"^ *{_sample(line)}$", demo, re.M), line


def _sample(line: str) -> str:
    """A pattern for what a line of the walk-through shows, whatever the folder, the commit and the hour."""
    pattern = re.escape(line).replace("…", ".*")
    pattern = re.sub(r"(\\?[-/])srv\1price\\-feed", r"\\S+", pattern)
    pattern = re.sub(r"\b[0-9a-f]{12}\b", "[0-9a-f]{12}", pattern)
    return re.sub(r"\d+\\ (minutes|hours)", r"\\d+\\ (minutes|hours)", pattern)


def _same(words: list[str], other: list[str]) -> bool:
    """Whether two commands are the same but for the folders that their paths lie in."""
    return [word.rsplit("/", 1)[-1] for word in words] == [word.rsplit("/", 1)[-1] for word in other]


def test_the_demo_ends_with_the_session_where_its_harness_looks_for_it(demo: str) -> None:
    go_on = demo.split("# Go on:")[1]
    assert re.search(r"^    cd \S+ && claude --resume (\S+)$", go_on, re.M)
    assert re.search(r"^\.claude/projects/\S+/7d1f2c9e-[0-9a-f-]+\.jsonl$", go_on, re.M)


def test_the_commands_before_an_incident_of_the_readme_run(
    tmp_path: Path, config: Path, setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = tmp_path / "session.jsonl"
    shutil.copy(next((ROOT / "examples" / "sample-run").glob("*.jsonl")), session)
    archive(Source(paths=(session,)), setup)
    monkeypatch.setenv("ARCHIVER_CONFIG", str(config))
    section = README.split("## Before there is an incident")[1].split("\n## ")[0]
    commands = [shlex.split(line, comments=True) for line in re.findall(r"^    (.+)$", section, re.M)]
    assert [words[1] for words in commands] == ["verify", "drill", "list", "audit", "check", "repair"]
    monkeypatch.chdir(tmp_path)
    for program, *words in commands:
        assert program == "archiver"
        done = command(*words)
        # The sample ends in a call without a result: that is what check is for.
        assert done.code == (4 if words[0] == "check" else 0), (words, done)
    assert (tmp_path / "mended" / "session.jsonl").is_file()
    assert command("check", "mended/session.jsonl").code == 0


def test_the_library_call_of_the_readme_runs(
    tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = re.search(r"```python\n(.*?)```", README, re.S)
    assert code is not None
    monkeypatch.setenv("ARCHIVER_CONFIG", str(config))
    for _ in range(2):  # the second time it has succeeded, and nothing is done again
        done = subprocess.run([sys.executable, "-c", code[1]], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
    into = tmp_path / "out"
    restored = subprocess.run(
        [str(BIN / "restore"), "task-42", "--into", str(into)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert restored.returncode == 0, restored.stdout + restored.stderr
    assert "tests come next" in (into / "transcript" / "messages.jsonl").read_text(encoding="utf-8")


def test_the_commands_for_a_bucket_of_the_readme_run(
    s3_url: str, seaweed: Seaweed, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = README.split("## A store in a bucket")[1].split("\n## ")[0]
    commands = re.findall(r"^    (archiver .+?)(?:  +#.*)?$", section, re.M)
    assert len(commands) == 3
    monkeypatch.setenv("ARCHIVER_STORE__ENDPOINT_URL", seaweed.endpoint)
    here = {"s3://bucket/prefix": s3_url, "eu-central-1": "us-east-1", "age1…": str(generate().recipient)}
    for line in commands:
        done = command(*(here.get(word, word) for word in line.split()[1:]))
        assert done.code == 0, done
        assert "in one way only" not in done.out + done.err


def test_the_commands_for_files_of_the_readme_run(tmp_path: Path, home: Path) -> None:
    section = README.split("## Before a transcript leaves the house")[1].split("\n## ")[0]
    commands = re.findall(r"^    (archiver .+?)(?:  +#.*)?$", section, re.M)
    assert len(commands) == 2
    folder = tmp_path / "transcripts"
    folder.mkdir()
    (folder / "a.txt").write_text(f"token {token()}")
    for line, code in zip(commands, (1, 0), strict=True):
        words = line.split()
        done = subprocess.run(
            [BIN / words[0], *words[1:]], capture_output=True, text=True, timeout=120, cwd=tmp_path
        )
        assert done.returncode == code, done.stdout + done.stderr
    assert "[REDACTED:" in (tmp_path / "for-a-report" / "transcripts" / "a.txt").read_text()


def test_the_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^    make ([a-z]+)", README, re.M))
    assert targets >= {"demo", "test"}
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_every_link_of_the_readme_leads_somewhere() -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if not link.startswith("https://")]
    assert len(links) > 5
    for link in links:
        name, _, anchor = link.partition("#")
        assert (ROOT / name).exists(), link
        if anchor:
            headings = re.findall(r"^#+ (.+)$", (ROOT / name).read_text(), re.MULTILINE)
            assert anchor in {heading.lower().replace(" ", "-") for heading in headings}, link
