"""A run whose saves go on from what the last one left gives what saves that begin anew give."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from archiver import archive, epochs, jsonio
from archiver.archive import Options, Prepared, Source
from archiver.compact import compaction
from archiver.epochs import Based, Epochs, Reason, Terms
from archiver.errors import StoreFullError
from archiver.loop import pieces
from archiver.loop.state import State
from archiver.model import Checkpoint, Outcome, TranscriptPart
from archiver.position import Position
from archiver.redact.growing import GrowingPass
from archiver.redact.ledger import Ledger
from archiver.remembered import Remembered
from archiver.scratch import PREFIX
from archiver.setup import Setup
from archiver.spool import open_spool
from loop import writing

NOW = datetime(2026, 3, 2, tzinfo=UTC)
KEY = bytes(32)
Messages = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks move within a few messages, and no bundle is full for the number of its segments."""
    monkeypatch.setattr(pieces, "PIECE", 1_000)
    monkeypatch.setattr(epochs, "LARGEST", 2.0)


def password(number: int) -> str:
    chance = random.Random(number)
    return "".join(chance.choices("abcdefghjkmnpqrstuvwxyzABCDEFGHJKMNPQRSTUVWXYZ23456789", k=24))


class Steps:
    """Messages that are added to, changed and cut, as loops do it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.messages: Messages = [{"role": "user", "content": "Go on."}]
        self._number = 0
        for _ in range(20):
            self.messages += self.turn()

    def words(self, count: int) -> str:
        return " ".join(f"word{self.chance.randrange(10**4)}" for _ in range(count))

    def turn(self) -> Messages:
        """A call and its result, with a secret, or a bare copy of one that is only told elsewhere."""
        self._number += 1
        chance, call = self.chance, f"toolu_{self._number:08d}"
        path = f"/srv/file{chance.randrange(5)}.py"
        command = f"cat {path}" if chance.random() < 0.5 else self.words(2)
        use: dict[str, Any] = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}}
        result = self.words(chance.choice((3, 40, 300)))
        if chance.random() < 0.15:
            result += f"\nDB_PASSWORD={password(chance.randrange(6))}\n"
        if chance.random() < 0.15:
            result += f"\nseen {password(chance.randrange(6))} there\n"
        if chance.random() < 0.05:
            result += "line\n" * 20_000 + self.words(5)
        thought = {"type": "thinking", "thinking": self.words(8), "signature": "c2ln"}
        said: list[Any] = [{"type": "text", "text": self.words(5)}, use]
        answer = {"type": "tool_result", "tool_use_id": call, "content": result}
        return [
            {"role": "assistant", "content": [thought, *said] if chance.random() < 0.3 else said},
            {"role": "user", "content": [answer]},
        ]

    def go_on(self) -> None:
        """One step: mostly more turns."""
        kind = self.chance.random()
        if kind < 0.1:
            place = self.chance.randrange(len(self.messages))
            self.messages[place] = {"role": "user", "content": self.words(6)}
        elif kind < 0.2:
            del self.messages[-self.chance.randrange(1, 12) :]
        elif kind < 0.3:
            self.messages[-1] = {**self.messages[-1], "cache_control": {"type": "ephemeral"}}
        for _ in range(self.chance.choice((0, 1, 3, 12))):
            self.messages += self.turn()


@dataclass
class Saver:
    """One process that saves a run, whose bundles are in the store `late` saves later."""

    setup: Setup
    remembered: Remembered | None
    every: int = 200
    late: int = 0
    folder: Path | None = None
    keep_full: bool | None = None
    seq: int = 0
    waiting: list[tuple[int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.epochs = Epochs(self.every)

    def save(self, checkpoint: Checkpoint, look: Callable[[Prepared], Any]) -> Any:
        self.seq += 1

        def choose(terms: Terms, outcome: Outcome) -> Based | Reason:
            return self.epochs.choose(terms, outcome, NOW)

        place = Position("r", seq=self.seq, redaction_key=KEY)
        with archive.prepare(
            Source(checkpoint=checkpoint, workspace=self.folder),
            self.setup,
            lambda _: place,
            options=Options(capture=False, keep_full=self.keep_full),
            choose=choose,
            remembered=self.remembered,
        ) as prepared:
            assert prepared.terms is not None
            packed = prepared.sealed.packed
            self.epochs.sealed(self.seq, packed, prepared.marks, prepared.terms, NOW, prepared.based)
            self.waiting.append((self.seq, prepared.new_name()))
            while len(self.waiting) > self.late:
                self.epochs.acknowledged(*self.waiting.pop(0))
            return look(prepared)


def looked(prepared: Prepared) -> tuple[Any, ...]:
    """All that a restore gives, and all that the receipt says."""
    document = prepared.checkpoint.document()
    for part in document["transcript"]["parts"]:
        del part["segments"]
    return document, prepared.redactor.receipt().document(), prepared.compaction, type(prepared.based)


def checkpoint(messages: Messages, **changes: Any) -> Checkpoint:
    state = State("r", "r", NOW, messages=jsonio.taken(messages), **changes)
    return state.maker(())()


@pytest.fixture
def remembered() -> Iterator[Remembered]:
    made = Remembered()
    yield made
    made.close()


@dataclass
class Counted:
    """Saves that went on in redaction, and in compaction."""

    redacted: int = 0
    compacted: int = 0


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """What goes on, as it is decided."""
    made = Counted()
    redact, adopted = GrowingPass.redact, compaction._Compaction._adopted

    def redacting(self: GrowingPass, part: TranscriptPart, ledger: Ledger) -> TranscriptPart:
        found = redact(self, part, ledger)
        made.redacted += self._keeping.same > 0
        return found

    def adopting(self: Any, *arguments: Any) -> Any:
        found = adopted(self, *arguments)
        made.compacted += found is not None
        return found

    monkeypatch.setattr(GrowingPass, "redact", redacting)
    monkeypatch.setattr(compaction._Compaction, "_adopted", adopting)
    return made


@pytest.mark.parametrize(
    ("seed", "dialect"), [*((seed, "anthropic-messages") for seed in range(5)), (5, "opaque")]
)
def test_saves_that_go_on_give_what_saves_that_begin_anew_give(
    seed: int, dialect: str, setup: Setup, remembered: Remembered, counted: Counted
) -> None:
    steps = Steps(seed)
    late = seed % 2 == 1
    one, other = Saver(setup, remembered, 9, late), Saver(setup, None, 9, late)
    for _ in range(14):
        steps.go_on()
        made = checkpoint(steps.messages, dialect=dialect)
        assert one.save(made, looked) == other.save(made, looked)
    assert counted.redacted > 3, counted
    assert counted.compacted > 3 or dialect == "opaque", counted


def texts(prepared: Prepared) -> bytes:
    return b"\n".join(prepared.checkpoint.transcript.parts[0].items.lines())


def test_what_becomes_known_is_taken_out_of_what_was_saved_before(
    setup: Setup, remembered: Remembered, counted: Counted
) -> None:
    """It stands bare in an old message, and only a new one says what it is."""
    steps, secret = Steps(20), password(99)
    steps.messages[2:2] = [{"role": "user", "content": f"try {secret} first"}]
    saver = Saver(setup, remembered)
    made = checkpoint(steps.messages, dialect="anthropic-messages")
    assert secret.encode() in saver.save(made, texts), "nobody knows yet that it is one"
    steps.messages += [*steps.turn(), {"role": "user", "content": f"DB_PASSWORD={secret}"}]
    for known in range(2):
        made = checkpoint(steps.messages, dialect="anthropic-messages")
        assert secret.encode() not in saver.save(made, texts)
        assert counted.redacted == known, "all is redacted anew once, and what came out is gone on from"
        steps.messages += steps.turn()


def test_a_save_that_fails_leaves_nothing_to_go_on_from(setup: Setup, remembered: Remembered) -> None:
    steps = Steps(21)
    saver = Saver(setup, remembered)
    saver.save(checkpoint(steps.messages), looked)
    assert remembered.transcript is not None
    folder = remembered.transcript.scratch.path

    def fail(_: Prepared) -> None:
        raise StoreFullError("no room")

    with pytest.raises(StoreFullError):
        saver.save(checkpoint(steps.messages), fail)
    assert remembered.transcript is None
    assert not folder.exists()
    saver.save(checkpoint(steps.messages), looked)


@pytest.mark.parametrize("what", ["folder", "files", "tape"])
def test_what_somebody_removed_is_made_anew(setup: Setup, remembered: Remembered, what: str) -> None:
    """As a cleaner of temporary files does."""
    steps = Steps(24)
    one, other = Saver(setup, remembered), Saver(setup, None)
    for _ in range(4):
        steps.messages += steps.turn()
        made = checkpoint(steps.messages, dialect="anthropic-messages")
        assert one.save(made, looked) == other.save(made, looked)
        assert remembered.transcript is not None
        place = remembered.transcript.scratch.path
        if what == "folder":
            shutil.rmtree(place)
            continue
        for path in place.iterdir():
            if (what == "tape") == path.name.endswith(("-redacted", "-again")):
                path.unlink()


@pytest.mark.parametrize("how", ["another text", "no JSON", "shorter", "a link"])
def test_what_somebody_wrote_to_is_made_anew(setup: Setup, remembered: Remembered, how: str) -> None:
    steps = Steps(24)
    one, other = Saver(setup, remembered), Saver(setup, None)
    for _ in range(4):
        steps.messages += steps.turn()
        made = checkpoint(steps.messages, dialect="anthropic-messages")
        assert one.save(made, looked) == other.save(made, looked)
        assert remembered.transcript is not None
        assert remembered.transcript.grown is not None
        tape = remembered.transcript.grown.tape
        data = tape.read_bytes()
        changed = data.replace(b"word1", b"WORD1")
        assert changed != data
        kept = tape.rename(tape.with_name("kept"))
        if how == "a link":
            tape.symlink_to(kept)
        else:
            written = {"another text": changed, "no JSON": b"?" * len(data), "shorter": data[:-1]}
            tape.write_bytes(written[how])


def test_only_what_a_later_save_needs_stays_on_the_disk(setup: Setup, remembered: Remembered) -> None:
    steps = Steps(22)
    saver = Saver(setup, remembered)
    for _ in range(6):
        steps.messages += steps.turn()
        saver.save(checkpoint(steps.messages, dialect="anthropic-messages"), looked)
    held = remembered.transcript
    assert held is not None
    assert held.grown is not None
    members = [one for kept in held.kept for one in (*kept.members, *kept.artifacts.members)]
    needed = {held.grown.tape, *(one.source for one in members)}
    left = {path for path in held.scratch.path.iterdir() if path.name != ".scratch"}
    assert left == needed
    remembered.close()
    assert not held.scratch.path.exists()


@pytest.mark.parametrize("ended", [False, True])
def test_a_writer_that_ends_leaves_no_files(setup: Setup, ended: bool) -> None:
    spool = open_spool(setup).of("r", "r")
    writer = writing.writer(setup, spool=spool)
    made = checkpoint(Steps(23).messages)
    assert writer.save(writing.snapshot("one", make=lambda: made), stored=True)
    assert list(spool.folder.glob(f"{PREFIX}*")), "what the next save goes on from"
    if ended:
        last = made.model_copy(update={"outcome": "succeeded"})
        assert writer.save(writing.snapshot("last", make=lambda: last), stored=True)
        assert not list(spool.folder.glob(f"{PREFIX}*")), "nothing comes after"
    assert writer.close()
    assert not list(spool.folder.glob(f"{PREFIX}*"))
