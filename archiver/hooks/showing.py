"""What is shown of a settings file, without credentials: its `env` and commands of others may hold some."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from archiver.audit.cleaning import NAME
from archiver.errors import RedactionUnavailableError

_PLAIN: Final = re.compile(rf"'?-{{0,2}}(?:/\.?)?{NAME.pattern}(?:/\.?{NAME.pattern})*'?")
_UNSEARCHED: Final = "[not shown: it could not be searched for credentials]"


def shown(lines: Sequence[str]) -> list[str]:
    """The same lines, with credentials replaced; lines of which nothing is known are not shown."""
    from archiver.redact import Redactor, new_key

    try:
        return Redactor.load(new_key()).text("\n".join(lines)).split("\n")
    except RedactionUnavailableError:
        return [_UNSEARCHED]


def command_shown(command: str) -> str:
    """A command, with credentials replaced; one of plain words is known to have none, and loads no rules."""
    if all(_PLAIN.fullmatch(word) for word in command.split(" ")):
        return command
    return " ".join(shown(command.split("\n")))
