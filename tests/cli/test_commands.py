"""The commands as people and scripts use them: at a terminal, in a pipe, as JSON; with hostile content."""

from __future__ import annotations

import json
import re
import secrets
import shutil
import subprocess
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from archiver import age, layout
from archiver.config import config_home, data_home
from archiver.sign import SigningKey
from archiver.store import open_store

from .conftest import Command, Outcome
from .test_text import steering

HOSTILE = "\x1b]52;c;eA==\x07\x1b[2J\u202e[bold red]x[/] \x9b31m"
RUN = "0b8f7a52-1111-4222-8333-444455556666"


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder), *arguments],
        check=True,
        capture_output=True,
    )


def session(path: Path, cwd: Path, secret: str = "", said: str = "Done.", at: str | None = None) -> Path:
    """A small Claude Code session: an instruction, a call with its result, an answer."""
    common: dict[str, Any] = {
        "sessionId": RUN, "cwd": str(cwd), "version": "2.1.100", "isSidechain": False, "userType": "external",
        "timestamp": at or datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }  # fmt: skip

    def line(uuid: str, parent: str | None, kind: str, message: dict[str, Any]) -> str:
        return json.dumps({**common, "uuid": uuid, "parentUuid": parent, "type": kind, "message": message})

    def answer(number: int, content: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-x",
            "content": content, "usage": {"input_tokens": 10, "output_tokens": 5},
        }  # fmt: skip

    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "env"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": f"TOKEN={secret}\n{said}"}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "\n".join(
            [
                line("u1", None, "user", {"role": "user", "content": f"Fix the parser {said}"}),
                line("u2", "u1", "assistant", answer(1, [call])),
                line("u3", "u2", "user", {"role": "user", "content": [result]}),
                line("u4", "u3", "assistant", answer(2, [{"type": "text", "text": said}])),
            ]
        )
        + "\n"
    )
    return path


@pytest.fixture
def work(home: Path) -> Path:
    """A git work tree with one commit, as the current folder."""
    folder = home / "work"
    git(folder, "init", "-q", "-b", "main")
    (folder / "parser.py").write_text("x = 1\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    return folder


def credential() -> str:
    return "ghp_" + secrets.token_hex(18)


def plain(text: str) -> str:
    """What a terminal would show: our own styles and rich's cursor movements taken out."""
    return re.sub(r"\x1b\[\??[0-9;]*[A-Za-z]", "", text)


def check_harmless(outcome: Outcome) -> None:
    for text in (plain(outcome.out), plain(outcome.err)):
        assert not [character for character in steering(text) if character not in "\n\t\r"]


def init(command: Command) -> Outcome:
    outcome = command("init", "--json")
    assert outcome.code == 0, outcome.err
    return outcome


def test_a_newcomer_at_a_terminal(command: Command, home: Path, work: Path) -> None:
    slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in str(work))
    secret = credential()
    session(home / ".claude" / "projects" / slug / f"{RUN}.jsonl", work, secret)

    saved = command("archive", "--note", "half done", terminal=True)
    assert saved.code == 0, saved.err
    assert f"Saved run {RUN}, checkpoint 1" in saved.out
    assert "Credentials replaced, rotate them" in saved.out
    assert "New identity" in saved.err
    assert "Back up both key files" in saved.err
    assert "protects nothing locally" in saved.err
    assert secret not in saved.out + saved.err

    again = command("archive", terminal=True)
    assert "checkpoint 2" in again.out
    assert "identity" not in plain(again.err)

    listed = command("list", terminal=True)
    assert RUN in listed.out
    assert "SAVED (UTC)" in listed.out
    shown = command("show", RUN, "--tail", 2, terminal=True)
    assert "Fix the parser" in shown.out
    assert "assistant: Done." in shown.out
    assert "2 records, verified" in shown.out
    assert "none damaged" in command("verify", "--deep", terminal=True).out

    planned = command("restore", RUN, "--plan", terminal=True)
    assert (planned.code, "Nothing stands against it" in planned.out) == (0, True)
    git(work, "commit", "-q", "--allow-empty", "-m", "two")
    planned = command("restore", RUN, "--plan", terminal=True)
    assert planned.code == 3
    assert "1 commit ahead" in planned.out
    assert "the same without --plan, with --accept git_commit" in planned.out
    refused = command("restore", RUN, terminal=True)
    assert refused.code == 3
    assert not (data_home() / "restored").exists()
    restored = command("restore", RUN, "--accept", "git_commit", terminal=True)
    assert restored.code == 0, restored.err
    folder = data_home() / "restored" / f"{RUN}-2"
    assert str(folder) in restored.out
    assert secret not in (folder / "transcript" / f"{RUN}.jsonl").read_text()
    assert command("restore", RUN, "--accept", "git_commit").code == 3  # the folder is no longer empty
    assert command("restore", RUN, "--accept", "git_commit", "--into", "r", "--at", 1).code == 0
    assert (work / "r" / "report.json").is_file()


