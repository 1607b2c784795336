"""What has to be said about new keys, once."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from archiver.setup import Initialised, Keys


def first_use(made: Initialised) -> Iterator[str]:
    """What was made without being asked for in so many words."""
    yield from created(made)
    yield from backup(made.keys)
    yield beside_store(made)
    yield ""


def created(made: Initialised) -> Iterator[str]:
    """What is new and what was there."""
    yield f"{'New' if made.new_store else 'Present'} store: {made.store}"
    if made.config is not None:
        yield f"New configuration: {made.config}"
    yield f"{'New' if made.new_identity else 'Present'} identity: {made.keys.identity_file}"
    yield f"{'New' if made.new_signing_key else 'Present'} signing key: {made.keys.signing_file}"


def backup(keys: Keys, config: Path | None = None) -> Iterator[str]:
    """How to keep the keys; `config` is the file that says how a store on a server is reached."""
    yield (
        "Back up both key files now, offline or in a password manager: without the identity nothing that is "
        "saved can be opened, without the signing key no run can be continued."
    )
    yield f"  cp -p {shlex.join(map(str, (keys.identity_file, keys.signing_file)))} /media/backup/"
    store, needs = ("--config FILE", f"{config}, ") if config else ("--store STORE", "")
    yield (
        f"Whoever restores on another machine needs {needs}the identity and {keys.writers_file} (public): "
        f"restore RUN {store} --identity FILE --writers FILE."
    )


def left(made: Initialised) -> Iterator[str]:
    """Probes that stay: that these credentials may not delete is as it should be."""
    if made.left:
        yield (
            "These credentials may not delete, which is the safe case for a writer; so the probes stay, "
            "tagged `live`, and nothing ever reads them:"
        )
        for name in made.left:
            yield f"  {name}"


def beside_store(made: Initialised) -> str:
    """The plain truth about a key on the same disk."""
    return (
        f"A key beside its store protects nothing locally: whoever can read {made.keys.identity_file.parent} "
        f"and {made.store} can read all that is saved. Encryption protects once the identity lies elsewhere."
    )


def public_facts(keys: Keys) -> dict[str, str]:
    """What may be told of the keys, as JSON."""
    return {
        "identity_file": str(keys.identity_file),
        "signing_file": str(keys.signing_file),
        "recipient": keys.recipient,
        "fingerprint": keys.fingerprint,
        "public": keys.public,
        "writers_file": str(keys.writers_file),
    }
