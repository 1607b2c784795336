"""A run is taken over and continued on another machine, by the commands that docs/RESTORE.md gives."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from archiver.config import config_home, data_home, state_home

from .conftest import Command, Outcome
from .test_commands import RUN, init, session, work

__all__ = ["work"]

DOC = Path(__file__).parents[2] / "docs" / "RESTORE.md"


def documented() -> list[list[str]]:
    """The commands of that part of the document."""
    part = DOC.read_text().partition("## On another machine\n")[2].partition("\n## ")[0]
    lines = [line for line in part.replace("\\\n", " ").split("\n") if line.startswith("    ")]
    return [shlex.split(line, comments=True) for line in lines]


@pytest.fixture
def stick(command: Command, work: Path, home: Path) -> Path:
    """The store and what is carried over; nothing else of the first machine is left."""
    init(command)
    assert command("archive", session(home / "first.jsonl", work)).code == 0
    carried = home / "stick"
    shutil.copytree(config_home() / "keys", carried)
    shutil.copytree(data_home() / "store", home / "store")
    shutil.move(config_home(), home / "first")
    shutil.rmtree(data_home())
    shutil.rmtree(state_home())
    (carried / "signing.pem").unlink()
    return carried


def placed(word: str, places: dict[str, str]) -> str:
    for name, place in places.items():
        if word == name or word.startswith(f"{name}/"):
            return place + word.removeprefix(name)
    return word


def go_on(command: Command, home: Path, work: Path, *, saves: bool = True) -> list[Outcome]:
    """Run what the document says, with the places of this test; up to the claim unless it `saves`."""
    places = {
        "/media/stick": str(home / "stick"),
        "own": str(home / "own"),
        "STORE": str(home / "store"),
        "FOLDER": str(home / "folder"),
        "SESSION": str(home / "continued.jsonl"),
        "RUN": RUN,
    }
    done = []
    for written in documented():
        words = [placed(word, places) for word in written]
        if words[0] == "cat":
            *parts, sign, target = words[1:]
            assert sign == ">"
            Path(target).write_text("".join(Path(part).read_text() for part in parts))
            continue
        assert words[0] == "archiver"
        if "archive" in words and not saves:
            break
        if "archive" in words:
            session(home / "continued.jsonl", work, said="More.")
        done.append(command(*words[1:]))
    return done


def test_a_run_goes_on_there_with_a_key_of_its_own(
    command: Command, work: Path, home: Path, stick: Path
) -> None:
    made, restored, saved = go_on(command, home, work)
    assert [outcome.code for outcome in (made, restored, saved)] == [0, 0, 0], restored.err + saved.err
    assert saved.rows[0][:2] == [RUN, "3"]
    assert not config_home().exists()
    assert not data_home().exists()

    # The first machine believes the claim once it has the list, and cannot go on without one of its own.
    shutil.move(home / "first", config_home())
    both = ["--store", home / "store", "--writers", home / "own" / "both.toml"]
    assert command("restore", RUN, "--plan", "--store", home / "store").code == 3
    plan = command("restore", RUN, "--plan", *both, "--json")
    assert (plan.code, plan.json["seq"]) == (0, 3)
    late = command("archive", session(home / "late.jsonl", work, said="Late."), *both)
    assert late.code == 3
    assert "not with the own one" in late.err


def test_without_the_list_a_save_says_what_it_takes(
    command: Command, work: Path, home: Path, stick: Path
) -> None:
    go_on(command, home, work, saves=False)
    arguments = ["archive", session(home / "t.jsonl", work, said="Even more."), "--store", home / "store"]
    arguments += ["--identity", stick / "identity.txt", "--signing-key", home / "own" / "signing.pem"]
    refused = command(*arguments)
    assert refused.code == 3
    assert "name it with --writers" in refused.err
    assert command(*arguments, "--writers", home / "own" / "both.toml").code == 0
