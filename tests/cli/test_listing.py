"""Finding a run in a list, and where it came from."""

from __future__ import annotations

import json
from pathlib import Path

from cli.conftest import Command

OBJECTIVE = "Mend the nightly import of prices, then say what was wrong with it and who has to know of it"
IDS = ("first", "second")


def archived(command: Command, work: Path, objective: str = OBJECTIVE, *options: str) -> None:
    assert command("init", work / "store").code == 0
    for run in IDS:
        path = work / f"{run}.json"
        messages = [{"role": "user", "content": objective}, {"role": "assistant", "content": "Done."}]
        path.write_text(json.dumps(messages))
        assert command("archive", path, "--run-id", run, *options).code == 0


def test_a_pipe_has_four_more_columns_with_long_and_none_without(command: Command, home: Path) -> None:
    archived(command, home / "work")
    records = {one["run"]: one for one in command("list", "--json").json["runs"]}
    plain, long = command("list").rows, command("list", "--long").rows
    assert {len(row) for row in plain} == {10}
    assert [row[:10] for row in long] == plain
    for row in long:
        record = records[row[0]]
        assert row[10:12] == [record["checkpoint_at"], record["dialect"]]
        assert row[12:] == [OBJECTIVE, "0"]
    assert len(long) == len(IDS)


def test_a_terminal_shows_the_objective_where_it_has_room(command: Command, home: Path) -> None:
    archived(command, home / "work")
    wide = command("list", terminal=True, columns=100).out
    assert "OBJECTIVE" in wide
    assert "Mend the nightly" in wide
    assert "who has to know of it" not in wide
    assert max(map(len, wide.splitlines()[2:])) <= 100
    narrow = command("list", terminal=True, columns=70).out
    assert "OBJECTIVE" not in narrow
    long = command("list", "--long", terminal=True, columns=120).out
    for column in ("STATE (UTC)", "DIALECT", "OBJECTIVE"):
        assert column in long.splitlines()[0]
    assert max(map(len, long.splitlines()[2:])) <= 120
    assert "Mend…" in command("list", "--long", terminal=True, columns=70).out


def test_a_note_that_needs_the_room_has_it(command: Command, home: Path) -> None:
    archived(command, home / "work", OBJECTIVE, "--note", "half done, waits for the prices of last week")
    assert "OBJECTIVE" not in command("list", terminal=True, columns=100).out
    assert "OBJECTIVE" in command("list", terminal=True, columns=160).out


def test_an_objective_as_short_as_a_word_needs_little_room(command: Command, home: Path) -> None:
    archived(command, home / "work", "Mend")
    assert "OBJECTIVE" in command("list", terminal=True, columns=80).out


def test_a_swept_run_says_what_it_is_from(command: Command, home: Path) -> None:
    archived(command, home / "work")
    run = home / "runs" / "job-7"
    run.mkdir(parents=True)
    (run / "log.txt").write_text("what happened\n")
    manifest = {"format": 1, "run": "job-7", "task": "night", "transcript": ["log.txt"], "outcome": "failed"}
    (run / "archiver-run.json").write_text(json.dumps(manifest))
    swept = command("sweep", "--source", f"folder={home / 'runs'}")
    assert swept.code == 0, swept.err
    for words in (["show", "job-7"], ["restore", "job-7", "--plan"]):
        assert ["from", "a sweep of folder"] in command(*words).rows
        assert "from a sweep of folder" in " ".join(command(*words, terminal=True).out.split())
        assert "a sweep of" not in command(*(IDS[0] if one == "job-7" else one for one in words)).out
    claimed = command("restore", "job-7", "--claim", "--into", home / "taken")
    assert claimed.code == 0, claimed.err
    assert ["from", "a sweep of folder"] in command("show", "job-7").rows
