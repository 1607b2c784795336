"""One entry has one line, and nothing else is one."""

from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.errors import (
    ArchiveFormatError,
    LimitExceededError,
    NotSerialisableError,
    UnsupportedSchemaError,
)
from archiver.model.git_document import GitDocument
from archiver.model.workspace import (
    MAX_DOCUMENT,
    MAX_TREE_LINE,
    MAX_TREES,
    TreeEntry,
    WorkspaceDocument,
    check_tree_path,
    object_member,
    path_bytes,
    tree_member,
)
from archiver.workspace.tree import read_tree

DIGEST = "0f" * 32
FILE = TreeEntry("a/b", "file", 0o644, 5, 7, DIGEST)

parts = st.binary(min_size=1, max_size=9).filter(
    lambda part: b"/" not in part and b"\0" not in part and part not in (b".", b"..")
)
paths = st.lists(parts, min_size=1, max_size=4).map(
    lambda found: b"/".join(found).decode("utf-8", "surrogateescape")
)
moments = st.integers(-(2**63), 2**63 - 1)
modes = st.integers(0, 0o777)
entries = st.one_of(
    st.builds(
        TreeEntry, paths, st.just("file"), modes, moments, st.integers(0, 2**63 - 1),
        st.binary(min_size=32, max_size=32).map(bytes.hex), st.none(), st.booleans(),
    ),
    st.builds(TreeEntry, paths, st.just("link"), modes, moments, target=paths),
    st.builds(TreeEntry, paths, st.sampled_from(["folder", "gone"]), modes, moments),
)  # fmt: skip


@given(entries)
def test_a_line_reads_back(entry: TreeEntry) -> None:
    line = entry.line()
    assert TreeEntry.parse(line) == entry
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1


@given(st.binary(max_size=60) | entries.map(TreeEntry.line), st.data())
def test_other_bytes_are_refused_or_say_the_same(line: bytes, data: st.DataObject) -> None:
    if line:
        place = data.draw(st.integers(0, len(line) - 1))
        line = line[:place] + data.draw(st.binary(max_size=2)) + line[place + 1 :]
    try:
        entry = TreeEntry.parse(line)
    except ArchiveFormatError as error:
        assert str(error).isprintable()
    else:
        assert entry.line() == line


def line(**changed: Any) -> bytes:
    value = {"path": "a", "type": "file", "mode": 420, "modified": 0, "size": 1, "sha256": DIGEST} | changed
    value = {key: item for key, item in value.items() if item is not ...}
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def test_the_sample_is_a_line() -> None:
    assert TreeEntry.parse(line()) == TreeEntry("a", "file", 0o644, 0, 1, DIGEST)


@pytest.mark.parametrize(
    "changed",
    [
        {"path": ""}, {"path": "/a"}, {"path": "a/"}, {"path": "a//b"}, {"path": "."}, {"path": "a/../b"},
        {"path": "a\0"}, {"path": 1}, {"path": "a" * 4097}, {"path": "/".join("a" * 257)},
        {"path": "\ud800"}, {"path": "\udc7f"}, {"path": "\udcc3\udca4"},
        {"type": "pipe"}, {"type": None}, {"mode": 0o1000}, {"mode": -1}, {"mode": True}, {"mode": 4.0},
        {"modified": 2**63}, {"modified": "0"}, {"modified": ...}, {"size": -1}, {"size": False},
        {"sha256": "0F" * 32}, {"sha256": "0f"}, {"sha256": ...}, {"sha256": None}, {"sha256": 1},
        {"target": "b"}, {"redacted": False}, {"redacted": 1}, {"more": 1}, {"size": ...},
        {"type": "folder"}, {"type": "folder", "sha256": ..., "size": ..., "redacted": True},
        {"type": "link", "sha256": ..., "size": ...},
        {"type": "link", "sha256": ..., "size": ..., "target": ""},
        {"type": "link", "sha256": ..., "size": ..., "target": "a\0"}, {"type": "gone", "size": 0},
    ],
)  # fmt: skip
def test_what_is_no_entry(changed: dict[str, Any]) -> None:
    with pytest.raises(ArchiveFormatError, match="no entry of a tree"):
        TreeEntry.parse(line(**changed))


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"\n", b"[]\n", b"null\n", b"{}\n", line()[:-1], line() + b"\n", b" " + line(),
        line().replace(b":", b": "), line(path="ä"), b"[" * 100_000 + b"\n", bytes(MAX_TREE_LINE + 1),
        line(path="\udcff", type="link", size=..., sha256=..., target="ä").replace(b"\\u00e4", "ä".encode()),
    ],
)  # fmt: skip
def test_what_is_not_written_in_the_one_form(raw: bytes) -> None:
    with pytest.raises(ArchiveFormatError):
        TreeEntry.parse(raw)


def test_the_longest_line_fits() -> None:
    worst = b"/".join([b"\xff" * 15] * 256).decode("utf-8", "surrogateescape")
    entry = TreeEntry(worst, "link", 0o777, -(2**63), target="\1" * 4096)
    assert len(entry.line()) <= MAX_TREE_LINE
    assert TreeEntry.parse(entry.line()) == entry


def test_a_file_without_digest_has_no_line() -> None:
    with pytest.raises(NotSerialisableError, match="has no digest"):
        TreeEntry("a", "file", 0o644, 0).line()


def test_names_of_members() -> None:
    assert tree_member(7) == "workspace/tree/0007.jsonl"
    assert object_member(DIGEST) == f"workspace/objects/{DIGEST}"


