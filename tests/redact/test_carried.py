"""Files of a workspace: what is carried of them holds no credential, and is what was scanned."""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.model import LeftOut
from archiver.redact import Carried, CarriedRedactor, ExactValue, Redactor, carried, exact
from archiver.redact.finder import Finder
from archiver.scratch import Scratch
from tests.redact import corpus
from tests.redact.conftest import KEY
from tests.redact.containers import CONTAINERS, blocks, file
from tests.redact.support import expand

TOKEN = expand("ghp_{alnum:36}", 11)
SHARED = Path(os.environ.get("ARCHIVER_SHARED", Path(__file__).parents[3] / "shared")) / "corpora"


@pytest.fixture
def redactor(finder: Finder) -> Redactor:
    return Redactor(finder, KEY, ())


@pytest.fixture
def work(redactor: Redactor, scratch: Scratch) -> CarriedRedactor:
    return redactor.carried(scratch)


def content(made: Carried | LeftOut) -> bytes:
    """The carried bytes, which are what their digest says."""
    assert isinstance(made, Carried), made
    data = made.source if isinstance(made.source, bytes) else made.source.read_bytes()
    assert (hashlib.sha256(data).hexdigest(), len(data)) == (made.sha256, made.size)
    return data


def take(work: CarriedRedactor, path: str, data: bytes, size: int = 1 << 20) -> Carried | LeftOut:
    return work.file(file(path), blocks(data, size))


@pytest.mark.parametrize("kind", corpus.KINDS)
def test_every_kind_is_replaced_in_a_text(work: CarriedRedactor, kind: str) -> None:
    around, template = corpus.KINDS[kind]
    secret = expand(template, 5)
    text = f"# settings\nname = x\n{around.replace('{}', secret)}\nother = y\n"
    made = take(work, "src/settings.conf", text.encode())
    assert isinstance(made, Carried)
    assert made.redacted
    data = content(made).decode()
    assert all(row not in data for row in secret.split("\n") if "-----" not in row)
    assert data.startswith("# settings\nname = x\n")
    assert data.endswith("\nother = y\n")


@pytest.mark.parametrize("name", CONTAINERS)
def test_every_kind_keeps_a_container_out(finder: Finder, scratch: Scratch, name: str) -> None:
    redactor = Redactor(finder, KEY, ())
    work = redactor.carried(scratch)
    missed = []
    for kind, (around, template) in corpus.KINDS.items():
        line = around.replace("{}", expand(template, 6))
        made = take(work, "data/held", CONTAINERS[name](f"A=1\n{line}\nB=2\n".encode()), 50_000)
        if isinstance(made, Carried):
            missed.append(kind)
        else:
            assert "credentials" in made.reason
            assert made.rules
    assert missed == []


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_clean_container_is_carried_byte_for_byte(work: CarriedRedactor, name: str) -> None:
    data = CONTAINERS[name](b"\n".join(b"line %d of a text that holds nothing" % at for at in range(300)))
    made = take(work, "data/held", data)
    assert content(made) == data
    assert isinstance(made, Carried)
    assert not made.redacted


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no corpora at {SHARED}: set ARCHIVER_SHARED")
def test_planted_secrets_stay_where_they_are(finder: Finder, scratch: Scratch) -> None:
    cases = [case for case in json.loads((SHARED / "planted.json").read_text()) if case["enc"] == "plain"]
    assert len(cases) >= 50
    work = Redactor(finder, KEY, ()).carried(scratch)
    names = ["zip", "tar.gz", "gzip in zip", "SQLite", "SQLite, over pages", "object of git"]
    for case in cases:
        data, needle = case["text"].encode(), case["needle"].encode()
        made = take(work, "session.jsonl", data)
        assert needle not in content(made), case["rule"]
        for name in names:
            assert isinstance(take(work, "held", CONTAINERS[name](data)), LeftOut), (case["rule"], name)


