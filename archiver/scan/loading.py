"""The redactor that the settings ask for, for files and for what is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from archiver.redact import FileRedactor, new_key
from archiver.setup import chosen_rules, known_values

if TYPE_CHECKING:
    from archiver.config import Settings
    from archiver.setup import Setup


def redactor_of(settings: Settings) -> FileRedactor:
    """With a key of its own, which nobody keeps: fingerprints and placeholders of it are good for one use."""
    return FileRedactor.load(new_key(), exact=known_values(settings), chosen=chosen_rules(settings))


def keyed_redactors(setup: Setup) -> Callable[[bytes], FileRedactor]:
    """Makes redactors with the keys of runs, all with the same rules and known values."""
    loaded = FileRedactor.load(new_key(), exact=setup.exact_values(), chosen=chosen_rules(setup.settings))
    return loaded.with_key
