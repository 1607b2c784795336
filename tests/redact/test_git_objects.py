"""Objects of git are scanned before they are packed, and a bundle is carried only with the proof of it."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator

import pytest

from archiver.model import Member, Receipt
from archiver.redact import ExactValue, GitObject, Redactor, Refusal, ScannedObjects, objects
from archiver.redact.finder import Finder
from archiver.redacted import Redacted, vouch
from archiver.scratch import Scratch
from tests.redact import corpus
from tests.redact.conftest import KEY
from tests.redact.containers import over_pages
from tests.redact.support import expand

TOKEN = expand("ghp_{alnum:36}", 21)
COMMITS = "workspace/git/commits.bundle"


@pytest.fixture
def redactor(finder: Finder) -> Redactor:
    return Redactor(finder, KEY, ())


def obj(kind: str, content: bytes, algorithm: str = "sha1") -> GitObject:
    oid = hashlib.new(algorithm, b"%s %d\0" % (kind.encode(), len(content)) + content).hexdigest()
    return oid, kind, len(content), content


def tree(*entries: tuple[str, str, GitObject], algorithm: str = "sha1") -> GitObject:
    lines = (
        b"%s %s\0%s" % (mode.encode(), name.encode(), bytes.fromhex(one[0])) for mode, name, one in entries
    )
    return obj("tree", b"".join(lines), algorithm)


def commit(of: GitObject, message: str = "Say more", algorithm: str = "sha1") -> GitObject:
    head = f"tree {of[0]}\nauthor A <a@b.example> 1 +0000\ncommitter A <a@b.example> 1 +0000\n\n{message}\n"
    return obj("commit", head.encode(), algorithm)


def history(data: bytes, name: str = "settings.py", algorithm: str = "sha1") -> list[GitObject]:
    """A commit with one file below a folder, in the order in which git lists them."""
    blob = obj("blob", data, algorithm)
    inner = tree(("100644", name, blob), algorithm=algorithm)
    top = tree(("40000", "src", inner), ("160000", "module", blob), algorithm=algorithm)
    return [commit(top, algorithm=algorithm), top, inner, blob]


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_clean_objects_give_a_proof(redactor: Redactor, algorithm: str) -> None:
    made = redactor.git_objects(iter(history(b"print('hello')\n", algorithm=algorithm)))
    assert isinstance(made, ScannedObjects)
    assert made.objects == 4
    assert redactor.receipt().left_out == ()


@pytest.mark.parametrize("kind", corpus.KINDS)
def test_every_kind_is_found_in_a_file_of_a_commit(redactor: Redactor, kind: str) -> None:
    around, template = corpus.KINDS[kind]
    text = f"begin = 1\n{around.replace('{}', expand(template, 8))}\nend = 1\n".encode()
    for data in (text, gzip.compress(text)):
        made = redactor.git_objects(history(data))
        assert isinstance(made, Refusal), kind
        [finding] = made.findings
        assert (finding.type, finding.path) == ("blob", "src/settings.py")
        assert finding.rules


def test_a_refusal_is_in_the_receipt_and_shows_nothing(redactor: Redactor) -> None:
    made = redactor.git_objects(history(f"key = '{TOKEN}'\n".encode()))
    assert isinstance(made, Refusal)
    receipt = redactor.receipt()
    [left] = receipt.left_out
    assert (left.member, left.rules) == (COMMITS, ("github-token",))
    assert "src/settings.py" in left.reason
    assert TOKEN not in receipt.model_dump_json()
    assert [finding.rule for finding in receipt.findings] == ["github-token"]


def test_messages_tags_and_names_are_looked_at(redactor: Redactor) -> None:
    blob = obj("blob", b"x")
    plain = tree(("100644", "a", blob))
    for one, kind in (
        (commit(plain, f"Use {TOKEN}"), "commit"),
        (obj("tag", f"object {plain[0]}\ntype commit\ntag v1\n\nit is {TOKEN}\n".encode()), "tag"),
        (tree(("100644", f"{TOKEN}.txt", blob)), "tree"),
    ):
        made = redactor.git_objects([one])
        assert isinstance(made, Refusal)
        assert [finding.type for finding in made.findings] == [kind]


def test_files_of_credentials_and_what_cannot_be_looked_into_refuse(redactor: Redactor) -> None:
    settings = history(b"PORT=8080\n", ".env")
    for order in (settings, settings[::-1]):
        made = redactor.git_objects(order)
        assert isinstance(made, Refusal)
        assert "a file of credentials" in made.findings[0].reason
    assert isinstance(redactor.git_objects(settings, credentials="redact"), ScannedObjects)
    assert isinstance(redactor.git_objects(history(b"PORT=8080\n", ".env.example")), ScannedObjects)
    # A folder may be called so, and what a tree names need not travel.
    inner = tree(("40000", ".env", tree()), ("100644", ".npmrc", obj("blob", b"")))
    assert isinstance(redactor.git_objects([inner, tree()]), ScannedObjects)
    assert isinstance(redactor.git_objects(settings[:3]), ScannedObjects)
    made = redactor.git_objects(history(b"7z\xbc\xaf\x27\x1c" + bytes(90)))
    assert isinstance(made, Refusal)
    assert "7z" in made.findings[0].reason
    assert isinstance(redactor.git_objects(history(over_pages(TOKEN.encode()))), Refusal)


def test_damaged_objects_refuse(redactor: Redactor) -> None:
    good = obj("blob", b"x")
    for bad in (
        ("zz", *good[1:]),
        (good[0], "blob", 2, b"x"),
        (good[0], "other", 1, b"x"),
        obj("tree", b"100644 a\0short"),
        obj("tree", b"no entry at all"),
    ):
        made = redactor.git_objects([bad])
        assert isinstance(made, Refusal), bad
        assert made.findings[0].reason == "it is damaged"


def test_it_ends_after_some_findings_and_some_objects(
    redactor: Redactor, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = 0

    def many() -> Iterator[GitObject]:
        nonlocal taken
        for taken in range(1, 10_000):
            yield obj("blob", f"key = '{TOKEN}' # {taken}\n".encode())

    made = redactor.git_objects(many())
    assert isinstance(made, Refusal)
    assert taken == len(made.findings) == objects.MOST_FINDINGS
    monkeypatch.setattr(objects, "MOST_OBJECTS", 5)
    made = redactor.git_objects(obj("blob", b"%d" % at) for at in range(9))
    assert isinstance(made, Refusal)
    assert made.reason == "there are more commits than are looked into"
    monkeypatch.setattr(objects, "MOST_OBJECTS", 5_000)
    monkeypatch.setattr(objects, "MOST_BYTES", 100)
    assert isinstance(redactor.git_objects(obj("blob", b"%d" % at * 60) for at in range(9)), Refusal)


def members(*given: Member) -> Redacted[tuple[Member, ...]]:
    return vouch(given, Receipt())


def test_a_bundle_is_carried_with_its_proof_alone(finder: Finder, scratch: Scratch) -> None:
    bundle = b"# v2 git bundle\n" + bytes(50)
    member = Member(COMMITS, bundle, len(bundle), hashlib.sha256(bundle).hexdigest())
    bare = Redactor(finder, KEY, ())
    assert bare.members(members(member), scratch).value == ()
    assert bare.receipt().left_out[0].member == COMMITS
    proved = Redactor(finder, KEY, ())
    made = proved.git_objects(history(b"x"))
    assert isinstance(made, ScannedObjects)
    proved.accept_commits(made, member.sha256)
    assert proved.members(members(member), scratch).value == (member,)
    other = Member(COMMITS, b"other", 5, hashlib.sha256(b"other").hexdigest())
    assert proved.members(members(other), scratch).value == ()
    proved.learn([ExactValue("LATE", "what became known later")])
    assert proved.members(members(member), scratch).value == ()
    assert "by now" in proved.receipt().left_out[-1].reason
