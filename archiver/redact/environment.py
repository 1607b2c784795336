"""Values that the environment shows to be secret."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from archiver.redact.exact import ExactValue, secret_names
from archiver.redact.names import Names
from archiver.redact.secretfiles import values

_PLACES: Final = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK"})
"""Variables of the shell that hold places, whatever their names say."""


def exact_from_environment(
    environ: Mapping[str, str], extra_names: Iterable[str] = (), *, names: Names | None = None
) -> list[ExactValue]:
    """The values of environment variables whose names say secret (guessed), and of those named.

    Passwords of URLs, and secrets in a value that is JSON, count whatever the variable is called. What is too
    short or too common to be searched for is given too, so that the receipt can name it.
    """
    return list(_found(environ, set(extra_names), names or secret_names()))


def _found(environ: Mapping[str, str], wanted: set[str], names: Names) -> Iterator[ExactValue]:
    for name, value in sorted(environ.items()):
        if not value or name in _PLACES:
            continue
        if name in wanted:
            yield ExactValue(name, value)
        says = names.says(name) is not None
        if says and name not in wanted:
            yield ExactValue(name, value, guessed=True)
        inner = {found for _, found in values.secrets_in(name, value, names, eager=False)}
        for found in sorted(inner - {value, value.strip()}):
            yield ExactValue(name, found, guessed=True)