def test_scripts_get_lines_and_json(command: Command, work: Path) -> None:
    init(command)
    secret = credential()
    path = session(work / "t.jsonl", work, secret)
    saved = command(
        "archive", path, "--task", "task 7", "--outcome", "failed", "--phase", "tests", "--user", "u"
    )
    assert saved.code == 0, saved.err
    assert [row[:3] for row in saved.rows] == [[RUN, "1", "failed"]]
    assert int(saved.rows[0][4]) >= 1
    (row,) = command("list").rows
    assert (row[:2], row[3:5], row[7:9]) == ([RUN, "1"], ["failed", "task 7"], ["tests", "-"])
    assert len(row) == 10
    listed = command("list", "--json").json
    assert (listed["runs"][0]["run"], listed["runs"][0]["user"], listed["errors"]) == (RUN, "u", [])
    shown = command("show", RUN, "--json", "--tail", 1).json
    assert [record["seq"] for record in shown["records"]] == [1]
    assert shown["tail"][0]["message"]["content"][0]["text"] == "Done."
    verified = command("verify", RUN, "--deep", "--json")
    objects = [finding["object"].split("/")[0] for finding in verified.json["findings"]]
    assert (verified.code, verified.json["ok"], objects) == (0, True, ["records", "bundles", "audit"])
    assert {row[0] for row in command("verify").rows} == {"ok"}
    report = command("restore", RUN, "--plan", "--json").json
    assert (report["exit_code"], report["rollback"], report["blockers"]) == (0, "verified", [])
    report = command("restore", RUN, "--into", "out", "--json").json
    assert report["folder"] is not None
    assert command("archive", path, "--json").json["archived"][0]["record"]["seq"] == 2
    for outcome in (saved, command("show", RUN), command("restore", RUN, "--plan", "--json")):
        assert secret not in outcome.out + outcome.err


def test_unattended_without_keys_says_what_to_do(command: Command, work: Path, home: Path) -> None:
    session(work / "t.jsonl", work)
    outcome = command("archive", "t.jsonl", "--json")
    assert outcome.code == 6
    assert outcome.json["error"]["type"] == "KeyUnavailableError"
    assert "archiver init" in outcome.err
    assert not config_home().exists()
    assert not data_home().exists()


