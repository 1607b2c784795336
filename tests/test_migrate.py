"""Old documents become current ones: golden rows, refusals, and the schemas that describe both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from transcripts.samples import anthropic_messages
from transcripts.samples_openai_chat import chat_messages, legacy_messages

from archiver import schemas
from archiver.errors import InvalidDocumentError, UnsupportedSchemaError
from archiver.migrate import migrate, v1_to_v2
from archiver.model import Checkpoint

GOLDEN = Path(__file__).parent / "golden"

ROW: dict[str, Any] = {
    "task_id": "t",
    "goal": "g",
    "messages": [],
    "completed_tasks": [],
    "iteration": 0,
    "created_at": "2026-01-05T08:00:00Z",
    "updated_at": "2026-01-05T08:00:00Z",
}


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (GOLDEN / name).read_text(encoding="utf-8").splitlines()]


def test_golden_rows_become_the_golden_documents() -> None:
    rows, expected = lines("v1/rows.jsonl"), lines("v1/migrated.jsonl")
    assert len(rows) == len(expected) >= 3
    for row, document in zip(rows, expected, strict=True):
        before = json.dumps(row)
        migrated, steps = migrate(row)
        assert migrated == document
        assert steps == ("v1_to_v2",)
        assert json.dumps(row) == before, "a migration must not change what it is given"
        Checkpoint.model_validate(migrated)


def test_golden_documents_fit_the_schemas() -> None:
    v1 = json.loads(schemas.text("v1/checkpoint"))
    v2 = json.loads(schemas.text("v2/checkpoint"))
    for row in lines("v1/rows.jsonl"):
        jsonschema.validate(row, v1)
    for document in lines("v1/migrated.jsonl"):
        jsonschema.validate(document, v2)
        assert migrate(document) == (document, ())


def test_model_documents_fit_the_schema() -> None:
    v2 = json.loads(schemas.text("v2/checkpoint"))
    for document in lines("v1/migrated.jsonl"):
        jsonschema.validate(Checkpoint.model_validate(document).document(), v2)


def test_a_newer_version_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedSchemaError, match="schema version 7") as caught:
        migrate({**ROW, "schema_version": 7})
    assert "schema version 7" in (caught.value.remedy or "")
    assert caught.value.exit_code == 5


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"goal": None}, "goal"),
        ({"messages": "not json"}, "messages"),
        ({"messages": {"role": "user"}}, "messages"),
        ({"iteration": -1}, "iteration"),
        ({"iteration": True}, "iteration"),
        ({"created_at": "yesterday"}, "created_at"),
        ({"updated_at": 10**20}, "updated_at"),
        ({"owner": "me"}, "owner"),
        ({"schema_version": "1"}, "schema_version"),
        ({"schema_version": 0}, "schema_version"),
    ],
)
def test_a_bad_row_is_a_typed_error_that_names_the_column(change: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidDocumentError, match=says):
        migrate({**ROW, **change})


@pytest.mark.parametrize("column", ["task_id", "goal", "messages", "created_at", "updated_at"])
def test_a_missing_column_is_named(column: str) -> None:
    with pytest.raises(InvalidDocumentError, match=column):
        v1_to_v2({name: value for name, value in ROW.items() if name != column})


@pytest.mark.parametrize("document", [None, [], "text", 3])
def test_what_is_no_object_is_no_checkpoint(document: Any) -> None:
    with pytest.raises(InvalidDocumentError):
        migrate(document)


@pytest.mark.parametrize(
    ("messages", "dialect"),
    [
        (chat_messages(1), "openai-chat"),
        (chat_messages(1)[1:3], "openai-chat"),
        (legacy_messages(), "openai-chat"),
        (chat_messages(1)[:2], "opaque"),
        (chat_messages(1, reasoning=False)[-1:], "anthropic-messages"),
        (anthropic_messages(1), "anthropic-messages"),
    ],
)
def test_messages_of_a_row_are_of_the_dialect_they_show(messages: list[Any], dialect: str) -> None:
    migrated, _ = migrate(ROW | {"messages": messages})
    assert migrated["transcript"]["dialect"] == dialect
    assert migrated["transcript"]["parts"][0]["items"] == messages
