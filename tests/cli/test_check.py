"""`archiver check` and `archiver repair`: files as they lie there, without a store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transcripts.samples import anthropic_messages, line_of, write_project

from .conftest import Command

HEAVY = ("boto3", "botocore", "hyperscan", "cryptography", "zstandard", "rich")
PROBE = """
import sys
from archiver.cli import main
sys.argv = ["archiver", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    print(end.code, *sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A session with sub-agents; its folder."""
    return write_project(tmp_path / "project").parent


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def damage(path: Path, line: int = 3) -> bytes:
    """Tear a line, and give what the file held."""
    before = path.read_bytes()
    lines = before.splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:line], lines[line][:50] + b"\n", *lines[line + 1 :]]))
    return before


def session_of(project: Path) -> Path:
    return next(path for path in project.glob("*.jsonl") if not path.name.startswith("agent-"))


def agent_of(project: Path) -> Path:
    return next(project.rglob("subagents/agent-a1b2c3d.jsonl"))


def test_a_valid_session_is_said_to_be_valid(command: Command, project: Path) -> None:
    assert command("check", project) == command("check", project, "--quiet")
    assert command("check", project).code == 0
    shown = command("check", project, terminal=True)
    assert "claude-code" in shown.out
    assert "valid" in shown.out
    found = command("check", session_of(project), "--json").json
    assert found["exit_code"] == 0
    assert (found["transcripts"][0]["valid"], found["transcripts"][0]["files"]) == (True, 4)


def test_each_problem_has_a_line(command: Command, project: Path) -> None:
    damage(session_of(project))
    damage(agent_of(project))
    outcome = command("check", project)
    assert outcome.code == 4
    found = [(Path(row[0]).name, row[1], row[2], row[4]) for row in outcome.rows]
    assert found == [
        (session_of(project).name, "line 4, column 15", "broken_line", "mendable"),
        (session_of(project).name, "line 5", "dangling_parent", "mendable"),
        (agent_of(project).name, "line 4, column 15", "broken_line", "mendable"),
        (agent_of(project).name, "line 5", "dangling_parent", "mendable"),
    ]
    assert command("check", project, "--quiet").out == ""
    assert command("check", project, "--quiet").code == 4
    said = command("check", project, "--json").json["transcripts"][0]["problems"]
    assert [(one["line"], one["code"], one["mendable"]) for one in said] == [
        (4, "broken_line", True),
        (5, "dangling_parent", True),
        (4, "broken_line", True),
        (5, "dangling_parent", True),
    ]


def test_several_at_once_and_one_that_is_not_there(command: Command, project: Path, tmp_path: Path) -> None:
    damage(session_of(project))
    other = tmp_path / "notes.md"
    other.write_text("# notes\n")
    outcome = command("check", other, session_of(project), tmp_path / "nowhere.jsonl")
    assert outcome.code == 2
    assert "nowhere.jsonl cannot be read" in outcome.err
    assert "notes.md: of no known format" in outcome.err
    assert {row[2] for row in outcome.rows} == {"broken_line", "dangling_parent"}
    assert command("check", other).code == 2
    assert json.loads(command("check", other, "--json").out)["transcripts"][0]["valid"] is None
    assert command("repair", other).code == 2
    assert command("check", "").code == 2


def test_a_newer_checkpoint_is_not_judged(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"schema_version": 3, "task_id": "t", "goal": "g"}\n' * 2)
    for words in (["check", path], ["check", path, "--json"], ["repair", path]):
        outcome = command(*words)
        assert outcome.code == 5
        assert "schema version 3" in outcome.err


def test_a_session_of_a_newer_release_is_said_with_its_code(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    payload = {"id": "0199", "cwd": "/w", "history_mode": "of-tomorrow", "cli_version": "9.0.0"}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    lines = [
        {"timestamp": "2026-01-31T14:00:00Z", "type": kind, "payload": value}
        for kind, value in (("session_meta", payload), ("response_item", said))
    ]
    path.write_bytes(b"".join(line_of(line) + b"\n" for line in lines))
    outcome = command("check", path)
    assert [row[2] for row in outcome.rows] == ["unsupported_version"]
    assert outcome.code == 5
    assert command("repair", path).code == 4


def test_names_and_texts_cannot_steer_the_terminal(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "s\x1b[2J.jsonl"
    call = {"type": "tool_use", "id": "toolu_\x1b]0;x\x07", "name": "\x1b[31m", "input": {}}
    items = [{"role": "user", "content": "go"}, {"role": "assistant", "content": [call]}]
    path.write_bytes(b"".join(line_of(item) + b"\n" for item in items))
    for words in (["check", path], ["repair", path, "--dry-run"], ["repair", path]):
        for terminal in (False, True):
            outcome = command(*words, terminal=terminal)
            text = outcome.out + outcome.err
            assert "\x07" not in text
            assert "\x1b[2J" not in text
            assert "\x1b[31m" not in text
            assert "\x1b]" not in text
    (tmp_path / "s\x1b[2J.repaired").rename(tmp_path / "kept")


def test_repair_writes_a_new_folder(command: Command, project: Path) -> None:
    session = session_of(project)
    damage(session)
    before = tree(project)
    outcome = command("repair", session)
    assert outcome.code == 0
    assert [row[2:4] for row in outcome.rows] == [["broken_line", "dropped"], ["dangling_parent", "relinked"]]
    made = project / f"{session.stem}.repaired"
    assert {name: data for name, data in tree(project).items() if name in before} == before
    assert command("check", made).code == 0
    after = tree(made)
    assert set(after) == set(before)
    assert {name for name in before if after[name] != before[name]} == {session.name}
    again = command("repair", session)
    assert again.code == 3
    assert "is there already" in again.err
    assert tree(made) == after


def test_repair_into_a_folder_that_is_there(command: Command, project: Path, tmp_path: Path) -> None:
    damage(session_of(project))
    full, link, blank = tmp_path / "full", tmp_path / "link", tmp_path / "blank"
    full.mkdir()
    (full / "x").write_text("mine")
    blank.mkdir()
    link.symlink_to(blank)
    for folder in (full, link, full / "x"):
        assert command("repair", project, "--into", folder).code == 3
    assert command("repair", project, "--into", tmp_path / "no" / "such").code == 2
    assert (tree(full), tree(blank)) == ({"x": b"mine"}, {})
    assert command("repair", project, "--into", blank).code == 0
    assert session_of(project).name in tree(blank)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_dry_run_writes_nothing(command: Command, project: Path) -> None:
    damage(session_of(project))
    before = tree(project)
    outcome = command("repair", project, "--dry-run", "--json")
    assert outcome.code == 0
    assert [one["action"] for one in outcome.json["actions"]] == ["dropped", "relinked"]
    assert (outcome.json["written"], outcome.json["folder"]) == ([], None)
    assert tree(project) == before


def test_in_place_keeps_the_original_beside(command: Command, project: Path) -> None:
    session, agent = session_of(project), agent_of(project)
    damage(session)
    damage(agent)
    session.chmod(0o640)
    before = tree(project)
    assert command("repair", project, "--in-place").code == 0
    assert session.stat().st_mode & 0o777 == 0o640
    for path in (session, agent):
        name = str(path.relative_to(project))
        assert tree(project)[f"{name}.orig"] == before[name]
        assert tree(project)[name] != before[name]
    assert set(tree(project)) == {*before, *(f"{p.relative_to(project)}.orig" for p in (session, agent))}
    assert command("check", project).code == 0
    after = tree(project)
    assert command("repair", project, "--in-place").code == 0
    assert tree(project) == after


def test_in_place_never_takes_the_place_of_a_backup(command: Command, project: Path) -> None:
    session = session_of(project)
    damage(session)
    backup = session.with_name(session.name + ".orig")
    for make in (lambda: backup.write_text("mine"), lambda: backup.symlink_to(session)):
        make()
        before = tree(project)
        outcome = command("repair", session, "--in-place")
        assert outcome.code == 3
        assert "is there already" in outcome.err
        assert tree(project) == before
        backup.unlink()
    backup.hardlink_to(session)  # what is left of a run that was killed half-way
    assert command("repair", session, "--in-place").code == 0
    assert command("check", session).code == 0


def test_in_place_follows_a_link_to_the_file(command: Command, project: Path, tmp_path: Path) -> None:
    session = session_of(project)
    before = damage(session)
    named = tmp_path / "named.jsonl"
    named.symlink_to(session)
    assert command("repair", named, "--in-place").code == 0
    assert named.is_symlink()
    assert session.read_bytes() != before
    assert session.with_name(session.name + ".orig").exists()


def test_in_place_and_into_exclude_each_other(command: Command, project: Path, tmp_path: Path) -> None:
    assert command("repair", project, "--in-place", "--into", tmp_path / "x").code == 2


@pytest.mark.parametrize("where", [["--in-place"], ["--into"]])
def test_a_file_that_changes_meanwhile_is_left(
    where: list[str], command: Command, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody appends to the session just before the mended one would take its place."""
    from archiver.mending import placing

    session = session_of(project)
    damage(session)
    real = placing.write_native

    def append_first(*given: Any) -> None:
        real(*given)
        with session.open("ab") as file:
            file.write(b'{"type":"user"}\n')

    monkeypatch.setattr(placing, "write_native", append_first)
    outcome = command("repair", session, *where, *([tmp_path / "out"] if where == ["--into"] else []))
    assert outcome.code == 3
    assert "replaced or rewritten" in outcome.err
    assert session.read_bytes().endswith(b'{"type":"user"}\n')
    assert not list(project.rglob("*.orig"))
    assert not (tmp_path / "out").exists()
    assert [*project.rglob(".*"), *tmp_path.glob(".*")] == []


def test_of_two_repairs_at_once_one_wins(
    project: Path, process: Callable[..., subprocess.Popen[str]], command: Command
) -> None:
    session = session_of(project)
    damage(session)
    damaged = session.read_bytes()
    running = [process("repair", session, "--in-place", name="main") for _ in range(2)]
    ends = [one.communicate() for one in running]
    assert {one.returncode for one in running} <= {0, 3}, ends
    assert 0 in {one.returncode for one in running}
    assert session.with_name(session.name + ".orig").read_bytes() == damaged
    assert command("check", session).code == 0


def test_what_is_left_is_said_with_a_code(command: Command, tmp_path: Path) -> None:
    items = anthropic_messages(2)
    call = items[1]["content"][1]
    items[1]["content"].append({**call, "input": {"other": 1}})
    items[5]["content"].append({"type": "text", "text": ""})
    path = tmp_path / "m.json"
    path.write_text(json.dumps({"model": "claude-sample", "messages": items, "max_tokens": 5}))
    outcome = command("repair", path, "--into", tmp_path / "out", "--json")
    assert outcome.code == 4
    assert [one["code"] for one in outcome.json["left"]] == ["duplicate_call"]
    assert [one["code"] for one in outcome.json["actions"]] == ["empty_text"]
    assert outcome.json["valid"] is False
    mended = json.loads((tmp_path / "out" / "m.json").read_text())
    assert (mended["model"], mended["max_tokens"], len(mended["messages"])) == (
        "claude-sample",
        5,
        len(items),
    )
    assert command("check", tmp_path / "out" / "m.json").code == 4


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(command: Command, project: Path) -> None:
    damage(session_of(project))
    project.chmod(0o500)
    try:
        for words in ([], ["--in-place"]):
            outcome = command("repair", session_of(project), *words)
            assert outcome.code == 2
            assert "cannot be written" in outcome.err
    finally:
        project.chmod(0o700)


def test_pipes_folders_and_devices_do_not_hang(command: Command, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, Path("/dev/null")):
        for name in ("check", "repair"):
            done: list[int] = []
            worker = threading.Thread(target=lambda n=name, p=path, d=done: d.append(command(n, p).code))
            worker.start()
            worker.join(120)
            assert done == [2]


@pytest.mark.parametrize("words", [["check"], ["repair", "--dry-run"]])
def test_nothing_heavy_and_no_configuration_is_read(words: list[str], home: Path, project: Path) -> None:
    damage(session_of(project))
    (home / "work" / "archiver.toml").write_text("this is no toml [")
    arguments = [words[0], str(session_of(project)), *words[1:]]
    done = subprocess.run([sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True)
    code, *modules = done.stderr.splitlines()[-1].split()
    assert code == ("4" if words == ["check"] else "0")
    assert not set(HEAVY) & set(modules)
