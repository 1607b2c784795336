"""Words of commands that people copy: a shell reads exactly what they hold, and they can be printed."""

from __future__ import annotations

import os
import shlex

from archiver.safetext import one_line


def word(text: str) -> str:
    """The text as one word of a shell.

    Where something in it cannot be shown as it is (a line end, a control character, bytes of a file name that
    are no text), as `$'…'`, which bash, zsh and ksh read.
    """
    if one_line(text) == text:
        return shlex.quote(text)
    return "$'" + "".join(_shown(character) for character in text) + "'"


def run_word(run: str) -> str:
    """A run id as the last word of a command: nothing that begins with a dash is taken for an option."""
    return f"-- {word(run)}" if run.startswith("-") else word(run)


def _shown(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if one_line(character) == character:
        return character
    try:
        data = os.fsencode(character)
    except UnicodeEncodeError:  # half of a pair: no file name and no argument can hold it
        data = character.encode("utf-8", "surrogatepass")
    return "".join(f"\\{byte:03o}" for byte in data)
