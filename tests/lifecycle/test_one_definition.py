"""`archiver/retention.py` says how long a class is kept, and everything that deletes goes by it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from archiver.config import load
from archiver.lifecycle.parse import parse
from archiver.lifecycle.rules import EXPIRING, Wanted, rules
from archiver.lifecycle.simulate import Version, simulate
from archiver.model.record import RetentionClass
from archiver.retention import ABORT_DAYS, DAYS, NONCURRENT_DAYS
from archiver.store.s3.client import CLASS_TAG

TERRAFORM = json.loads((Path(__file__).parents[2] / "terraform" / "retention.json").read_text())
SETTINGS = load(without_file=True).retention.days
CREATED = datetime(2026, 1, 1, tzinfo=UTC)
OWN = parse(rules(Wanted("", True, CLASS_TAG, DAYS)))


@pytest.mark.parametrize("word", DAYS)
def test_days_of_a_class(word: RetentionClass) -> None:
    days, old = DAYS[word], NONCURRENT_DAYS[word]
    terraform = TERRAFORM["classes"].get(word, {"days": None, "noncurrent_days": None})
    of_rules = [rule for rule in OWN if rule.tags.get(CLASS_TAG) == word]
    bucket = (of_rules[0].days, of_rules[0].noncurrent_days) if of_rules else (None, None)
    assert len(of_rules) <= 1
    assert (terraform["days"], terraform["noncurrent_days"]) == bucket == (days, old)
    assert SETTINGS[word] == days  # what `archiver expire` and `list` go by

    ((_, fate),) = simulate(OWN, [Version("x", CREATED, {CLASS_TAG: word})], CREATED, versioning="on")
    if days is None:
        assert (fate.hidden, fate.deleted) == (None, None)
    else:
        assert fate.hidden is not None
        assert fate.deleted is not None
        assert fate.hidden.at == CREATED + timedelta(days=days)
        assert fate.deleted.at == CREATED + timedelta(days=days + (old or 0))


def test_nothing_else_is_deleted() -> None:
    assert set(TERRAFORM["classes"]) == set(EXPIRING) == set(DAYS) - {"hold"}
    assert TERRAFORM["tag"] == CLASS_TAG
    (uploads,) = [rule.abort_days for rule in OWN if rule.abort_days is not None]
    assert uploads == TERRAFORM["abort_days"] == ABORT_DAYS
    untagged = [rule for rule in OWN if not rule.tags]
    assert not any(rule.expires or rule.noncurrent_days for rule in untagged)
    for word in ("hold", None):
        tags = {CLASS_TAG: word} if word else {}
        held = [
            Version("x", CREATED, tags, id="2"),
            Version("x", CREATED, tags, noncurrent_since=CREATED, id="1"),
        ]
        assert all(fate.first is None for _, fate in simulate(OWN, held, CREATED, versioning="on"))
