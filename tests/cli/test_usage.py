"""What the help of every command says of how it is called."""

from __future__ import annotations

import re
from typing import Any

import pytest
from typer.main import get_command

from archiver.cli.app import COMMANDS, single

from .conftest import Command

ASKED_WHY = {"restore", "export", "drill", "rekey", "lifecycle apply"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_usage_line_is_that_of_a_manual(command: Command, name: str) -> None:
    usage = command(*name.split(" "), "--help").out.splitlines()[0]
    words = r"( \[OPTIONS\])?( [A-Z]+(\.\.\.)?| \[[A-Z]+\](\.\.\.)?)*"
    assert re.fullmatch(rf"Usage: archiver {name}{words}", usage), usage


def test_a_reason_is_given_with_the_same_option_everywhere() -> None:
    commands: dict[str, Any] = {name: get_command(single(name)) for name in COMMANDS}
    options = {
        name: {spelling for one in command.params for spelling in one.opts}
        for name, command in commands.items()
    }
    signed = {"hold", "release", "rm", "erase"}  # what others are shown as the reason
    assert {name for name, known in options.items() if "--because" in known} == ASKED_WHY | signed
    assert {name for name, known in options.items() if "--reason" in known} == signed
    assert not [name for name, known in options.items() if "--why" in known]
