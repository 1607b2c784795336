"""The last scan of a workspace: what was scanned is not scanned again, and nothing is missed by that."""

from __future__ import annotations

import gzip
import hashlib
from typing import Any

import pytest

from archiver import jsonio
from archiver.model import Member, Receipt
from archiver.redact import Carried, ExactValue, Redactor
from archiver.redact.finder import Finder
from archiver.redacted import vouch
from archiver.scratch import Scratch
from tests.redact.conftest import KEY
from tests.redact.containers import blocks, file
from tests.redact.support import expand

TOKEN = expand("ghp_{alnum:36}", 31)
WORKSPACE = "workspace/workspace.json"
TREE = "workspace/tree/0001.jsonl"


class Watched(Finder):
    """A finder that counts the bytes it scans."""

    def __init__(self, finder: Finder) -> None:
        self.__dict__.update(finder.__dict__)
        self.scanned = 0

    def hits(self, data: bytes, *between: bytes) -> Any:
        self.scanned += len(data)
        return super().hits(data, *between)


@pytest.fixture
def watched(finder: Finder) -> Watched:
    return Watched(finder)


def member(path: str, data: bytes) -> Member:
    return Member(path, data, len(data), hashlib.sha256(data).hexdigest())


def content_member(data: bytes) -> Member:
    return member(f"workspace/objects/{hashlib.sha256(data).hexdigest()}", data)


def scan(redactor: Redactor, scratch: Scratch, *members: Member) -> tuple[Member, ...]:
    return redactor.members(vouch(members, Receipt()), scratch).value


def carried(redactor: Redactor, scratch: Scratch, path: str, data: bytes) -> Member:
    made = redactor.carried(scratch).file(file(path), blocks(data))
    assert isinstance(made, Carried)
    return Member(f"workspace/objects/{made.sha256}", made.source, made.size, made.sha256)


def test_what_was_carried_is_not_scanned_again(watched: Watched, scratch: Scratch) -> None:
    redactor = Redactor(watched, KEY, ())
    text = b"a line of text\n" * 20_000
    kept = carried(redactor, scratch, "a.txt", text)
    before = watched.scanned
    assert before >= len(text)
    assert scan(redactor, scratch, kept) == (kept,)
    assert watched.scanned - before < 1_000
    other = content_member(text + b"more\n")
    assert scan(redactor, scratch, other) == (other,)
    assert watched.scanned - before > len(text)


def test_a_finding_in_what_was_not_carried_leaves_it_out(finder: Finder, scratch: Scratch) -> None:
    redactor = Redactor(finder, KEY, ())
    bad = content_member(f"it is {TOKEN}\n".encode())
    good = content_member(b"text\n")
    assert scan(redactor, scratch, bad, good) == (good,)
    [left] = redactor.receipt().left_out
    assert left.member == bad.path
    # The digest of another content vouches for nothing.
    kept = carried(redactor, scratch, "a.txt", b"text\n")
    liar = Member(kept.path, f"it is {TOKEN}\n".encode(), 47, "0" * 64)
    assert scan(redactor, scratch, liar) == ()


def test_what_became_known_later_is_searched_for(finder: Finder, scratch: Scratch) -> None:
    redactor = Redactor(finder, KEY, ())
    word = expand("q{hex:20}Z", 5)
    first = carried(redactor, scratch, "a.txt", f"so {word}\n".encode())
    packed = carried(redactor, scratch, "a.gz", gzip.compress(f"so {word}\n".encode()))
    clean = carried(redactor, scratch, "b.txt", b"text\n")
    assert scan(redactor, scratch, first, packed, clean) == (first, packed, clean)
    redactor.text(f"API_TOKEN={word}\n")
    assert scan(redactor, scratch, first, packed, clean) == (clean,)
    assert {left.member for left in redactor.receipt().left_out} == {first.path, packed.path}


def test_what_only_the_last_scan_finds_is_searched_for_in_all(finder: Finder, scratch: Scratch) -> None:
    redactor = Redactor(finder, KEY, ())
    word = expand("q{hex:20}Z", 5)
    first = carried(redactor, scratch, "a.txt", f"so {word}\n".encode())
    late = member("other.txt", f"API_TOKEN={word}\n".encode())
    kept = scan(redactor, scratch, first, late)
    assert [one.path for one in kept] == ["other.txt"]


def tree_line(path: str, **fields: Any) -> bytes:
    line = {"path": path, "type": "file", "mode": 0o644, "modified": 1, "size": 5, **fields}
    return jsonio.canonical(line) + b"\n"


def test_digests_and_ids_stay_while_paths_and_texts_are_scanned(finder: Finder, scratch: Scratch) -> None:
    sha, oid = expand("{hex:64}", 3), expand("{hex:40}", 4)
    word = expand("q{hex:20}Z", 5)
    odd = b"\xff\n".decode("utf-8", "surrogateescape")
    tree = b"".join(
        (
            tree_line("config/token", sha256=sha),
            tree_line(f"logs/{TOKEN}", sha256=sha),
            tree_line(f"api_key={odd}", sha256=sha),
            tree_line("link", type="link", target=f"/x/{TOKEN}"),
        )
    )
    document = {
        "format": 1,
        "root": f"/home/{TOKEN}",
        "git": {
            "head": oid,
            "base": oid,
            "prerequisites": [oid],
            "commit_refs": {"refs/heads/token": oid},
            "staged": [{"path": "secret", "mode": "100644", "sha256": sha, "stage": 0}],
            "submodules": [{"path": "password", "commit": oid}],
            "in_progress_files": [{"name": "MERGE_MSG", "text": f"use {TOKEN}\nAPI_TOKEN={word}\n"}],
        },
    }
    redactor = Redactor(finder, KEY, ())
    given = (member(WORKSPACE, jsonio.canonical(document)), member(TREE, tree))
    made, lines = scan(redactor, scratch, *given)
    text = made.source if isinstance(made.source, bytes) else made.source.read_bytes()
    assert TOKEN.encode() not in text
    assert word.encode() not in text
    changed = jsonio.loads(text)
    before = {**document, "root": changed["root"]}
    before["git"]["in_progress_files"] = changed["git"]["in_progress_files"]  # type: ignore[index]
    assert changed == before
    text = lines.source if isinstance(lines.source, bytes) else lines.source.read_bytes()
    assert TOKEN.encode() not in text
    entries = [jsonio.loads(line) for line in text.splitlines()]
    assert [entry.get("sha256") for entry in entries] == [sha, sha, sha, None]
    assert entries[0] == jsonio.loads(tree.splitlines()[0])
    assert entries[2] == jsonio.loads(tree.splitlines()[2])


def test_an_id_that_is_a_known_value_is_replaced_all_the_same(finder: Finder, scratch: Scratch) -> None:
    oid = expand("{hex:40}", 4)
    redactor = Redactor(finder, KEY, (ExactValue("X", oid),))
    [made] = scan(redactor, scratch, member(WORKSPACE, jsonio.canonical({"git": {"head": oid}})))
    text = made.source if isinstance(made.source, bytes) else made.source.read_bytes()
    assert oid.encode() not in text
