"""Write the golden store of the current schema version, once for each release: `make_store.py FOLDER`.

Released golden stores are never written again: they prove that what was archived then can be restored now.
"""

from __future__ import annotations

import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

from keys import STORE_ID, identity, signing_key

from archiver import layout
from archiver.archive import Given, Options, Source, archive
from archiver.config import Settings
from archiver.model import (
    Approval,
    Budget,
    Checkpoint,
    Effect,
    Evidence,
    Items,
    Plan,
    Step,
    SubtaskResult,
    Transcript,
    TranscriptPart,
)
from archiver.setup import Setup
from archiver.store import open_store
from archiver.writers import Writers

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
SAMPLE = next((Path(__file__).parents[2] / "examples" / "sample-run").glob("*.jsonl"))


def golden_setup(folder: Path) -> Setup:
    """The golden store with its keys, as a restorer would have them configured."""
    key = signing_key()
    return Setup(
        store=open_store(str(folder)),
        store_id=STORE_ID,
        recipients=(identity().recipient,),
        identities=(identity(),),
        signing_key=key,
        writers=Writers.load(None, own=key.public),
        settings=Settings(),
    )


def made_by_hand() -> Checkpoint:
    """A checkpoint in which every field says something."""
    messages = [
        {"role": "user", "content": "Deploy the preview."},
        {"role": "assistant", "content": [{"type": "text", "text": "Shall I go on?"}]},
    ]
    return Checkpoint(
        run_id="by-hand/1",
        task_id="deploy",
        user_id="u1",
        objective="Deploy the preview",
        iteration=3,
        turn=1,
        phase="waiting",
        note="a person has to allow it",
        created_at=NOW,
        checkpoint_at=NOW,
        budget=Budget(cost=20.0, tokens=100_000),
        plan=Plan(
            completed=(Step(id="1", title="Build"),),
            remaining=(Step(id="2", title="Deploy"),),
            pending_approvals=(Approval(id="a1", question="Deploy now?", asked_at=NOW),),
        ),
        results=(SubtaskResult(key="build", output={"image": "preview:3"}, files=("dist/app.tar",)),),
        evidence=(Evidence(command="make test", exit_status=0, at=NOW, summary="31 passed"),),
        effects=(
            Effect(
                key="push-3",
                tool="registry.push",
                arguments={"tag": 3},
                result="ok",
                status="confirmed",
                at=NOW,
            ),
            Effect(
                key="mail-3", tool="mail.send", arguments={"to": "team"}, status="proposed", replayable=True
            ),
        ),
        summary="Built and pushed; the deployment waits for a person.",
        transcript=Transcript(
            dialect="anthropic-messages",
            parts=(TranscriptPart(name="messages.jsonl", items=Items.of(messages)),),
        ),
    )


def main(folder: Path) -> None:
    # What machine made the golden store is nobody's business.
    platform.platform = lambda *_: "Linux"
    platform.python_version = lambda: "3.11"
    store = open_store(str(folder), make=True)
    store.create(layout.STORE, [layout.store_document(STORE_ID)], retention="hold")
    setup = golden_setup(folder)

    def save(source: Source, **given: str) -> None:
        options = Options(given=Given(**given), keep_full=True)  # type: ignore[arg-type]  # outcomes among them
        archive(source, setup, options=options, now=lambda: NOW)

    save(Source(paths=(SAMPLE,)), run_id="sample", note="first")
    save(Source(paths=(SAMPLE,)), run_id="sample", note="second", outcome="failed")
    save(Source(checkpoint=made_by_hand()))
    note = folder.parent / "note.txt"
    note.write_text("kept whole\n", encoding="utf-8")
    save(Source(paths=(note,)), run_id="text", outcome="succeeded")
    note.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
