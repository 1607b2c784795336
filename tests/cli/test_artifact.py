"""One artifact to standard output, to a file or to a terminal; the list; and what is not there."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from archiver.cli import output

from .conftest import Command
from .test_answers import completed
from .test_commands import check_harmless

RUN = "build-7"
LOG = "".join(f"line {number} \x1b[2J of a long log é\n" for number in range(3000))
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
HUGE = "".join(f"number {number} of what ran away\n" for number in range(20_000))


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def transcript(path: Path, *outputs: str, image: bytes = b"") -> Path:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go on"}]
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(image).decode()}
    contents = [{"type": "text", "text": text} for text in outputs]
    contents += [{"type": "image", "source": source}] if image else []
    for number, content in enumerate(contents):
        call = {
            "type": "tool_use",
            "id": f"toolu_{number}",
            "name": "Bash",
            "input": {"command": f"c{number}"},
        }
        messages += [
            {"role": "assistant", "content": [call]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": [content]}],
            },
        ]
    path.write_text(json.dumps([*messages, {"role": "assistant", "content": "Done."}]))
    return path


@pytest.fixture
def saved(command: Command, home: Path) -> Path:
    """A run of two checkpoints, of which the second alone has a picture."""
    assert command("init", home / "store").code == 0
    for image in (b"", PICTURE):
        done = command("archive", transcript(home / "t.json", LOG, image=image), "--run-id", RUN)
        assert done.code == 0, done.err
        assert done.err == ""
    return home


def test_the_list_has_every_artifact_and_how_it_is_carried(command: Command, saved: Path) -> None:
    rows = command("artifact", RUN).rows
    assert {tuple(row[:4]) for row in rows} == {
        (digest(LOG.encode()), str(len(LOG.encode())), "text/plain", "whole"),
        (digest(PICTURE), str(len(PICTURE)), "image/png", "whole"),
    }
    listed = command("artifact", RUN, "--json").json
    assert (listed["run"], listed["seq"]) == (RUN, 2)
    assert {one["sha256"] for one in listed["artifacts"]} == {row[0] for row in rows}
    assert {one["carried"] for one in listed["artifacts"]} == {"whole"}
    (first,) = command("artifact", RUN, "--at", 1).rows
    assert first[0] == digest(LOG.encode())
    shown = command("artifact", RUN, terminal=True)
    assert digest(PICTURE)[:16] in shown.out
    assert "Bash c0" in shown.out
    check_harmless(shown)


def test_bytes_are_those_that_were_saved(
    command: Command, saved: Path, process: Callable[..., subprocess.Popen[str]]
) -> None:
    with process("artifact", RUN, digest(PICTURE)[:6]) as started:
        assert started.stdout is not None
        assert started.stdout.buffer.read() == PICTURE
    assert started.returncode == 0
    assert command("artifact", RUN, f"artifacts/{digest(LOG.encode())}").out == LOG
    assert command("artifact", RUN, digest(LOG.encode())[:9].upper()).out == LOG


def test_a_reader_that_goes_away_ends_it_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        with pytest.raises(typer.Exit) as ended:
            output.raw([b"x" * (1 << 20)] * 3)
        assert ended.value.exit_code == output.PIPE_CLOSED


def test_a_file_is_private_new_and_whole_or_not_there(command: Command, saved: Path) -> None:
    target = saved / "out" / "shot.png"
    missing = command("artifact", RUN, digest(PICTURE), "--output", target)
    assert missing.code == 2
    assert "there is no folder" in missing.err
    target.parent.mkdir()
    written = command("artifact", RUN, digest(PICTURE), "--output", target)
    assert (written.code, written.out) == (0, "")
    assert target.read_bytes() == PICTURE
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    again = command("artifact", RUN, digest(LOG.encode()), "-o", target)
    assert (again.code, target.read_bytes()) == (3, PICTURE)
    assert "nothing is written over" in again.err
    link = target.with_name("link")
    link.symlink_to(saved / "elsewhere")
    assert command("artifact", RUN, digest(PICTURE), "-o", link).code == 3
    assert not (saved / "elsewhere").exists()
    assert sorted(path.name for path in target.parent.iterdir()) == ["link", "shot.png"]
    told = command("artifact", RUN, digest(PICTURE), "-o", target.with_name("b.png"), "--json").json
    assert (told["written"], told["output"]) == (len(PICTURE), str(target.with_name("b.png")))


def test_a_disk_without_links_has_the_file_all_the_same(
    command: Command, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    target = saved / "shot.png"
    assert command("artifact", RUN, digest(PICTURE), "-o", target).code == 0
    assert target.read_bytes() == PICTURE
    assert command("artifact", RUN, digest(PICTURE), "-o", target).code == 3


def test_a_terminal_is_shown_text_and_nothing_that_steers_it(command: Command, saved: Path) -> None:
    shown = command("artifact", RUN, digest(LOG.encode()), terminal=True)
    assert shown.code == 0
    assert shown.out.splitlines()[7] == "line 7 \\x1b[2J of a long log é"
    assert len(shown.out.splitlines()) == 3000
    check_harmless(shown)
    refused = command("artifact", RUN, digest(PICTURE), terminal=True)
    assert (refused.code, refused.out) == (2, "")
    assert "--output" in refused.err
    forced = command("artifact", RUN, digest(PICTURE), "--force", terminal=True)
    assert forced.out.encode("utf-8", "surrogateescape") == PICTURE


def test_names_that_mean_none_and_what_is_near(command: Command, saved: Path) -> None:
    for name, code, said in (
        ("0" * 64, 9, f"checkpoint 2 of run {RUN} has no artifact 000000"),
        ("abc", 2, "'abc' is no id of an artifact"),
        ("../../etc/passwd", 2, "is no id of an artifact"),
        ("\x1b[2Jzzzzzz", 2, "is no id of an artifact"),
        ("", 2, "is no id of an artifact"),
    ):
        outcome = command("artifact", RUN, name)
        assert (outcome.code, outcome.out) == (code, "")
        assert said in outcome.err
        assert "\x1b" not in outcome.err
    wanted = digest(LOG.encode())[:11]
    near = command("artifact", RUN, wanted[:10] + ("0" if wanted[10] != "0" else "1"))
    assert near.code == 9
    assert wanted in near.err
    assert "--at" in near.err
    assert command("artifact", RUN, digest(PICTURE), "--at", 1).code == 9
    no_id = command("artifact", RUN, "--output", "here")
    assert (no_id.code, Path("here").exists()) == (2, False)
    assert "--output needs the ID" in no_id.err
    none = command("artifact", RUN, "--at", 7)
    assert none.code == 9
    assert "its checkpoints: 1, 2" in none.err
    assert command("artifact", "nobody").code == 9


def test_what_is_known_is_told_completed_and_written_down(command: Command, saved: Path) -> None:
    found = command("artifact", RUN, digest(LOG.encode()), "--json").json
    size = len(LOG.encode())
    assert (found["sha256"], found["carried"], found["kept"]) == (digest(LOG.encode()), "whole", size)
    lines = (saved / ".local" / "state" / "checkpoint-archiver" / "audit.jsonl").read_text().splitlines()
    last = json.loads(lines[-1])
    assert (last["action"], last["within"], last["command"]) == (
        "open",
        "artifact",
        "archiver artifact --json",
    )
    assert [row for row in command("audit", RUN).rows if row[1] == "open"]
    assert completed("archiver artifact bu") == [RUN]
    assert completed("archiver diff bu") == [RUN]


def test_an_artifact_over_its_limit_is_head_and_tail_and_said_everywhere(
    command: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command("init", home / "store").code == 0
    monkeypatch.setenv("ARCHIVER_LIMITS__ARTIFACT", "256KiB")
    path = transcript(home / "t.json", HUGE, "short")
    done = command("archive", path, "--run-id", RUN)
    assert done.code == 0, done.err
    said = f"artifacts/{digest(HUGE.encode())} has {len(HUGE)} bytes, which limits.artifact has no room for"
    assert f"warning: {said}: of it " in done.err
    (row,) = command("artifact", RUN).rows
    assert row[1:4] == [str(len(HUGE)), "text/plain", "head-and-tail"]
    given = command("artifact", RUN, row[0])
    assert said in given.err
    kept = given.out
    assert kept.startswith(HUGE[:60_000])
    assert kept.endswith(HUGE[-60_000:])
    assert len(kept) < 132_000
    assert f"[archived output: {len(HUGE)} bytes; sha256 {row[0]}; " in kept
    assert command("show", RUN).rows[-1]
    assert ["without room", "1 output"] in command("show", RUN).rows
    assert command("list", "--long").rows[0][13] == "1"
    assert command("list", "--json").json["runs"][0]["cut"] == 1
    plan = command("restore", RUN, "--plan")
    assert "limits had no room for 1 of its outputs and files, not here whole" in plan.err
    restored = command("restore", RUN, "--into", home / "out", "--accept", "age")
    assert restored.code == 0, restored.err
    receipt = json.loads((home / "out" / "receipt.json").read_text())
    (cut,) = receipt["cut"]
    assert (cut["limit"], cut["policy"], cut["size"]) == ("artifact", "head-and-tail", len(HUGE))
    assert (home / "out" / cut["kept_as"]).read_text() == kept
    assert said in (home / "out" / "REPORT.md").read_text().replace("\n", " ")
    assert command("check", *(home / "out" / "transcript").iterdir()).code == 0


def test_one_that_is_not_carried_says_why(
    command: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command("init", home / "store").code == 0
    monkeypatch.setenv("ARCHIVER_LIMITS__ARTIFACT", "256KiB")
    monkeypatch.setenv("ARCHIVER_LIMITS__ARTIFACT_POLICY", "reference")
    assert command("archive", transcript(home / "t.json", HUGE), "--run-id", RUN).code == 0
    (row,) = command("artifact", RUN).rows
    assert row[3] == "reference"
    refused = command("artifact", RUN, row[0])
    assert (refused.code, refused.out) == (9, "")
    assert "limits.artifact has no room for: not carried" in refused.err
    assert command("artifact", RUN, row[0], "-o", home / "x").code == 9
    assert not (home / "x").exists()
    monkeypatch.setenv("ARCHIVER_LIMITS__ARTIFACT_POLICY", "refuse")
    refused = command("archive", transcript(home / "t.json", HUGE), "--run-id", RUN)
    assert refused.code == 3
    assert "the limit of an artifact is 262144" in refused.err
    assert len(command("show", RUN, "--json").json["records"]) == 1
