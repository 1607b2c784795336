"""Bundles that the real writer made of hostile content, handed over into hostile places."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from archiver import schemas
from archiver.archive import Source, archive
from archiver.catalog import Catalog
from archiver.errors import AlreadyExistsError, ArchiverError, InputNotFoundError, StoreFullError
from archiver.model import (
    Approval,
    Checkpoint,
    Effect,
    Items,
    Plan,
    Step,
    SubtaskResult,
    Transcript,
    TranscriptPart,
    Workspace,
)
from archiver.restore import Restored, plan, restore
from archiver.setup import Setup

NOW = datetime.now(UTC)
RUN = "hostile"
STEERING = "\x1b]8;;http://x\x1b\\a\x1b]8;;\x1b\\ \x1b[2J\u202e\u2066\x9b31m\r\x00\u200b<b>|`x`\n# y"
NAMES = [
    "../../escape",
    "/etc/escape",
    "a/../../escape",
    "..",
    ".",
    "",
    "a//b",
    "C:\\escape",
    "~/escape",
    "x" * 300,
    "a/" * 40 + "b",
    f"s{STEERING}",
    "report.json",
    "../report.json",
    "REPORT.md",
    "checkpoint.json",
    "effects.jsonl",
    "transcript",
    ".claude/settings.json",
    ".mcp.json",
    "CLAUDE.md",
    "AGENTS.md",
    ".git/hooks/post-checkout",
    ".git/config",
    "con",
    "dup",
    "dup",
    "DUP",
    "dup/below",
]


def transcript(names: list[str], dialect: str = "claude-code") -> Transcript:
    """Parts that have something to mend, so that they lie below `original/` too."""
    call = {
        "type": "assistant",
        "uuid": "u1",
        "sessionId": STEERING,
        "cwd": STEERING,
        "message": {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": STEERING, "input": {}}],
        },
    }
    parts = tuple(TranscriptPart(name=name, items=Items.of([call])) for name in names)
    return Transcript(dialect=dialect, parts=parts)


def checkpoint(**more: Any) -> Checkpoint:
    given: dict[str, Any] = {
        "objective": STEERING,
        "phase": STEERING,
        "note": STEERING,
        "summary": STEERING * 3,
        "plan": Plan(
            completed=(Step(id=STEERING, title=STEERING),),
            remaining=(Step(id=STEERING, title=STEERING),),
            pending_approvals=(Approval(id=STEERING, question=STEERING),),
        ),
        "results": (SubtaskResult(key=STEERING, files=("../../x", "/etc/x")),),
        "effects": (Effect(key=STEERING, tool=STEERING, arguments={STEERING: STEERING}, status="uncertain"),),
        "workspace": Workspace(path=f"/srv/{STEERING}".replace("\0", "")),
        "transcript": transcript(NAMES),
    }
    return Checkpoint(run_id=RUN, task_id="t", created_at=NOW, checkpoint_at=NOW, **(given | more))


def small(**more: Any) -> Checkpoint:
    return checkpoint(**({"effects": (), "transcript": transcript(["s.jsonl"])} | more))


def handed_over(setup: Setup, into: Path, **more: Any) -> Restored:
    accept = {"effects", *(blocker.accept for blocker in plan(RUN, setup).blockers)}
    return restore(RUN, setup, into=into, accept=accept, **more)


def inside(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


@pytest.fixture
def hostile(setup: Setup, tmp_path: Path) -> Path:
    archive(Source(checkpoint=checkpoint()), setup)
    (tmp_path / "place").mkdir()
    handed_over(setup, tmp_path / "place" / "out")
    return tmp_path / "place" / "out"


def test_no_path_leaves_the_folder_and_nothing_is_anything_but_a_private_file(hostile: Path) -> None:
    assert [path.name for path in hostile.parent.iterdir()] == ["out"]
    assert not [path for path in hostile.parents[1].rglob("*escape") if hostile not in path.parents]
    files = [path for path in inside(hostile) if not path.is_dir()]
    assert len([path for path in files if path.parts[len(hostile.parts)] == "transcript"]) == len(NAMES)
    assert len([path for path in files if path.parts[len(hostile.parts)] == "original"]) >= len(NAMES)
    for path in inside(hostile):
        mode = path.lstat().st_mode
        assert stat.S_ISREG(mode) or stat.S_ISDIR(mode), path
        assert stat.S_IMODE(mode) in (0o600, 0o700), path
        assert str(path.relative_to(hostile)).isprintable()
        assert ".." not in path.parts


def test_what_a_harness_would_obey_is_handed_over_as_data_and_told_of(hostile: Path) -> None:
    assert (hostile / "transcript" / ".claude" / "settings.json").is_file()
    assert not os.access(hostile / "transcript" / ".git" / "hooks" / "post-checkout", os.X_OK)
    text = (hostile / "REPORT.md").read_text()
    assert "names of configuration or instructions, which the run chose" in text
    report = json.loads((hostile / "report.json").read_text())
    assert not any(" -R" in step and "/." in step.split(" -R")[1][:40] for step in report["next_steps"])
    assert not [step for step in report["next_steps"] if "settings.json" in step or "CLAUDE.md" in step]


def test_neither_report_nor_json_steers_a_terminal(hostile: Path) -> None:
    text = (hostile / "REPORT.md").read_text()
    assert not [c for c in text if not c.isprintable() and c != "\n"]
    assert "\\\\x1b" in text
    report = json.loads((hostile / "report.json").read_text())
    steps = "\n".join(report["next_steps"])
    assert not [c for c in steps if not c.isprintable() and c != "\n"]
    assert [one["key"] for one in report["undecided"]] == [STEERING]
    assert report["undecided"][0]["resolve"].isprintable()


def test_the_report_follows_its_schema(hostile: Path) -> None:
    schema = json.loads(schemas.text("v2/report"))
    Draft202012Validator.check_schema(schema)
    document = json.loads((hostile / "report.json").read_text())
    assert list(document)[-1] == "next_steps"
    assert (
        (hostile / "report.json")
        .read_text()
        .endswith(json.dumps(document["next_steps"][-1], ensure_ascii=False) + "\n  ]\n}\n")
    )
    Draft202012Validator(schema).validate(document)
    assert set(schema["properties"]) == set(document)
    assert document["exit_code"] == 0


def test_a_key_with_everything_an_argument_can_hold_is_decided_on_from_the_report(
    setup: Setup, tmp_path: Path, config: Path
) -> None:
    key = STEERING.replace("\0", "") + "'=done"
    archive(Source(checkpoint=small(effects=(Effect(key=key, tool="x", status="uncertain"),))), setup)
    handed_over(setup, tmp_path / "out")
    lines = (tmp_path / "out" / "REPORT.md").read_text().splitlines()
    (command,) = [
        line.strip() for line in lines if line.startswith("      archiver ") and "=not-done" in line
    ]
    done = subprocess.run(
        ["bash", "-c", command.replace(" restore ", f" restore --config '{config}' ")],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "TERM": "dumb"},
    )
    assert done.returncode == 0, done.stderr
    claim = Catalog(setup).read(RUN, 2).record
    assert [(one.effect, one.outcome, one.reason) for one in claim.decisions] == [
        (key, "not-done", "WHAT YOU FOUND")
    ]
    assert not [c for c in done.stdout + done.stderr if not c.isprintable() and c not in "\n\t"]


def test_a_folder_whose_name_is_no_text(setup: Setup, tmp_path: Path, config: Path) -> None:
    archive(Source(checkpoint=small(effects=(Effect(key="k", tool="x", status="uncertain"),))), setup)
    into = tmp_path / os.fsdecode(b"o\xff\n'ut")
    done = handed_over(setup, into)
    assert done.report.next_steps[0].startswith("# not before")
    assert list(done.state.transcript.parts[0].items)
    text = (into / "REPORT.md").read_text()
    (command,) = [line.strip() for line in text.splitlines() if "=not-done" in line]
    went = subprocess.run(
        ["bash", "-c", command.replace(" restore ", f" restore --config '{config}' ")],
        capture_output=True,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "TERM": "dumb"},
    )
    assert went.returncode == 0, went.stderr
    assert (tmp_path / os.fsdecode(b"o\xff\n'ut-decided") / "report.json").is_file()


# --- the place ----------------------------------------------------------------------------------------------


@pytest.fixture
def saved(setup: Setup) -> Setup:
    archive(Source(checkpoint=small()), setup)
    return setup


@pytest.mark.parametrize("to", ["folder", "nowhere", "file"])
def test_a_link_is_no_place(saved: Setup, tmp_path: Path, to: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "out").symlink_to(to)
    for force in (False, True):
        with pytest.raises(AlreadyExistsError):
            handed_over(saved, tmp_path / "out", force=force)
    assert (tmp_path / "out").is_symlink()
    assert inside(tmp_path / "folder") == []


@pytest.mark.parametrize("swapped", ["file", "link", "full", "pipe"])
def test_a_place_that_is_swapped_meanwhile_is_left_alone(
    saved: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    into, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    elsewhere.mkdir()
    from archiver import saved as room

    fetch = room.fetch

    def meanwhile(*arguments: Any, **options: Any) -> Any:
        made: dict[str, Callable[[], object]] = {
            "file": lambda: into.write_text("x"),
            "link": lambda: into.symlink_to(elsewhere),
            "full": lambda: (into.mkdir(), (into / "mine").write_text("x")),
            "pipe": lambda: os.mkfifo(into),
        }
        made[swapped]()
        return fetch(*arguments, **options)

    monkeypatch.setattr(room, "fetch", meanwhile)
    for force in (False, True):
        with pytest.raises(AlreadyExistsError):
            handed_over(saved, into, force=force)
        assert inside(elsewhere) == []
        if swapped == "full":
            assert (into / "mine").read_text() == "x"
            (into / "mine").unlink()
            into.rmdir()
        else:
            into.unlink()
    assert [path.name for path in tmp_path.iterdir() if "scratch" in path.name] == []


def test_a_claim_stands_although_the_folder_could_not_appear(
    saved: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    into = tmp_path / "out"
    from archiver import claiming

    claim = claiming.claim

    def then_taken(*arguments: Any, **more: Any) -> Any:
        made = claim(*arguments, **more)
        into.write_text("x")
        return made

    monkeypatch.setattr(claiming, "claim", then_taken)
    with pytest.raises(AlreadyExistsError, match="was taken over all the same, with record 2") as caught:
        handed_over(saved, into, claim=True)
    assert caught.value.details["claimed"] == 2
    assert Catalog(saved).numbers(RUN) == [1, 2]


@pytest.mark.skipif(os.getuid() == 0, reason="nothing is read-only for root")
def test_a_folder_that_may_not_be_written(saved: Setup, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(InputNotFoundError):
        handed_over(saved, tmp_path / "closed" / "out")


def test_a_full_disk_leaves_nothing(setup: Setup, tmp_path: Path, config: Path) -> None:
    """A limit on the size of files stands for a disk without room: writing fails in the same way."""
    big = Items.of({"type": "user", "uuid": str(n), "text": "x" * 1000} for n in range(3000))
    parts = (TranscriptPart(name="s.jsonl", items=big),)
    archive(Source(checkpoint=small(transcript=Transcript(dialect="claude-code", parts=parts))), setup)
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)); "
        "from archiver.cli import main; sys.argv[0] = 'archiver'; main()"
    )
    options = ["--into", str(tmp_path / "deep" / "out"), "--config", str(config)]
    for blocker in plan(RUN, setup).blockers:
        options += ["--accept", blocker.accept]
    done = subprocess.run(
        [sys.executable, "-c", code, "restore", RUN, *options], capture_output=True, text=True
    )
    assert done.returncode == StoreFullError.exit_code, done.stderr
    assert "next: make room on the disk" in done.stderr
    assert not (tmp_path / "deep").exists()


# --- --force ------------------------------------------------------------------------------------------------


def test_force_replaces_what_an_earlier_restore_left(saved: Setup, tmp_path: Path) -> None:
    into = tmp_path / "out"
    handed_over(saved, into)
    (into / "transcript" / "s.jsonl").write_text("changed")
    with pytest.raises(AlreadyExistsError, match="not empty") as caught:
        handed_over(saved, into)
    assert "--force" in (caught.value.remedy or "")
    handed_over(saved, into, force=True)
    assert (into / "transcript" / "s.jsonl").read_text() != "changed"
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith((".", "out"))) == ["out"]


def _other_run(into: Path) -> None:
    document = json.loads((into / "report.json").read_text())
    (into / "report.json").write_text(json.dumps(document | {"run": "another"}))


SPOILT: dict[str, Callable[[Path], object]] = {
    "somebody's file": lambda into: (into / "notes.txt").write_text("x"),
    "a work tree": lambda into: (into / ".git").mkdir(),
    "no report": lambda into: (into / "report.json").unlink(),
    "a report of another run": _other_run,
    "a report that is none": lambda into: (into / "report.json").write_text("[]"),
    "a report that is no JSON": lambda into: (into / "report.json").write_text("{"),
    "a linked report": lambda into: ((into / "report.json").rename(into.parent / "r"),
                                     (into / "report.json").symlink_to(into.parent / "r")),
    "a pipe": lambda into: ((into / "report.json").unlink(), os.mkfifo(into / "report.json")),
}  # fmt: skip


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_force_replaces_nothing_else(saved: Setup, tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    into = tmp_path / "out"
    handed_over(saved, into)
    spoil(into)
    before = {path: path.lstat().st_ino for path in inside(into)}
    with pytest.raises(AlreadyExistsError, match="is not what an earlier restore of this run left"):
        handed_over(saved, into, force=True)
    assert {path: path.lstat().st_ino for path in inside(into)} == before


def test_force_looks_again_at_what_it_moves_away(
    saved: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    into = tmp_path / "out"
    handed_over(saved, into)
    from archiver import saved as room

    fetch = room.fetch

    def meanwhile(*arguments: Any, **options: Any) -> Any:
        (into / "mine").write_text("precious")
        return fetch(*arguments, **options)

    monkeypatch.setattr(room, "fetch", meanwhile)
    with pytest.raises(AlreadyExistsError, match="holds 'mine'"):
        handed_over(saved, into, force=True)
    assert (into / "mine").read_text() == "precious"
    assert (into / "report.json").is_file()


def test_what_cannot_be_put_back_stays_beside(
    saved: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    into = tmp_path / "out"
    handed_over(saved, into)
    rename = Path.rename

    def taken(self: Path, to: Path) -> Path:
        moved = rename(self, to)
        if self == into:
            into.write_text("somebody else's")
        return moved

    monkeypatch.setattr(Path, "rename", taken)
    with pytest.raises(ArchiverError, match="what was there before is in") as caught:
        handed_over(saved, into, force=True)
    (kept,) = [path for path in tmp_path.iterdir() if path.name.startswith("out.")]
    assert str(kept) in str(caught.value)
    assert (kept / "report.json").is_file()
    assert into.read_text() == "somebody else's"
