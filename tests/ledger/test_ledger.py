"""Intents and outcomes in a store: whose are believed, what they come to, and who is told of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from e2e.rekeying import distrusting, done, save, to

from archiver import age, layout, ledger, sign
from archiver.errors import (
    AlreadyExistsError,
    ContextMismatchError,
    DamagedError,
    NeedsDecisionError,
    StaleWriterError,
    UntrustedWriterError,
)
from archiver.ledger import Ledger, merged
from archiver.ledger.entries import decode, encode, intent_id
from archiver.model import Effect
from archiver.model.record import Decision
from archiver.restore import plan, restore
from archiver.setup import Setup
from archiver.verify import verify

from .acting import act, ledger_of, redactor

RUN = "r"


def status(setup: Setup, *state: Effect, decisions: Any = ()) -> dict[str, str]:
    return {one.key: one.status for one in merged(state, ledger.known(RUN, setup), decisions)}


def decision(outcome: str, at: datetime | None = None) -> Decision:
    return Decision.model_validate(
        {
            "effect": "invoice-7",
            "outcome": outcome,
            "by": "ann",
            "at": at or datetime.now(UTC),
            "reason": "looked",
        }
    )


def name_of(setup: Setup) -> str:
    return next(iter(setup.store.list(layout.effects_prefix(RUN)))).name


# --- as objects -------------------------------------------------------------------------------------------


def test_the_same_writer_always_gets_the_same_name_and_nobody_else_does() -> None:
    keys = sign.SigningKey.from_seed(bytes(32)), sign.SigningKey.from_seed(bytes([1]) * 32)
    ids = {intent_id(key, "s", RUN, "k", number) for key in keys for number in (1, 2) for _ in range(2)}
    assert len(ids) == 4
    assert intent_id(keys[0], "s", RUN, "k", 1) == "2cc93df5674c14cf5eb74e9269f47be7"


def test_a_second_intent_of_one_attempt_is_refused(setup: Setup) -> None:
    other = Ledger(setup, RUN, RUN, redactor)  # another copy, which has read nothing
    act(setup, RUN)
    intent = other.seal(other.intent(other.subject("invoice-7", "pay", {"n": 7}, replayable=False)))
    with pytest.raises(AlreadyExistsError):
        other.put(intent)


def test_one_that_was_copied_under_another_name_is_found_out(setup: Setup) -> None:
    act(setup, RUN)
    data = setup.store.read(name_of(setup), limit=1 << 20)
    for run, place in ((RUN, "ab" * 16), ("other", layout.parse(name_of(setup)).effect or "")):
        setup.store.create(layout.effect_name(run, place), [data], retention="record")
        with pytest.raises(ContextMismatchError, match="moved or copied"):
            ledger.known(run, setup)


def test_a_damaged_one_and_one_of_another_store_keep_anybody_from_going_on(setup: Setup) -> None:
    act(setup, RUN)
    with pytest.raises(ContextMismatchError, match="belongs to store"):
        ledger.known(RUN, replace(setup, store_id="0" * 32))
    path = Path(setup.store.url.removeprefix("file://")) / name_of(setup)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedError):
        ledger.known(RUN, setup)


def test_a_stranger_is_not_believed(setup: Setup) -> None:
    stranger = sign.SigningKey.generate()
    forged = replace(setup, signing_key=stranger)
    other = Ledger(forged, RUN, RUN, redactor)
    intent = other.seal(other.intent(other.subject("invoice-7", "pay", None, replayable=False)))
    other.put(intent)
    with pytest.raises(UntrustedWriterError, match="not a trusted writer"):
        ledger.known(RUN, setup)
    claimed = intent.entry.model_copy(update={"writer": setup.require_signing_key().public})
    sealed = encode(claimed, stranger, setup.recipients)
    with pytest.raises(DamagedError, match="names another writer"):
        decode(sealed, setup.identities, name=intent.name)


def test_what_a_distrusted_writer_signed_since_is_asked_for(setup: Setup) -> None:
    act(setup, RUN, status="confirmed")
    assert status(setup) == {"invoice-7": "confirmed"}
    before = distrusting(setup, datetime.now(UTC) + timedelta(days=1), None)
    assert status(before) == {"invoice-7": "confirmed"}
    since = distrusting(setup, datetime.now(UTC) - timedelta(days=1), None)
    assert status(since) == {"invoice-7": "uncertain"}, "whoever has the key may have said so"


def test_probes_are_passed_over(setup: Setup) -> None:
    run = layout.INIT_PROBES
    setup.store.create(layout.effect_name(run, "ab" * 16), [b"x"], retention="live")
    assert ledger.known(run, setup) == ()


# --- what they come to ------------------------------------------------------------------------------------


def test_an_attempt_without_an_outcome_is_open_whatever_the_checkpoint_says(setup: Setup) -> None:
    intent = act(setup, RUN)
    old = Effect(key="invoice-7", tool="pay", arguments={"n": 7})
    for state in ((), (old,), (old.model_copy(update={"status": "uncertain", "at": intent.at}),)):
        assert status(setup, *state) == {"invoice-7": "uncertain"}
    done_ = old.model_copy(update={"status": "confirmed", "result": 1})
    assert status(setup, done_) == {"invoice-7": "confirmed"}, "what either says happened, happened"
    act(setup, RUN, "again", replayable=True)
    assert status(setup)["again"] == "in_progress"


def test_an_outcome_outlasts_an_older_checkpoint(setup: Setup) -> None:
    intent = act(setup, RUN, status="not-done")
    during = Effect(key="invoice-7", tool="pay", status="in_progress", at=intent.at)
    assert status(setup, during) == {"invoice-7": "proposed"}
    act(setup, RUN, status="confirmed", result={"id": 1})
    (effect,) = merged((during,), ledger.known(RUN, setup))
    assert (effect.status, effect.result) == ("confirmed", {"id": 1})


def test_an_attempt_that_only_the_checkpoint_knows_stays_open(setup: Setup) -> None:
    """It was made without the store."""
    act(setup, RUN, status="not-done")
    later = Effect(
        key="invoice-7", tool="pay", status="in_progress", at=datetime.now(UTC) + timedelta(seconds=1)
    )
    assert status(setup, later) == {"invoice-7": "in_progress"}


@pytest.mark.parametrize(("outcome", "expected"), [("done", "confirmed"), ("not-done", "proposed")])
def test_a_decision_ends_an_attempt_and_no_later_one(setup: Setup, outcome: str, expected: str) -> None:
    act(setup, RUN)
    said = decision(outcome)
    assert status(setup, decisions=[said]) == {"invoice-7": expected}
    ledger_of(setup, RUN).settle([said])
    assert status(setup) == status(setup, decisions=[said]) == {"invoice-7": expected}
    assert ledger.unspent([said], ledger.known(RUN, setup)) == ()
    if outcome == "not-done":
        act(setup, RUN)
        assert status(setup, decisions=[said]) == {"invoice-7": "uncertain"}, "it was about the first attempt"


# --- who is told ------------------------------------------------------------------------------------------


@pytest.fixture
def saved(setup: Setup, note: Path) -> Setup:
    save(setup, note, RUN)
    return setup


def test_a_restore_knows_what_was_begun_since_the_checkpoint(saved: Setup, tmp_path: Path) -> None:
    act(saved, RUN)
    (blocker,) = plan(RUN, saved).blockers
    assert (blocker.accept, blocker.exit_code) == ("effects", 7)
    assert "invoice-7" in blocker.reason
    with pytest.raises(NeedsDecisionError, match="invoice-7"):
        restore(RUN, saved, into=tmp_path / "refused")
    decided = replace(saved, why="looked at the bank")
    restored = restore(RUN, decided, into=tmp_path / "out", resolve={"invoice-7": "not-done"})
    assert [(one.key, one.status) for one in restored.state.effects] == [("invoice-7", "proposed")]
    resumed = restored.resume(because="looked at the bank")
    assert resumed.effects.outcome("invoice-7", {"n": 7}).act


def test_a_restore_knows_what_happened_since_the_checkpoint(saved: Setup, tmp_path: Path) -> None:
    act(saved, RUN, status="confirmed", result={"id": 1})
    restored = restore(RUN, saved, into=tmp_path / "out")
    assert restored.resume().effects.outcome("invoice-7", {"n": 7}).result == {"id": 1}
    assert "invoice-7" in (tmp_path / "out" / "effects.jsonl").read_text(encoding="utf-8")


def test_what_is_begun_before_the_claim_is_seen_after_it(saved: Setup, tmp_path: Path) -> None:
    restored = restore(RUN, saved, into=tmp_path / "out")
    act(saved, RUN)
    with pytest.raises(NeedsDecisionError, match="invoice-7"):
        restored.resume()
    with pytest.raises(StaleWriterError):
        restored.resume()


def test_verify_looks_at_each(saved: Setup) -> None:
    act(saved, RUN, status="confirmed")
    for found in (verify(saved, RUN), verify(saved)):
        notes = sorted(one.note for one in found if one.object.startswith("effects/"))
        assert notes == [
            f"{part} of effect invoice-7, signed by own signing key" for part in ("intent", "outcome")
        ]
    path = Path(saved.store.url.removeprefix("file://")) / name_of(saved)
    path.write_bytes(b"rubbish")
    for found in (verify(saved, RUN), verify(saved)):
        assert [one.object for one in found if one.error] == [name_of(saved)]


def test_a_rekey_reseals_them_and_verify_knows_why(saved: Setup) -> None:
    act(saved, RUN, status="confirmed")
    new = age.generate()
    setup = to(saved, new)
    assert done(setup).error is None
    only = replace(setup, identities=(new,))
    assert status(only) == {"invoice-7": "confirmed"}
    found = [one for one in verify(only, RUN) if one.object.startswith("effects/")]
    assert [one.error for one in found] == [None, None]
    assert all("rekeyed" in one.note for one in found)