def test_ci_is_unattended_even_with_a_terminal(
    command: Command, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session(work / "t.jsonl", work)
    monkeypatch.setenv("CI", "true")
    assert command("archive", "t.jsonl", terminal=True).code == 6


def test_nothing_to_archive_and_nothing_archived(command: Command, home: Path) -> None:
    outcome = command("archive", terminal=True)
    assert outcome.code == 2
    assert "no Claude Code session" in outcome.err
    assert command("archive", "missing.jsonl", terminal=True).code == 2
    assert command("list", terminal=True).code in {0, 2}
    init_again = command("init")
    assert init_again.code in {0, 3}
    assert command("show", "nobody").code == 9
    assert command("restore", "nobody").code == 9
    assert command("verify", "nobody").code == 9


@pytest.mark.parametrize("terminal", [True, False])
def test_hostile_content_never_reaches_the_terminal(command: Command, work: Path, terminal: bool) -> None:
    init(command)
    path = session(work / f"t{HOSTILE.replace('/', '')}.jsonl", work, said=HOSTILE)
    run = "r\u202e[bold]x/../y"
    options = ["--run-id", run, "--task", HOSTILE, "--note", HOSTILE, "--phase", HOSTILE, "--user", HOSTILE]
    calls: list[list[Any]] = [
        ["archive", path, *options],
        ["archive", path, *options, "--json"],
        ["list"],
        ["list", "--json"],
        ["show", run, "--tail", "4"],
        ["show", run, "--tail", "4", "--json"],
        ["restore", run, "--plan"],
        ["restore", run, "--into", "../out"],
        ["restore", run, "--plan", "--json"],
        ["verify", "--deep"],
        ["show", HOSTILE],
        ["restore", HOSTILE, "--json"],
        ["archive", HOSTILE],
        ["list", "--since", HOSTILE],
        ["schema", HOSTILE],
        [HOSTILE],
    ]
    for call in calls:
        outcome = command(*call, terminal=terminal)
        check_harmless(outcome)
        assert outcome.code in {0, 2, 9}, (call, outcome.err)
    shown = command("show", run, terminal=terminal)
    assert "[bold red]x[/]" in shown.out
    assert "\\x1b]52;c;eA==" in shown.out
    document = command("show", run, "--json").json
    assert document["records"][0]["task"] == HOSTILE


def test_the_default_folder_of_a_strange_run_id(command: Command, work: Path) -> None:
    init(command)
    path = session(work / "t.jsonl", work)
    run = "../../a b/$(x)"
    saved = command("archive", path, "--run-id", run, terminal=True)
    assert "archiver show '../../a b/$(x)'" in saved.out
    restored = command("restore", run)
    assert restored.code == 0, restored.err
    (folder,) = (data_home() / "restored").iterdir()
    assert folder.name == f"{layout.encode_run(run)}-1"


def test_table_rows_become_runs(command: Command, work: Path) -> None:
    init(command)
    rows = [
        {
            "task_id": f"t{number}",
            "goal": "a goal",
            "messages": [{"role": "user", "content": "hello"}],
            "created_at": "2026-01-01T00:00:00Z",
            "updated_at": "2026-01-02T00:00:00Z",
        }
        for number in (1, 2)
    ]
    (work / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    saved = command("archive", "rows.jsonl")
    assert [row[:2] for row in saved.rows] == [["t1", "1"], ["t2", "1"]], saved.err
    assert {row[0] for row in command("list").rows} == {"t1", "t2"}


def test_a_format_that_is_not_known_is_said(command: Command, work: Path) -> None:
    init(command)
    (work / "notes.txt").write_text("just text\n")
    saved = command("archive", "notes.txt", "--run-id", "notes", terminal=True)
    assert "the format of the transcript is not known: redacted, kept whole" in saved.err + saved.out


def test_damage_needs_salvage(command: Command, work: Path) -> None:
    init(command)
    path = session(work / "t.jsonl", work)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], '{"broken": \n', *lines[1:]]))
    refused = command("archive", path)
    assert refused.code == 4
    assert "line 2" in refused.err
    assert command("list").out == ""
    saved = command("archive", path, "--salvage")
    assert saved.code == 0
    assert saved.err.startswith("warning: ")


def test_filters_of_the_list(command: Command, work: Path) -> None:
    init(command)
    path = session(work / "t.jsonl", work)
    for run, outcome in (("a", "failed"), ("b", "succeeded"), ("c", "failed")):
        assert command("archive", path, "--run-id", run, "--task", f"t-{run}", "--outcome", outcome).code == 0
    names = {
        (): {"a", "b", "c"},
        ("--outcome", "failed"): {"a", "c"},
        ("--task", "t-b"): {"b"},
        ("--outcome", "failed", "--task", "t-b"): set(),
        ("--since", "1h"): {"a", "b", "c"},
        ("--since", "2100-01-01"): set(),
        ("--since", "2000-01-01T00:00:00+02:00"): {"a", "b", "c"},
    }
    for options, expected in names.items():
        assert {row[0] for row in command("list", *options).rows} == expected
    assert [row[0] for row in command("list").rows] == ["c", "b", "a"]
    assert [row[0] for row in command("list", "--newest", "2").rows] == ["c", "b"]
    assert [row[0] for row in command("list", "--newest", "1", "--task", "t-a").rows] == ["a"]
    assert command("list", "--newest", "0").code == 2
    newest = command("list", "--newest", "9", "--json").json
    assert newest == {**command("list", "--json").json, "stopped": None}
    assert len(newest["runs"]) == 3
    assert command("list", "--task", "none", terminal=True).out == "No such runs.\n"