def forms_of(value: bytes) -> list[bytes]:
    return [*exact.encodings(value), *exact.caseless_encodings(value)]


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_what_is_carried_holds_no_registered_value(finder: Finder, data: st.DataObject) -> None:
    value = data.draw(st.text(st.sampled_from('abcXYZ0189+/=&"\\% é'), min_size=14, max_size=40))
    value = f"q7{value.strip()}Z"
    forms = forms_of(value.encode())
    noise = st.binary(max_size=30).map(lambda raw: raw.hex().encode() + b"\n")
    parts = data.draw(st.lists(st.one_of(noise, st.sampled_from(forms)), min_size=1, max_size=6))
    joined = data.draw(st.sampled_from([b"\n", b" ", b'", "', b"\0"])).join(parts)
    pack = data.draw(st.sampled_from([None, *CONTAINERS.values()])) if b"\0" not in joined else None
    with Scratch() as scratch:
        work = Redactor(finder, KEY, (ExactValue("X", value),)).carried(scratch)
        made = take(work, "some/file", joined if pack is None else pack(joined))
        if any(form in joined for form in forms):
            assert isinstance(made, LeftOut) or (made.redacted and pack is None)
        if isinstance(made, Carried) and pack is None:
            carried_data = content(made)
            assert not any(form in carried_data for form in forms)


def test_a_value_told_by_a_later_file_is_replaced_in_an_earlier_one(
    redactor: Redactor, scratch: Scratch
) -> None:
    work = redactor.carried(scratch)
    word = expand("q{hex:20}Z", 5)
    texts = {
        "a.txt": f"the word is {word}\n".encode(),
        "a.json": json.dumps({"said": f"it is {word}"}, indent=1).encode(),
        "a.zip": CONTAINERS["gzip in zip"](f"the word is {word}\n".encode()),
        "long.txt": b"a line of text\n" * 400_000 + word.encode() + b"\n",
        "clean.txt": b"nothing\n",
        "told.txt": f"API_TOKEN={word}\n".encode(),
    }
    made = {path: take(work, path, data) for path, data in texts.items()}
    assert all(isinstance(one, Carried) for one in made.values())
    again = {path: work.again(file(path), one) for path, one in made.items() if isinstance(one, Carried)}
    assert again["clean.txt"] is made["clean.txt"]
    assert isinstance(again["a.zip"], LeftOut)
    for path in ("a.txt", "a.json", "long.txt", "told.txt"):
        assert word.encode() not in content(again[path])
    assert json.loads(content(again["a.json"]))["said"].startswith("it is [REDACTED:")
    assert content(again["long.txt"]).startswith(b"a line of text\n" * 400_000)
    settled = {path: work.again(file(path), one) for path, one in again.items() if isinstance(one, Carried)}
    assert settled == {path: one for path, one in again.items() if isinstance(one, Carried)}


def test_json_stays_json_and_a_transcript_keeps_its_seals(work: CarriedRedactor) -> None:
    document = json.dumps({"a": [1, {"password": "Kq7#xyz!w9Lm2"}], "b": f"x\n{TOKEN}"}, indent=2)
    changed = content(take(work, "conf.json", document.encode()))
    assert TOKEN.encode() not in changed
    assert json.loads(changed)["a"][0] == 1
    signature = expand("{b64:200}", 3)
    thought = {"type": "thinking", "thinking": "hm", "signature": signature}
    lines = [
        {"type": "user", "uuid": "1", "message": {"role": "user", "content": f"use {TOKEN}"}},
        {"type": "assistant", "uuid": "2", "message": {"role": "assistant", "content": [thought]}},
    ]
    session = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    changed = content(take(work, ".claude/session.jsonl", session))
    assert TOKEN.encode() not in changed
    assert signature.encode() in changed


def test_a_long_text_is_redacted_in_windows(work: CarriedRedactor) -> None:
    line = b"a line of text that says nothing\n"
    text = line * 200_000 + f"export GH={TOKEN}\n".encode() + line * 10
    made = take(work, "log.txt", text)
    assert isinstance(made, Carried)
    assert isinstance(made.source, Path)
    assert made.redacted
    data = content(made)
    assert TOKEN.encode() not in data
    assert data.startswith(line * 200_000)
    assert data.endswith(line * 10)


def one_after_the_other(*contents: bytes) -> Callable[[], Iterator[bytes]]:
    """Reads another content each time."""
    left = iter(contents)

    def read() -> Iterator[bytes]:
        yield from blocks(next(left))()

    return read


