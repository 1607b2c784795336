"""Write the golden store of incremental bundles, once for each release: `make_increments.py FOLDER`.

One run of four checkpoints: a full bundle, two that are based on those before, and the full one of its end.
"""

from __future__ import annotations

import platform
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from keys import STORE_ID
from make_store import NOW, golden_setup

from archiver import archive, layout, records
from archiver.archive import Options, Source
from archiver.epochs import Epochs
from archiver.model import Checkpoint, Items, Outcome, Transcript, TranscriptPart
from archiver.position import Position
from archiver.redact import new_key
from archiver.store import open_store

RUN = "growing"


def messages(turns: int) -> list[dict[str, Any]]:
    """The conversation after so many turns."""
    found: list[dict[str, Any]] = [{"role": "user", "content": f"Count. {'Take your time. ' * 50}"}]
    for turn in range(turns):
        found.append({"role": "assistant", "content": f"{turn}, shall I go on?"})
        found.append({"role": "user", "content": "Yes."})
    return found


def state(turns: int, outcome: Outcome) -> Checkpoint:
    part = TranscriptPart(name="messages.jsonl", items=Items.of(messages(turns)))
    return Checkpoint(
        run_id=RUN,
        task_id="count",
        objective="Count",
        note=f"{turns} turns",
        turn=turns,
        outcome=outcome,
        created_at=NOW,
        checkpoint_at=NOW + timedelta(minutes=turns),
        transcript=Transcript(dialect="anthropic-messages", parts=(part,)),
    )


def main(folder: Path) -> None:
    platform.platform = lambda *_: "Linux"
    platform.python_version = lambda: "3.11"
    store = open_store(str(folder), make=True)
    store.create(layout.STORE, [layout.store_document(STORE_ID)], retention="hold")
    setup, epochs = golden_setup(folder), Epochs(200)
    place = Position(RUN, redaction_key=new_key())
    outcomes: tuple[Outcome, ...] = ("running", "running", "running", "succeeded")
    for turns, outcome in enumerate(outcomes, start=1):
        now = NOW + timedelta(minutes=turns)
        with archive.prepare(
            Source(checkpoint=state(turns, outcome)),
            setup,
            lambda _, place=place: place,  # type: ignore[misc]
            options=Options(capture=False),
            now=lambda now=now: now,  # type: ignore[misc]
            choose=lambda terms, outcome, now=now: epochs.choose(terms, outcome, now),  # type: ignore[misc]
        ) as prepared:
            record = archive.put(prepared, setup, now=lambda now=now: now).record  # type: ignore[misc]
        assert prepared.terms is not None
        assert record.bundle is not None
        packed, marks = prepared.sealed.packed, prepared.marks
        epochs.sealed(record.seq, packed, marks, prepared.terms, now, prepared.based)
        epochs.acknowledged(record.seq, record.bundle.name)
        sha256 = records.body_sha256(record)
        place = Position(RUN, record.seq + 1, sha256, record, place.redaction_key)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
