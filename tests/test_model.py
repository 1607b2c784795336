"""The words of the product: frozen, strict, in UTC, and JSON all through."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import ValidationError

from archiver.errors import NotSerialisableError
from archiver.model import Checkpoint, Effect, Environment, Items, SubtaskResult, TranscriptPart

NOW = datetime(2026, 3, 2, 12, 0, 0, 123456, tzinfo=UTC)


def checkpoint(**fields: Any) -> Checkpoint:
    return Checkpoint(**{"run_id": "r", "task_id": "t", "created_at": NOW, "checkpoint_at": NOW, **fields})


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (lambda bad: Effect(key="k", tool="t", arguments={"a": [1, bad]}), "$.arguments.a[1]"),
        (lambda bad: SubtaskResult(key="k", output=bad), "$.output"),
        (lambda bad: Environment(probes={"p": {"q": bad}}), "$.probes.q"),
        (lambda bad: TranscriptPart(name="x", items=[{"ok": 1}, {"content": bad}]), "$.content"),
        (lambda bad: Items.of([{"deep": {"er": bad}}]), "$.deep.er"),
    ],
)
@pytest.mark.parametrize(
    "bad", [object(), b"bytes", {1, 2}, float("nan"), {1: 2}], ids=["object", "bytes", "set", "nan", "key"]
)
def test_what_has_no_json_form_is_a_typed_error_that_names_its_path(make: Any, path: str, bad: Any) -> None:
    with pytest.raises(NotSerialisableError) as caught:
        make(bad)
    assert caught.value.path == path
    assert caught.value.exit_code == 2


def test_models_are_frozen_and_refuse_unknown_fields() -> None:
    made = checkpoint()
    with pytest.raises(ValidationError):
        made.note = "changed"  # type: ignore[misc]  # that is the point
    with pytest.raises(ValidationError, match="colour"):
        checkpoint(colour="red")


@pytest.mark.parametrize("version", [1, 3, "2"])
def test_only_the_current_version_is_a_checkpoint(version: Any) -> None:
    with pytest.raises(ValidationError):
        checkpoint(schema_version=version)


def test_times_need_a_zone_and_are_kept_in_utc() -> None:
    made = checkpoint(created_at=NOW.astimezone(timezone(timedelta(hours=5))))
    assert made.created_at == NOW
    assert made.document()["created_at"] == "2026-03-02T12:00:00.123Z"
    with pytest.raises(ValidationError):
        checkpoint(created_at=NOW.replace(tzinfo=None))
    with pytest.raises(ValidationError):
        checkpoint(created_at="0001-01-01T00:00:00+10:00")


def test_a_document_reads_back() -> None:
    made = checkpoint(effects=(Effect(key="k", tool="t", arguments={"n": 1, "list": [None, True, 1.5]}),))
    again = Checkpoint.model_validate(made.document())
    assert again.document() == made.document()
