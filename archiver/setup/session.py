"""What one command has done so far, as the audit needs it; all copies of a setup share it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from archiver.shellwords import word

if TYPE_CHECKING:
    from archiver.redact import ExactValue, Redactor


@dataclass(slots=True)
class Session:
    """Lines that were written and warnings that were given; safe to share between threads."""

    command: str = ""
    """The command and the names of its options; empty in a program of somebody's own."""
    flags: tuple[tuple[str, str], ...] = ()
    """Options of the command, with their values, that name the configuration, the store and the keys: a
    command that is advised needs them too."""
    within: str = ""
    """The action that all further ones are a part of."""
    tasks: dict[str, str] = field(default_factory=dict)
    """Tasks of the runs whose bundles were opened."""
    opened: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    """Opened bundles by run, identity, and whether that is a break-glass one; not yet told in the store."""
    loud: Counter[str] = field(default_factory=Counter)
    """Bundles that a break-glass identity opened, by identity, and nobody was warned of yet."""
    warnings: list[str] = field(default_factory=list)
    """What is to be said at the end of the command."""
    local_only: str = ""
    """Why nothing is put into the store; said once."""
    local_since: float = 0.0
    """When that was found out last, on the clock that only goes forward."""
    redactor: Redactor | None = None
    """What texts are redacted with, once it was needed."""
    values: tuple[ExactValue, ...] | None = None
    """Values of environment and files that are known to be secret, while many runs are saved in a row."""
    lock: threading.RLock = field(default_factory=threading.RLock)

    def words(self, known: Collection[str] = ()) -> tuple[str, ...]:
        """The flags as words of a shell; of a command that does not know all of them, those that it knows."""
        return tuple(f"{name} {word(value)}" for name, value in self.flags if not known or name in known)
