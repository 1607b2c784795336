"""What these tests share: runs with everything, and what is left of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from e2e.rekeying import to

from archiver import age, audit, inventory, layout
from archiver.archive import Given, Options, Source, archive
from archiver.model import Record
from archiver.model.checkpoint import Outcome
from archiver.rekey import rekey
from archiver.setup import Setup
from archiver.sign import SigningKey
from archiver.store import Versioned
from archiver.writers import Administrator, Writer, Writers

RUN = "r"
ALL = ("bundle", "effect", "audit", "index", "note", "record")


def save(setup: Setup, path: Path, run: str = RUN, outcome: Outcome = "succeeded") -> Record:
    given = Given(run_id=run, outcome=outcome)
    return archive(Source(paths=(path,)), setup, options=Options(given=given)).record


def there(setup: Setup, run: str = RUN, *kinds: str) -> list[str]:
    """Names of all that lies under the run; of a bucket with versions also what is hidden, and markers."""
    found = inventory.of_run(setup.store, run, kinds or ALL)  # type: ignore[arg-type]
    return sorted({item.name for item in found})


def tags(setup: Setup, run: str = RUN) -> dict[tuple[str, str | None], str | None]:
    """The tag of every version that a hold is about."""
    items = inventory.of_run(setup.store, run, ("bundle", "effect", "audit", "record"))
    return {
        (item.name, item.version): inventory.class_of(setup.store, item) for item in items if not item.deleted
    }


def everything(setup: Setup, path: Path, run: str = RUN) -> None:
    """A run with checkpoints, an effect, audit objects, and a note of a rekey."""
    save(setup, path, run, "running")
    save(setup, path, run)
    audit.note(setup, "export", run=run, detail={"objects": 3})
    audit.note(setup, "restore", run=run, seq=2, detail={"into": "out"})
    own = [one for one in setup.identities if isinstance(one, age.X25519Identity)]
    (done,) = rekey([run], to(setup, *own, age.X25519Identity.generate()), reason="new keys")
    assert done.error is None, done.error
    put_effect(setup, run)


def put_effect(setup: Setup, run: str) -> None:
    setup.store.create(layout.effect_name(run, "ab" * 16), [b"sealed"], retention="record")


def with_stranger(setup: Setup) -> Setup:
    """Somebody whose notes nobody believes but themselves."""
    key = SigningKey.from_seed(b"\7" * 32)
    own = setup.require_signing_key().public
    writers = Writers((Writer(name="ci", key=own),), None, (Administrator(name="stranger", key=key.public),))
    return replace(setup, signing_key=key, writers=writers)


def versioned(setup: Setup) -> bool:
    return isinstance(setup.store, Versioned)