def test_paths_are_bytes() -> None:
    assert path_bytes(check_tree_path("\udcff/ä")) == b"\xff/\xc3\xa4"


DOCUMENT = WorkspaceDocument(kind="folder", root="/work", trees=(tree_member(0),), entries=3, bytes=9)


def test_the_document_reads_back() -> None:
    assert WorkspaceDocument.parse(DOCUMENT.raw) == DOCUMENT
    git = DOCUMENT.model_copy(update={"kind": "git", "git": GitDocument(head=None)})
    assert WorkspaceDocument.parse(git.raw) == git


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"kind":"folder"', b'"kind":"git"'), (b'"entries":3', b'"entries":-1'), (b"/0000.", b"/../0."),
        (b'"git":null', b'"git":{}'), (b'"git":null', b'"git": null'), (b'"root"', b'"more":1,"root"'),
    ],
)  # fmt: skip
def test_what_is_no_document(old: bytes, new: bytes) -> None:
    assert old in DOCUMENT.raw
    with pytest.raises(ArchiveFormatError, match=r"workspace\.json"):
        WorkspaceDocument.parse(DOCUMENT.raw.replace(old, new))


def test_a_document_that_no_reader_takes_is_known_as_such() -> None:
    assert DOCUMENT.is_readable
    assert DOCUMENT.model_copy(update={"trees": DOCUMENT.trees * MAX_TREES}).is_readable
    assert not DOCUMENT.model_copy(update={"trees": DOCUMENT.trees * (MAX_TREES + 1)}).is_readable
    assert not DOCUMENT.model_copy(update={"root": "x" * (MAX_DOCUMENT + 1)}).is_readable


def test_a_newer_document_is_refused_by_its_number() -> None:
    raw = DOCUMENT.raw.replace(b'"format":1', b'"format":2,"new":[]')
    with pytest.raises(UnsupportedSchemaError, match="format 2") as caught:
        WorkspaceDocument.parse(raw)
    assert "format 2" in (caught.value.remedy or "")


def members(place: Path, *groups: list[TreeEntry]) -> list[Path]:
    found = []
    for number, group in enumerate(groups):
        found.append(place / f"{number:04}.jsonl")
        found[-1].write_bytes(b"".join(entry.line() for entry in group))
    return found


def entry(path: str, kind: str = "file", **changed: Any) -> TreeEntry:
    if kind == "file":
        changed = {"sha256": DIGEST} | changed
    return TreeEntry(path, kind, 0o644, 0, **changed)  # type: ignore[arg-type]


def test_later_members_win_by_path(tmp_path: Path) -> None:
    old = [entry("a", size=1), entry("b", size=1), entry("d", size=1)]
    new = [entry("b", size=2), entry("c", size=2)]
    newest = [entry("c", "gone"), entry("d", "folder"), entry("d/e", size=3)]
    read = list(read_tree(members(tmp_path, old, new, newest), limit=5, git=True))
    assert read == [old[0], new[0], newest[0], newest[1], newest[2]]
    assert list(read_tree([], limit=0, git=True)) == []


@pytest.mark.parametrize(
    "group",
    [
        [entry("b"), entry("a")],
        [entry("a"), entry("a")],
        [entry("a"), entry("a-b"), entry("a/b")],
        [entry("a", "link", target="b"), entry("a/b/c")],
    ],
)
def test_lines_that_are_no_tree(tmp_path: Path, group: list[TreeEntry]) -> None:
    with pytest.raises(ArchiveFormatError):
        list(read_tree(members(tmp_path, group), limit=9, git=True))


def test_a_tree_over_the_limit(tmp_path: Path) -> None:
    with pytest.raises(LimitExceededError, match="more than 1 entries"):
        list(read_tree(members(tmp_path, [entry("a"), entry("b")]), limit=1, git=True))


def test_many_members_do_not_need_as_many_open_files(tmp_path: Path) -> None:
    groups = [[entry(f"{number:03}"), entry(f"z{number:03}")] for number in range(300)]
    lines = members(tmp_path, *groups)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(200, before[1]), before[1]))
    try:
        assert sum(1 for _ in read_tree(lines, limit=600, git=False)) == 600
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_lines_on_the_edge_of_what_is_read_at_once(tmp_path: Path) -> None:
    group = [entry(f"{number:05}") for number in range(2000)]
    assert list(read_tree(members(tmp_path, group), limit=2000, git=False)) == group


def test_a_member_without_line_ends_is_not_read_whole(tmp_path: Path) -> None:
    (tmp_path / "0000.jsonl").write_bytes(b" " * (1 << 20))
    with pytest.raises(ArchiveFormatError, match="has 65537 bytes, more than 65536"):
        list(read_tree([tmp_path / "0000.jsonl"], limit=9, git=True))


def test_a_line_that_is_gone_takes_an_older_one_back_in_a_folder_alone(tmp_path: Path) -> None:
    gone = [TreeEntry(path, "gone", 0, 0) for path in ("a", "never")]
    lines = members(tmp_path, [entry("a"), entry("b")], gone)
    assert [one.path for one in read_tree(lines, limit=1, git=False)] == ["b"]
    assert [one.type for one in read_tree(lines, limit=3, git=True)] == ["gone", "file", "gone"]


def test_what_lay_in_a_folder_that_is_a_file_now_is_gone(tmp_path: Path) -> None:
    old = [TreeEntry("a", "folder", 0o755, 1), entry("a/b")]
    new = [entry("a"), TreeEntry("a/b", "gone", 0, 0)]
    assert [one.type for one in read_tree(members(tmp_path, old, new), limit=9, git=False)] == ["file"]
