"""What the audit is told of a command, and what the command's end says of the audit."""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import TYPE_CHECKING

from archiver.cli import output

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from archiver.setup import Setup

_OPTION = re.compile(r"(--[a-z][a-z-]{0,30}|-[a-zA-Z])(=.*)?", re.DOTALL)

_command: ContextVar[str] = ContextVar("_command", default="")
_opened: ContextVar[list[Setup] | None] = ContextVar("_opened", default=None)


def begin(name: str, arguments: Sequence[str], known: Collection[str]) -> None:
    """A command begins: of the arguments its own words, which are `known`, and the names of options are kept.

    Values are not: they may be credentials, and what matters of them is told otherwise.
    """
    words = [one for one in arguments if one in known][:1]
    at = arguments.index(words[0]) if words else 0
    if words and " ".join(arguments[at : at + 2]) in known:
        words = list(arguments[at : at + 2])
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    named = [found[1] for one in options if (found := _OPTION.fullmatch(one))]
    _command.set(" ".join([*(() if words == [name] else (name,)), *words, *dict.fromkeys(named)]))
    _opened.set([])


def opened(setup: Setup) -> None:
    """The command works with this store."""
    setup.session.command = _command.get()
    found = _opened.get()
    if found is not None:
        found.append(setup)


def end() -> None:
    """The command is over, or failed: what it opened goes into the store, and warnings are said."""
    found = _opened.get() or []
    _opened.set(None)
    if not found:
        return
    from archiver import audit

    for setup in found:
        for warning in audit.finish(setup):
            output.problem("warning", warning, None, style="1;33")
