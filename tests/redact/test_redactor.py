"""The face of redaction over whole transcripts, checkpoints and members."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from archiver.errors import RedactionUnavailableError, UsageError
from archiver.model import (
    Artifact,
    Checkpoint,
    Effect,
    Environment,
    Evidence,
    Items,
    Member,
    Transcript,
    TranscriptPart,
    Workspace,
)
from archiver.redact import ExactValue, Redactor, exact_from_environment, is_placeholder, raw
from archiver.redact.inflate import Allowance, InflateLimits, inflater_for
from archiver.redacted import Redacted
from archiver.scratch import Scratch
from tests.redact.conftest import KEY
from tests.redact.support import expand

TOKEN = expand("ghp_{alnum:36}", 3)
VALUE = expand("{alnum:11}7{alnum:11}4Q", 3)
NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
def redactor(cache_folder: Path) -> Redactor:
    return Redactor.load(KEY)


def _part(*values: Any, name: str = "main.jsonl") -> TranscriptPart:
    return TranscriptPart(name=name, items=Items.of(values))


def _raw(data: bytes, *, chunk: int = 1 << 20, name: str = "notes.md") -> TranscriptPart:
    chunks = [data[at : at + chunk] for at in range(0, len(data), chunk)]
    return TranscriptPart(name=name, media="raw", items=Items.of_chunks(chunks))


def _content(part: TranscriptPart) -> bytes:
    return b"".join(part.items.blocks())


def _transcript(redactor: Redactor, scratch: Scratch, *parts: TranscriptPart) -> Redacted[Transcript]:
    return redactor.transcript(Transcript(parts=parts), scratch)


def _members(redactor: Redactor, scratch: Scratch, *members: Member) -> dict[str, bytes]:
    proof = _transcript(redactor, scratch)
    made = redactor.members(proof.derive(lambda _: members), scratch).value
    return {m.path: m.source if isinstance(m.source, bytes) else m.source.read_bytes() for m in made}


def _member(path: str, data: bytes) -> Member:
    return Member(path, data, len(data), "0" * 64)


def test_a_value_found_late_is_replaced_where_it_stood_before(redactor: Redactor, scratch: Scratch) -> None:
    part = _part({"t": f"bare {VALUE} here"}, {"t": "x"}, {"t": f"API_TOKEN={VALUE}"})
    redacted = _transcript(redactor, scratch, part)
    first, second, third = redacted.value.parts[0].items.values()
    assert is_placeholder(first["t"].split()[1])
    assert third["t"] == f"API_TOKEN={first['t'].split()[1]}"
    assert second == {"t": "x"}
    assert redacted.value.parts[0].items.count == 3
    [finding] = redacted.receipt.findings
    assert (finding.rule, finding.count) == ("assigned-secret", 2)
    assert finding.places == ("transcript main.jsonl line 3 $.t", "transcript main.jsonl line 1 $.t")


def test_the_receipt_holds_no_value_and_no_hash_without_a_key(redactor: Redactor, scratch: Scratch) -> None:
    part = _part({TOKEN: {"deep": f"password={VALUE}"}}, name=f"session-{TOKEN}.jsonl")
    redacted = _transcript(redactor, scratch, part)
    text = redacted.receipt.model_dump_json() + redacted.value.parts[0].name
    assert TOKEN not in text
    assert VALUE not in text
    other = Redactor.load(b"j" * 32)
    assert {f.fingerprint for f in _transcript(other, scratch, part).receipt.findings}.isdisjoint(
        f.fingerprint for f in redacted.receipt.findings
    )


def test_common_words_found_as_passwords_are_not_searched_for(redactor: Redactor, scratch: Scratch) -> None:
    part = _part({"t": "machine h login u password letmein"}, {"t": "they said letmein to us"})
    redacted = _transcript(redactor, scratch, part)
    first, second = redacted.value.parts[0].items.values()
    assert "letmein" not in first["t"]
    assert second["t"] == "they said letmein to us"


def test_headers_and_names_are_redacted(redactor: Redactor, scratch: Scratch) -> None:
    part = TranscriptPart(
        name="doc.json",
        media="json",
        header={"system": f"use {TOKEN}", "n": 1},
        items=Items.of([{"t": TOKEN}]),
    )
    made = _transcript(redactor, scratch, part).value.parts[0]
    assert made.header == {"system": f"use {next(iter(made.items.values()))['t']}", "n": 1}


@pytest.mark.parametrize("chunk", [7, 4096, 1 << 20])
def test_raw_text_is_redacted_in_place(redactor: Redactor, scratch: Scratch, chunk: int) -> None:
    text = (
        f"# notes\n\n  TOKEN={TOKEN}\n"
        + json.dumps({"a": f"x\n{VALUE}", "p": {"password": VALUE}})
        + "\nend é\n"
    )
    made = _content(_transcript(redactor, scratch, _raw(text.encode(), chunk=chunk)).value.parts[0]).decode()
    assert TOKEN not in made
    assert VALUE not in made
    assert made.startswith("# notes\n\n  TOKEN=[REDACTED:github-token:")
    assert made.endswith("\nend é\n")
    assert is_placeholder(json.loads(made.splitlines()[3])["p"]["password"])


def test_pretty_printed_json_with_escapes_is_redacted(redactor: Redactor, scratch: Scratch) -> None:
    escaped = "".join(f"\\u{ord(char):04x}" for char in TOKEN)
    text = json.dumps({"a": ["x"], "b": "MARK", "password": VALUE}, indent=2).replace(
        "MARK", f"é\\n{escaped}\\/"
    )
    made = _content(_transcript(redactor, scratch, _raw(text.encode())).value.parts[0])
    parsed = json.loads(made)
    assert parsed["a"] == ["x"]
    assert parsed["b"].startswith("é\n[REDACTED:github-token:")
    assert parsed["b"].endswith("]/")
    assert is_placeholder(parsed["password"])


@pytest.mark.parametrize("edge", [1 << 20, (1 << 20) + (64 << 10)], ids=["cut", "end of what is held"])
@pytest.mark.parametrize("offset", range(-40, 50, 6))
def test_a_secret_on_a_window_boundary_of_one_long_line_is_found(
    redactor: Redactor, scratch: Scratch, edge: int, offset: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archiver.redact.raw.LONGEST_LINE", 1 << 20)
    window = edge + offset
    data = b"ab, " * (window // 4)
    text = (
        data[: window - 10]
        + b" password="
        + VALUE.encode()
        + b" "
        + data
        + b" "
        + TOKEN.encode()
        + b" "
        + data
    )
    made = _content(_transcript(redactor, scratch, _raw(text, chunk=(1 << 20) + (64 << 10))).value.parts[0])
    assert VALUE.encode() not in made
    assert TOKEN.encode() not in made
    assert len(made.split(b"[REDACTED:")) == 3
    assert made.replace(b"ab, ", b"")[:1] != b"b"


def _zip(data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/b.txt", data)
    return file.getvalue()


def _zip_of_zip(data: bytes) -> bytes:
    return _zip(_zip(data))


PACKERS = [
    _zip,
    gzip.compress,
    bz2.compress,
    lzma.compress,
    lambda data: b"\0\1" + data,
    lambda data: b"\xff\xfd" + data,
]
PACKERS += [
    lambda data: data.decode().encode("utf-16"),
    lambda data: gzip.compress(b"x\n") + gzip.compress(data),
]


@pytest.mark.parametrize("packer", PACKERS)
def test_what_is_not_text_is_kept_when_clean_and_left_out_with_a_finding(
    redactor: Redactor, scratch: Scratch, packer: Any
) -> None:
    clean = packer(b"nothing to see " * 50)
    dirty = packer(b"some text " * 50 + TOKEN.encode() + b" and more" * 50)
    redacted = _transcript(redactor, scratch, _raw(clean, name="clean.bin"), _raw(dirty, name="dirty.bin"))
    kept, emptied = redacted.value.parts
    assert _content(kept) == clean
    assert _content(emptied) == b""
    [left] = redacted.receipt.left_out
    assert left.member == "dirty.bin"
    assert left.rules == ("github-token",)


def test_a_zip_in_a_zip_is_looked_into(redactor: Redactor, scratch: Scratch) -> None:
    dirty = _zip_of_zip(b"text " * 100 + TOKEN.encode())
    assert _content(_transcript(redactor, scratch, _raw(dirty)).value.parts[0]) == b""


@pytest.mark.parametrize(
    "data",
    [b"\x28\xb5\x2f\xfd" + b"\0" * 40, b"\x1f\x8b" + b"\x08" + b"\xee" * 40, b"PK\x03\x04" + b"\0" * 80],
    ids=["zstd", "broken gzip", "broken zip"],
)
def test_what_cannot_be_looked_into_is_left_out(redactor: Redactor, scratch: Scratch, data: bytes) -> None:
    redacted = _transcript(redactor, scratch, _raw(data))
    assert _content(redacted.value.parts[0]) == b""
    assert "could not be looked into" in redacted.receipt.left_out[0].reason


def test_a_decompression_bomb_meets_a_limit(
    redactor: Redactor, scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = InflateLimits(inflated=1 << 20)
    monkeypatch.setattr(raw, "inflater_for", lambda start, _: inflater_for(start, Allowance(limits)))
    for pack in (_zip, gzip.compress, bz2.compress, lzma.compress):
        redacted = _transcript(redactor, scratch, _raw(pack(b"a" * (3 << 20))))
        assert "MiB of content" in redacted.receipt.left_out[-1].reason


def _checkpoint(**fields: Any) -> Checkpoint:
    return Checkpoint(run_id="run", task_id="task", created_at=NOW, checkpoint_at=NOW, **fields)


def test_every_field_of_a_checkpoint_is_redacted(redactor: Redactor) -> None:
    digest = "0" * 63 + "a"
    made = redactor.checkpoint(
        Checkpoint(
            run_id=f"run-{TOKEN}",
            task_id=TOKEN,
            user_id=TOKEN,
            objective=f"bare {VALUE} is used",
            note=f"password={VALUE}",
            summary=TOKEN,
            created_at=NOW,
            checkpoint_at=NOW,
            effects=(Effect(key=TOKEN, tool="t", arguments={"apiKey": VALUE, TOKEN: 1}, result=[TOKEN]),),
            evidence=(Evidence(command=f"curl -u admin:{VALUE} https://h/", output=digest),),
            artifacts=(Artifact(sha256=digest, size=1, head=TOKEN, tail=TOKEN, summary=TOKEN),),
            environment=Environment(probes={"git": {"remote": f"https://x:{VALUE}@h/r.git"}}),
            workspace=Workspace(path=f"/tmp/{TOKEN}/x"),
        )
    )
    text = made.value.model_dump_json()
    assert TOKEN not in text
    assert VALUE not in text
    assert made.value.artifacts[0].sha256 == made.value.evidence[0].output == digest
    assert is_placeholder(made.value.task_id)


def test_a_clean_checkpoint_is_the_same_object(redactor: Redactor) -> None:
    checkpoint = _checkpoint(note="all good", objective="repair the build")
    assert redactor.checkpoint(checkpoint).value is checkpoint


def test_an_id_that_grows_too_long_becomes_one_placeholder(redactor: Redactor) -> None:
    run = expand("AKIA{b32:16}", 2) + "." + "r" * 170
    checkpoint = _checkpoint().model_copy(update={"run_id": run})
    assert is_placeholder(redactor.checkpoint(checkpoint).value.run_id)


def test_a_full_transcript_that_comes_along_is_redacted(redactor: Redactor, scratch: Scratch) -> None:
    full = Transcript(parts=(_part({"t": TOKEN}),))
    with pytest.raises(UsageError):
        redactor.checkpoint(_checkpoint(full_transcript=full))
    _transcript(redactor, scratch)
    made = redactor.checkpoint(_checkpoint(full_transcript=full)).value.full_transcript
    assert made is not None
    assert is_placeholder(next(iter(made.parts[0].items.values()))["t"])


def test_members_are_scanned_once_more(redactor: Redactor, scratch: Scratch) -> None:
    lines = json.dumps({"t": "fine"}).encode() + b"\n" + json.dumps({"t": f"x {TOKEN}"}).encode() + b"\n"
    clean = b'{"type":"text"}\n'
    kept = _members(
        redactor,
        scratch,
        _member("transcript/0001.jsonl", lines),
        _member("transcript/0002.jsonl", clean),
        _member("checkpoint.json", json.dumps({"note": TOKEN, "artifacts": [{"sha256": "a" * 64}]}).encode()),
        _member("artifacts/aa", f"log {TOKEN} end".encode()),
        _member("artifacts/bb", gzip.compress(TOKEN.encode())),
        _member(f"workspace/{TOKEN}.txt", b"hello"),
    )
    assert list(kept) == ["transcript/0001.jsonl", "transcript/0002.jsonl", "checkpoint.json", "artifacts/aa"]
    assert TOKEN.encode() not in b"".join(kept.values())
    assert kept["transcript/0002.jsonl"] == clean
    assert kept["transcript/0001.jsonl"].startswith(b'{"t": "fine"}\n{"t": "x [REDACTED:github-token:')
    left = redactor.receipt().left_out
    assert [entry.rules for entry in left] == [("github-token",), ("github-token",)]
    assert TOKEN not in "".join(entry.member for entry in left)


def test_rewritten_members_carry_their_own_digest(redactor: Redactor, scratch: Scratch) -> None:
    import hashlib

    proof = _transcript(redactor, scratch)
    found = (
        _member("a.json", json.dumps([TOKEN]).encode()),
        _member("b.jsonl", json.dumps(TOKEN).encode() + b"\n"),
    )
    for member in redactor.members(proof.derive(lambda _: found), scratch).value:
        data = member.source if isinstance(member.source, bytes) else member.source.read_bytes()
        assert (member.size, member.sha256) == (len(data), hashlib.sha256(data).hexdigest())


def test_clean_members_are_the_same_objects(redactor: Redactor, scratch: Scratch) -> None:
    proof = _transcript(redactor, scratch)
    found = (
        _member("transcript/0001.jsonl", b'{"a":1}\n'),
        _member("x.txt", b"hi"),
        _member("c.json", b"[1]"),
    )
    made = redactor.members(proof.derive(lambda _: found), scratch).value
    assert all(one is other for one, other in zip(made, found, strict=True))


def test_registered_values_are_replaced_and_short_ones_named(scratch: Scratch) -> None:
    known = [
        ExactValue("DEPLOY", "correct horse battery"),
        ExactValue("PIN", "1234"),
        ExactValue("GUESS", "postgres", guessed=True),
    ]
    redactor = Redactor.load(KEY, exact=known)
    part = _part({"t": "a correct horse battery staple; 1234; postgres"})
    redacted = _transcript(redactor, scratch, part)
    [item] = redacted.value.parts[0].items.values()
    assert item["t"].startswith("a [REDACTED:known-value:")
    assert item["t"].endswith("] staple; 1234; postgres")
    assert redacted.receipt.too_short == ("GUESS", "PIN")
    assert "correct horse" not in repr(known)


def test_the_environment_is_read_by_names_that_say_secret() -> None:
    environ = {
        "GITHUB_TOKEN": VALUE,
        "DB_PASSWORD": "hunter2hunter2",
        "HOME": "/root",
        "GOOGLE_APPLICATION_CREDENTIALS": "/etc/key.json",
        "API_KEY": "${OTHER}",
        "MAX_TOKENS": "4096",
        "PLAIN": "said by name",
        "SSH_AUTH_SOCK": "/tmp/ssh-x/agent.1",
    }
    found = exact_from_environment(environ, ["PLAIN", "ABSENT"])
    assert [(known.name, known.guessed) for known in found] == [
        ("API_KEY", True),
        ("DB_PASSWORD", True),
        ("GITHUB_TOKEN", True),
        ("GOOGLE_APPLICATION_CREDENTIALS", True),
        ("PLAIN", False),
    ]
    receipt = Redactor.load(KEY, exact=found).receipt()
    assert receipt.too_short == ("API_KEY", "GOOGLE_APPLICATION_CREDENTIALS")


def test_progress_is_told_every_byte(redactor: Redactor, scratch: Scratch) -> None:
    class Counting:
        total = 0

        def stage(self, name: str, total: int | None = None) -> None: ...

        def advance(self, count: int) -> None:
            self.total += count

    progress = Counting()
    parts = (_part({"a": 1}, {"b": 2}), _raw(b"some text"))
    redactor.transcript(Transcript(parts=parts), scratch, progress)
    assert progress.total == sum(part.items.size for part in parts)


def test_a_part_is_read_once(redactor: Redactor, scratch: Scratch) -> None:
    passes = []

    def source() -> Iterator[bytes]:
        passes.append(1)
        yield json.dumps({"t": f"{VALUE}", "password": VALUE}).encode() + b"\n"

    part = TranscriptPart(name="a", items=Items(source, count=None, size=10))
    _transcript(redactor, scratch, part)
    assert passes == [1]


def test_a_digest_that_is_registered_is_a_named_error() -> None:
    digest = "f" * 32 + "0123456789abcdef" * 2
    redactor = Redactor.load(KEY, exact=[ExactValue("X", digest)])
    with pytest.raises(RedactionUnavailableError, match="not valid after redaction"):
        redactor.checkpoint(_checkpoint(artifacts=(Artifact(sha256=digest, size=1),)))
