"""Conversation and folder together: saves that go on hold what saves that begin anew hold, and no secret."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archiver import epochs
from archiver.archive import Prepared
from archiver.errors import LimitExceededError
from archiver.loop import pieces
from archiver.model import Checkpoint
from archiver.model.checkpoint import Workspace
from archiver.redact.exact import ExactValue
from archiver.remembered import Remembered
from archiver.setup import Setup
from archiver.workspace import cache
from loop.test_remembered import Saver, checkpoint, looked, password
from loop.together import PASSWORDS, Held, World, restored, secrets_in

_PLACE = re.compile(r"(transcript|full|workspace/tree)/[0-9]{4}\.jsonl line [0-9]+")
_SHOWN = re.compile(r"\[REDACTED:[^]]*\]")
_FAILING = ("archiver.preparing.last_scan", "archiver.preparing.seal", "archiver.reducing.fitted")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks move within a few messages, files are settled at once, and increments always pay."""
    monkeypatch.setattr(pieces, "PIECE", 1_000)
    monkeypatch.setattr(epochs, "LARGEST", 2.0)
    monkeypatch.setattr(cache, "_MARGIN", 0)


@pytest.fixture
def remembered() -> Iterator[Remembered]:
    made = Remembered()
    yield made
    made.close()


def state(world: World, dialect: str) -> Checkpoint:
    changes = {
        "workspace": Workspace(path=str(world.folder)),
        "note": world.note,
        "objective": world.objective,
    }
    return checkpoint(world.messages, dialect=dialect).model_copy(update=changes)


def said(prepared: Prepared) -> tuple[Any, ...]:
    """The checkpoint, what the receipt says, and what is known to be secret."""
    document, receipt, _, based = looked(prepared)
    redactor = prepared.redactor
    findings = sorted(
        (one["rule"], one["fingerprint"], _PLACE.sub(r"\1", json.dumps(one["places"][:1])))
        for one in receipt["findings"]
    )
    left = sorted(
        (_SHOWN.sub("*", one["member"]), one["reason"])
        for one in receipt["left_out"]
        if one["member"][0] != "("
    )
    known = set(redactor._values.values(redactor._ledger))
    cut = [{**one, "kept_as": None} for one in receipt.get("cut", ())]
    return document, findings, left, cut, receipt.get("unread"), based, known


class Pair:
    """Two savers of one world: the first remembers."""

    def __init__(self, seed: int, setup: Setup, world: World, remembered: Remembered) -> None:
        self.chance = random.Random(seed)
        self.world = world
        self._late = seed % 3
        if seed % 4 == 3:
            workspace = setup.settings.workspace.model_copy(update={"credential_files": "redact"})
            setup = replace(setup, settings=setup.settings.model_copy(update={"workspace": workspace}))
        self.one = Saver(setup, remembered, 9, self._late, world.folder)
        self.other = Saver(setup, None, 9, self._late, world.folder)

    def change(self) -> None:
        """Now and then other settings, from here on."""
        now, kind = self.one.setup, self.chance.random()
        if kind < 0.12:
            known = (ExactValue(f"v{number}", password(number)) for number in range(PASSWORDS))
            now = replace(now, registered=tuple(one for one in known if self.chance.random() < 0.5))
        elif kind < 0.2:
            self.one.keep_full = self.other.keep_full = not self.one.keep_full
        elif kind < 0.35:
            size = self.chance.choice((60_000, 100_000, 150_000, 10**9))
            policy = self.chance.choice(("reference", "head-and-tail"))
            update = {"bundle": size, "artifact": 40_000, "member": 10**7, "bundle_policy": policy}
            limits = now.settings.limits.model_copy(update=update)
            now = replace(now, settings=now.settings.model_copy(update={"limits": limits}))
        self.one.setup = self.other.setup = now

    def interrupted(self, made: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
        """A save by the first that comes to nothing."""

        def fails(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(self.chance.choice(_FAILING), fails)
            self.one.save(made, looked)
        self.one.seq -= 1

    def demand_alike(self, made: Checkpoint, held: Held) -> bool:
        """Save by both and compare; false where one of them alone met a limit."""
        try:
            expected = self.other.save(made, said)
        except LimitExceededError:
            with pytest.raises(LimitExceededError):
                self.one.save(made, said)
            return True
        table = held.last
        try:
            assert self.one.save(made, said) == expected
        except LimitExceededError:  # what a receipt and a tree in parts have more may be just too much
            assert sum(map(len, table.values())) > 0.9 * self.one.setup.settings.limits.bundle
            return False
        assert restored(held.last) == restored(table)
        known = expected[-1]
        assert {value for value, _ in secrets_in(held.last, known)} <= {
            value for value, _ in secrets_in(table, known)
        }, "what is known stands in a bundle"
        return True


def play(
    seed: int,
    steps: int,
    setup: Setup,
    tmp_path: Path,
    remembered: Remembered,
    monkeypatch: pytest.MonkeyPatch,
    *,
    changing: bool,
) -> None:
    held, world = Held(monkeypatch), World(seed, tmp_path / "work")
    pair = Pair(seed, setup, world, remembered)
    chance = pair.chance
    for _ in range(steps):
        for _ in range(chance.choice((0, 2, 4, 7))):
            world.edit()
        if chance.random() < 0.6:
            world.go_on()
        if changing:
            pair.change()
        # A file of no known format is cut by its segments, which the others need not have alike.
        opaque = changing and chance.random() < 0.1 and pair.one.setup.settings.limits.bundle >= 10**9
        made = state(world, "opaque" if opaque else "anthropic-messages")
        if chance.random() < 0.15:
            pair.interrupted(made, monkeypatch)
        if not pair.demand_alike(made, held):
            break


@pytest.mark.parametrize("seed", [21, 23])
def test_saves_that_go_on_hold_what_others_hold(
    seed: int, setup: Setup, tmp_path: Path, remembered: Remembered, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(seed, 8, setup, tmp_path, remembered, monkeypatch, changing=False)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("seed", "changing"), [*((seed, False) for seed in range(24)), *((seed, True) for seed in range(12))]
)
def test_saves_that_go_on_hold_what_others_hold_for_long(
    seed: int,
    changing: bool,
    setup: Setup,
    tmp_path: Path,
    remembered: Remembered,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play(seed, 14, setup, tmp_path, remembered, monkeypatch, changing=changing)
