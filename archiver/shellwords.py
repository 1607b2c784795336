"""Words of commands that people copy: a shell reads exactly what they hold, and they can be printed."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable


def word(text: str) -> str:
    """The text as one word of a shell, the same in sh, bash, zsh and ksh, at a prompt and in a file.

    Where something in it cannot be printed (a line end, a control character, bytes of a file name that are no
    text, a space of another kind) a shell makes it with `printf`.
    """
    if text.isprintable():
        return shlex.quote(text)
    made = "".join(_shown(character) for character in text)
    if text[0] == "-":
        made = f"\\055{made[1:]}"  # no option of printf
    if text[-1] != "\n":
        return f"\"$(printf '{made}')\""
    # What a shell takes from a command loses the line ends behind it. bash, zsh and ksh read this; for others
    # it is another word, but one word.
    return f"$'{made.replace('%%', '%')}'"


def run_word(run: str) -> str:
    """A run id as the last word of a command: nothing that begins with a dash is taken for an option."""
    return f"-- {word(run)}" if run.startswith("-") else word(run)


def command(program: str, run: str, options: Iterable[str]) -> str:
    """A command about a run, whose options are words of a shell already.

    The run stands before them, so that none of them seems to take it for its value; a run that begins with a
    dash stands behind all of them, where none is an option.
    """
    words = [program, *options, run_word(run)] if run.startswith("-") else [program, word(run), *options]
    return " ".join(words)


def _shown(character: str) -> str:
    """A character of a format of `printf` between quotes; `!` means something to shells at a prompt."""
    if character == "%":
        return "%%"
    if character.isprintable() and character not in "\\'!":
        return character
    try:
        data = os.fsencode(character)
    except UnicodeEncodeError:  # half of a pair: no file name and no argument can hold it
        data = character.encode("utf-8", "surrogatepass")
    return "".join(f"\\{byte:03o}" for byte in data)