def test_a_long_binary_is_carried_only_as_it_was_scanned(
    redactor: Redactor, scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carried, "WHOLE", 100_000)
    work = redactor.carried(scratch)
    data = random.Random(4).randbytes(1_400_000)
    assert content(take(work, "a.bin", data, 77_777)) == data
    other = data[:-1] + bytes([data[-1] ^ 1])
    made = work.file(file("b.bin"), one_after_the_other(data, other))
    assert isinstance(made, LeftOut)
    assert "changed" in made.reason
    for changed in (data + b"x", data[:-1]):
        assert isinstance(work.file(file("c.bin"), one_after_the_other(data, changed)), LeftOut)
    assert isinstance(take(work, "d.bin", data + b"\0" + TOKEN.encode() + b"\0"), LeftOut)
    assert {path.name for path in scratch.path.iterdir()} == {".scratch", "00001-object"}


@pytest.mark.parametrize("size", [1_000, carried.WHOLE + 2_000_000])
def test_a_file_that_cannot_be_read_leaves_nothing(redactor: Redactor, scratch: Scratch, size: int) -> None:
    def broken() -> Iterator[bytes]:
        yield b"a line of text\n" * (size // 15)
        raise OSError("gone")

    work = redactor.carried(scratch)
    with pytest.raises(OSError, match="gone"):
        work.file(file("a"), broken)
    assert [path.name for path in scratch.path.iterdir()] == [".scratch"]
    assert redactor.receipt().left_out == ()


def test_a_name_with_a_credential_is_left_out_and_not_shown(
    redactor: Redactor, work: CarriedRedactor
) -> None:
    for made in (take(work, f"logs/{TOKEN}.txt", b"x"), work.name(f"logs/{TOKEN}"), work.name(f"{TOKEN}/x")):
        assert isinstance(made, LeftOut)
        assert TOKEN not in made.member
        assert made.rules == ("github-token",)
    assert TOKEN not in redactor.receipt().model_dump_json()
    assert work.name("logs/plain.txt") is None


def test_names_of_any_bytes_are_taken(redactor: Redactor, work: CarriedRedactor) -> None:
    name = os.fsdecode(b"a\nb \xff\xfe\x1b[31m")
    assert content(take(work, name, b"text")) == b"text"
    assert isinstance(take(work, name, CONTAINERS["zip"](TOKEN.encode())), LeftOut)
    [left] = redactor.receipt().left_out
    assert left.member.isprintable()
    assert os.fsencode(work.target(name)) == os.fsencode(name)
    assert TOKEN not in work.target(f"/x/{TOKEN}/y")


def test_the_same_content_is_scanned_once(redactor: Redactor, work: CarriedRedactor) -> None:
    first = take(work, "a.txt", b"some text\n" * 100)
    assert take(work, "b/a.txt", b"some text\n" * 100) is first


def test_few_files_stay_in_memory(work: CarriedRedactor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carried, "MOST_HELD", 5_000)
    made = [take(work, f"{at}.txt", b"%d" % at * 1_000) for at in range(10)]
    kinds = [type(one.source) for one in made if isinstance(one, Carried)]
    assert kinds.count(bytes) == 5
    for at, one in enumerate(made):
        assert content(one) == b"%d" % at * 1_000
    private = [one.source for one in made if isinstance(one, Carried) and isinstance(one.source, Path)]
    assert all(path.stat().st_nlink == 1 for path in private)


def test_the_receipt_names_some_files_and_counts_the_rest(
    redactor: Redactor, work: CarriedRedactor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carried, "MOST_NAMED", 3)
    for at in range(8):
        take(work, f"{at}/id_rsa", b"x")
    left = redactor.receipt().left_out
    assert [one.member for one in left] == ["0/id_rsa", "1/id_rsa", "2/id_rsa", "(other files)"]
    assert left[-1].reason == "5 more files are not carried"


def test_nothing_of_a_finding_is_in_the_receipt(redactor: Redactor, work: CarriedRedactor) -> None:
    take(work, "a.txt", f"export GH={TOKEN}\n".encode())
    take(work, f"{TOKEN}.zip", CONTAINERS["zip"](TOKEN.encode()))
    take(work, "a.zip", CONTAINERS["zip"](TOKEN.encode()))
    receipt = redactor.receipt()
    assert TOKEN not in receipt.model_dump_json()
    [finding] = [one for one in receipt.findings if one.rule == "github-token"]
    assert "a.txt line 1" in finding.places
