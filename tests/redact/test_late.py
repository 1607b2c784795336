"""What is found late: values known only after they were copied, and the places that a receipt shows."""

from __future__ import annotations

import gzip
import hashlib
import json
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from archiver.errors import RedactionUnavailableError
from archiver.model import (
    Checkpoint,
    Effect,
    GitState,
    Items,
    Member,
    Receipt,
    Transcript,
    TranscriptPart,
    Workspace,
)
from archiver.redact import ExactValue, Redactor
from archiver.redact.members import state_opaque
from archiver.scratch import Scratch
from tests.redact.conftest import KEY
from tests.redact.support import expand

NOW = datetime(2026, 1, 2, tzinfo=UTC)
VALUE = secrets.token_hex(8) + "Q7z"


@pytest.fixture
def redactor(cache_folder: Path) -> Redactor:
    return Redactor.load(KEY)


def _part(*values: Any, **fields: Any) -> TranscriptPart:
    return TranscriptPart(**{"name": "main", "items": Items.of(values), **fields})


def _checkpoint(transcript: Transcript, **fields: Any) -> Checkpoint:
    return Checkpoint(
        run_id="run", task_id="task", created_at=NOW, checkpoint_at=NOW, transcript=transcript, **fields
    )


def _shown(receipt: Receipt) -> str:
    return json.dumps(receipt.document())


def _member(path: str, data: bytes) -> Member:
    return Member(path, data, len(data), hashlib.sha256(data).hexdigest())


def _scan(redactor: Redactor, scratch: Scratch, *members: Member) -> dict[str, bytes]:
    proof = redactor.transcript(Transcript(), scratch)
    made = redactor.members(proof.derive(lambda _: members), scratch).value
    return {m.path: m.source if isinstance(m.source, bytes) else m.source.read_bytes() for m in made}


def test_a_credential_that_is_a_key_is_not_shown_as_a_place(scratch: Scratch) -> None:
    token = expand("AKIA{upper:16}", 4)
    word = "".join(secrets.choice("aeioubdlmnrst") for _ in range(14))
    redactor = Redactor.load(KEY, exact=[ExactValue("X", word)])
    items = [{key: {"password": VALUE + str(number)}} for number, key in enumerate((token, word, "plain"))]
    receipt = redactor.transcript(Transcript(parts=(_part(*items),)), scratch).receipt
    assert receipt.findings
    assert token not in _shown(receipt)
    assert word not in _shown(receipt)
    assert "$.plain.password" in _shown(receipt)


def test_a_part_name_that_is_found_later_in_the_items_is_hidden_everywhere(
    redactor: Redactor, scratch: Scratch
) -> None:
    part = _part({"t": f"API_TOKEN={VALUE}"}, name=f"notes-{VALUE}", header={"system": f"see {VALUE}"})
    redacted = redactor.transcript(Transcript(parts=(part,)), scratch)
    checkpoint = redactor.checkpoint(_checkpoint(redacted.value))
    assert VALUE not in repr(checkpoint.value.transcript)
    assert VALUE not in json.dumps(checkpoint.value.document())
    assert VALUE not in _shown(redactor.receipt())


def test_the_name_of_what_was_left_out_is_hidden_when_its_content_shows_it(
    redactor: Redactor, scratch: Scratch
) -> None:
    data = gzip.compress(f"API_TOKEN={VALUE}\n".encode())
    part = TranscriptPart(name=f"n-{VALUE}.gz", media="raw", items=Items.of_chunks([data]))
    redactor.transcript(Transcript(parts=(part,)), scratch)
    assert redactor.receipt().left_out
    assert VALUE not in _shown(redactor.receipt())


def test_a_value_that_only_the_last_scan_finds_is_replaced_in_earlier_members(
    redactor: Redactor, scratch: Scratch
) -> None:
    summary = {"a": f"bare {VALUE}"}
    early = _member("transcript/0001.jsonl", json.dumps(summary).encode() + b"\n")
    made = _scan(redactor, scratch, early, _member("x.txt", f"API_TOKEN={VALUE}\n".encode()))
    assert VALUE.encode() not in b"".join(made.values())
    proof = redactor.transcript(Transcript(), scratch)
    stale = proof.derive(lambda found: _checkpoint(found, note=f"bare {VALUE}"))
    assert VALUE not in str(redactor.settled(stale).value.note)


def test_what_the_last_part_shows_is_replaced_in_all_that_came_before(
    redactor: Redactor, scratch: Scratch
) -> None:
    parts = (
        _part({"t": f"it is {VALUE}"}, header={"note": VALUE}, media="json", items_at=("items",)),
        _part({"t": json.dumps({"DB_PASSWORD": VALUE})}, name="two"),
    )
    made = redactor.transcript(Transcript(parts=parts), scratch)
    effects = (Effect(key="k", tool="t", arguments=[VALUE], result={"a": f"x {VALUE}"}),)
    state = redactor.checkpoint(_checkpoint(made.value, objective=f"use {VALUE}", effects=effects)).value
    shown = json.dumps(state.document(exclude={"transcript": {"parts": {"__all__": {"items"}}}}))
    shown += "".join(json.dumps(item) for part in state.transcript.parts for item in part.items)
    assert VALUE not in shown
    assert shown.count("[REDACTED:") == 6


def test_a_rewritten_member_that_is_named_by_its_digest_is_left_out(
    redactor: Redactor, scratch: Scratch
) -> None:
    data = f"API_TOKEN={VALUE}\n".encode()
    path = f"artifacts/{hashlib.sha256(data).hexdigest()}"
    clean = f"artifacts/{hashlib.sha256(b'x').hexdigest()}"
    assert list(_scan(redactor, scratch, _member(path, data), _member(clean, b"x"))) == [clean]
    [left] = redactor.receipt().left_out
    assert (left.member, "digest" in left.reason) == (path, True)


def test_only_digests_and_commits_are_spared(redactor: Redactor, scratch: Scratch) -> None:
    token, commit = expand("ghp_{alnum:36}", 5), "0a" * 20
    for given, kept in ((token, False), (commit, True)):
        workspace = {"git": {"commit": given}}
        assert state_opaque(("workspace", "git", "commit"), {"workspace": workspace}) is kept
        checkpoint = _checkpoint(Transcript(), workspace=Workspace(git=GitState(commit=given)))
        made = redactor.checkpoint(checkpoint).value.workspace
        assert made is not None
        assert made.git is not None
        assert (made.git.commit == given) is kept


def test_a_dialect_place_or_segment_that_holds_a_credential_is_redacted(
    redactor: Redactor, scratch: Scratch
) -> None:
    token = expand("ghp_{alnum:36}", 6)
    part = _part({"a": 1}, media="json", header={token: []}, items_at=(token,), segments=(token,))
    redacted = redactor.transcript(Transcript(dialect=token, parts=(part,)), scratch).value
    assert token not in repr(redacted)
    assert redacted.parts[0].header == {redacted.parts[0].items_at[0]: []}
    assert redactor.transcript(Transcript(dialect="claude-code"), scratch).value.dialect == "claude-code"


def test_items_that_were_never_redacted_are_refused(redactor: Redactor, scratch: Scratch) -> None:
    part = _part({"t": 1})
    redacted = redactor.transcript(Transcript(parts=(part,)), scratch)
    assert redactor.checkpoint(_checkpoint(redacted.value)).value.transcript.parts[0].name == "main"
    redactor.checkpoint(_checkpoint(Transcript(parts=(_part(),))))
    with pytest.raises(RedactionUnavailableError, match="not redacted"):
        redactor.checkpoint(_checkpoint(Transcript(parts=(part,))))
