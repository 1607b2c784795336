"""The memory outside the store that the settings ask for."""

from __future__ import annotations

from archiver.config import Settings, state_home
from archiver.errors import ConfigError
from archiver.setup.evidence import is_exported
from archiver.witness import FolderWitness


def witness_of(settings: Settings, url: str = "") -> tuple[FolderWitness | None, tuple[str, ...]]:
    """The witness of the store at `url`, None where none is wanted or none can be; and what to warn of.

    An exported run is behind what was seen once the run has gone on, and has none of the other runs: that is
    no step back. Its description beside the configured store, whose id is known, silences nobody.

    A user without a home can still archive and restore: it is only not noticed that a store was taken back.
    """
    if not settings.trust.use_witness:
        return None, ()
    if settings.store.id is None and is_exported(url):
        return None, (
            "this is an exported run: whether it went on since is not known, and nothing of it is remembered",
        )
    if settings.trust.witness is not None:
        return FolderWitness(settings.trust.witness), ()
    try:
        return FolderWitness(state_home() / "witness"), ()
    except ConfigError as error:
        warning = (
            f"{error}, so nothing is remembered of runs and a step back of the store is not noticed: "
            "name a folder with trust.witness"
        )
        return None, (warning,)