def test_damage_is_found_named_and_told_by_the_exit_code(command: Command, work: Path) -> None:
    init(command)
    path = session(work / "t.jsonl", work)
    for run in ("good", "bad"):
        command("archive", path, "--run-id", run)
    store = Path(data_home() / "store")
    (bundle,) = (store / "bundles" / "bad").glob("*.age")
    data = bytearray(bundle.read_bytes())
    data[-1] ^= 1
    bundle.chmod(0o600)
    bundle.write_bytes(data)
    assert command("verify").code == 0
    verified = command("verify", "--deep")
    assert verified.code == 4
    assert [row[0] for row in verified.rows if row[1].startswith("bundles/bad")] != ["ok"]
    assert {row[0] for row in verified.rows if "good" in row[1]} == {"ok"}
    assert command("verify", "--deep", "--json").json["ok"] is False
    assert command("restore", "bad", "--into", "out").code == 4
    assert not (work / "out").exists()

    (record,) = (store / "records" / "bad").glob("*.age")
    record.chmod(0o600)
    record.write_bytes(b"garbage")
    for terminal in (True, False):
        listed = command("list", "--task", "none such", terminal=terminal)
        assert listed.code == 4
        assert "bad" in listed.out  # what cannot be read is never passed over
        assert "good" not in listed.out
        assert "record 1 of run bad" in listed.err
    assert command("list", "--json").json["errors"][0]["run"] == "bad"


def test_another_machine_needs_the_key_and_has_to_trust_the_writer(
    command: Command, work: Path, home: Path, tmp_path: Path
) -> None:
    made = init(command).json
    command("archive", session(work / "t.jsonl", work))
    shutil.copytree(data_home() / "store", tmp_path / "copy")
    shutil.copy(made["identity_file"], tmp_path / "identity.txt")
    shutil.rmtree(home / ".config")
    shutil.rmtree(home / ".local")
    assert command("list", "--store", tmp_path / "copy").code == 6
    stranger = ["--store", tmp_path / "copy", "--identity", tmp_path / "identity.txt"]
    refused = command("restore", RUN, *stranger)
    assert refused.code == 3
    assert made["public"] in refused.err
    lines = refused.err.split("\n\n", 1)[1]
    assert tomllib.loads(lines)["writer"][0]["runs"] == RUN
    (work / "writers.toml").write_text(lines)
    (work / "archiver.toml").write_text('[keys]\nwriters = "writers.toml"\n')
    (work / "archiver.toml").chmod(0o600)
    assert "git_dirty is STALE" in command("restore", RUN, *stranger).err  # the two files are new
    restored = command("restore", RUN, *stranger, "--accept", "git_dirty", name="restore")
    assert restored.code == 0, restored.err

    age.write_identity(tmp_path / "other.txt", age.generate(), created=datetime.now(UTC))
    wrong = command("restore", RUN, "--store", tmp_path / "copy", "--identity", tmp_path / "other.txt")
    assert wrong.code == 6
    assert made["fingerprint"] in wrong.err


def test_init_and_keygen(command: Command, home: Path, work: Path) -> None:
    made = command("keygen", "--into", "keys")
    assert made.code == 0
    facts = dict(made.rows)
    assert facts["recipient"].startswith("age1")
    assert SigningKey.load(work / "keys" / "signing.pem").public == facts["public signing key"]
    assert "Back up both key files" in made.err
    assert command("keygen", "--into", "keys").code == 3
    assert command("keygen", "--into", "more", "--json").json["recipient"].startswith("age1")
    assert command("keygen", "--pq", "--into", "pq", "--json").json["recipient"].startswith("age1pq1")

    first = command("init", "my store", "--config", "own.toml", terminal=True)
    assert first.code == 0
    assert "the store works" in first.out
    assert "protects nothing locally" in first.out
    assert [info.name for info in open_store(str(work / "my store")).list()] == [layout.STORE]
    assert command("init", "my store", "--config", "own.toml").code == 3
    second = command("init", "other", "--config", "two.toml", "--json").json
    assert (second["new_identity"], second["new_store"]) == (False, True)
    session(work / "t.jsonl", work)
    assert command("archive", "t.jsonl", "--config", "own.toml").code == 0
    assert command("--config", "own.toml", "list").rows[0][0] == RUN
    assert command("--config", "two.toml", "list").rows == []


def test_schemas(command: Command) -> None:
    names = [row[0] for row in command("schema").rows]
    assert names == [row[0] for row in command("schema", "--list").rows]
    assert {"v1/checkpoint", "v2/checkpoint", "v2/record"} <= set(names)
    for name in names:
        assert command("schema", name).json["$id"].startswith("checkpoint-archiver/")
    assert command("schema", "checkpoint").json["$id"] == "checkpoint-archiver/v2/checkpoint.schema.json"
