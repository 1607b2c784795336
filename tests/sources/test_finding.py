"""Which runs lie in a place."""

from __future__ import annotations

import json
import os
import re
import socket
import tomllib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from archiver.config.settings import Settings
from archiver.config.sweeping import SourceSettings, SweepSettings
from archiver.sources import Found, OpenFiles, Source, Unusable, configured, of_session
from archiver.transcripts.reader import read
from sources.samples import (
    LONG_AGO,
    NOW,
    Claude,
    codex_asks,
    codex_says,
    head,
    messages,
    projects,
    rollouts,
    session_id,
    touch,
    write,
)

ONE, TWO = session_id("one"), session_id("two")


def source(kind: str, path: Path | None = None, **more: Any) -> Source:
    described = SourceSettings(kind=kind, path=path, **more)  # type: ignore[arg-type]
    made = configured(Settings(sweep=SweepSettings(sources=(described,))))
    assert len(made) == 1
    return made[0]


def runs(place: Source) -> dict[str, Found]:
    """The runs by the name of their main file; each is found once, and nothing else is said."""
    found = list(place.find())
    assert [one for one in found if isinstance(one, Unusable)] == []
    by_name = {Path(one.key).name: one for one in found if isinstance(one, Found)}
    assert len(by_name) == len(found)
    return by_name


def words(place: Source) -> dict[str, tuple[str, bool]]:
    """What is said of what is no run."""
    return {Path(one.key).name: (one.why, one.broken) for one in place.find() if isinstance(one, Unusable)}


def session(folder: Path, own: str = ONE, **more: Any) -> Path:
    return write(folder / f"{own}.jsonl", Claude(own).whole(), **more)


def agent(path: Path, own: str = ONE, **more: Any) -> Path:
    return write(path, Claude(own, side=path.stem.removeprefix("agent-")).whole(), **more)


# --- Claude Code


def test_a_session_has_its_sub_agents_of_either_layout(home: Path) -> None:
    place = projects(home)
    main, other = session(place), session(place, TWO)
    new = agent(place / ONE / "subagents" / "agent-a1.jsonl", at=NOW)
    old = agent(place / "agent-b2.jsonl")
    write(place / ONE / "subagents" / "agent-a1.meta.json", [{}])
    write(place / ONE / "tool-results" / "x.txt", [{}])
    (place / "empty.jsonl").touch()
    (place / "memory").mkdir()
    (place / "folder.jsonl").mkdir()
    found = runs(source("claude-code"))
    assert set(found) == {main.name, other.name}
    one = found[main.name]
    assert (one.kind, one.key, one.paths, one.run_id) == ("claude-code", str(main), (main,), ONE)
    assert one.files[0].path == main
    assert {stamp.path for stamp in one.files} == {main, new, old}
    assert {stamp.path for stamp in one.files} == {part.source.path for part in read(one.paths).files}
    assert one.written == NOW
    assert found[other.name].written == LONG_AGO
    named = of_session(main)
    assert (named.kind, named.run_id, named.written, set(named.files)) == (
        one.kind,
        one.run_id,
        one.written,
        set(one.files),
    )


def test_a_stamp_changes_with_the_file(home: Path) -> None:
    main = session(projects(home))
    before = runs(source("claude-code"))[main.name].files
    assert runs(source("claude-code"))[main.name].files == before
    seen = main.stat()
    assert (before[0].size, before[0].mtime_ns) == (seen.st_size, seen.st_mtime_ns)
    assert (before[0].inode, before[0].device) == (seen.st_ino, seen.st_dev)
    touch(main, NOW)
    assert runs(source("claude-code"))[main.name].files != before


def test_a_session_of_another_name_has_its_sub_agents_too(home: Path) -> None:
    place = projects(home)
    main = write(place / "copied.jsonl", Claude(ONE).whole())
    new = agent(place / ONE / "subagents" / "agent-a1.jsonl")
    old = agent(place / "agent-b2.jsonl")
    found = runs(source("claude-code"))
    assert set(found) == {main.name}
    assert {stamp.path for stamp in found[main.name].files} == {main, new, old}
    assert found[main.name].run_id is None  # the name is no id: the transcript says it


def test_a_sub_agent_whose_session_is_gone_is_a_run_of_its_own(home: Path) -> None:
    place = projects(home)
    session(place, TWO)
    new = agent(place / ONE / "subagents" / "agent-a1.jsonl")
    old = agent(place / "agent-b2.jsonl")
    found = runs(source("claude-code"))
    assert set(found) == {f"{TWO}.jsonl", new.name, old.name}
    for path in (new, old):
        one = found[path.name]
        assert (one.run_id, one.task, one.paths) == (f"{ONE}-{path.stem}", ONE, (path,))
        assert one.note == "a sub-agent whose session is gone"
        assert one.run_id == of_session(path).run_id
        ended = source("claude-code").ending(one, NOW, OpenFiles())
        assert (ended.complete, ended.outcome) == (True, "succeeded")


def test_no_sub_agent_is_lost_with_a_session_that_is_none(home: Path) -> None:
    place = projects(home)
    side = agent(place / ONE / "subagents" / "agent-a1.jsonl")
    (place / f"{ONE}.jsonl").touch()
    assert set(runs(source("claude-code"))) == {side.name}
    (place / f"{ONE}.jsonl").unlink()
    (place / f"{ONE}.jsonl").symlink_to(home / "nothing")
    assert set(runs(source("claude-code"))) == {side.name}


def test_a_session_is_not_read_to_be_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        session(projects(home), session_id(name))
        agent(projects(home) / session_id(name) / "subagents" / "agent-1.jsonl", session_id(name))
    place = source("claude-code")

    def refuse(*_: Any, **__: Any) -> int:
        raise AssertionError("a file was opened")

    monkeypatch.setattr(os, "open", refuse)
    assert [len(one.files) for one in runs(place).values()] == [2, 2, 2]


def test_a_session_that_goes_on_from_another_is_told_apart_by_its_name(home: Path) -> None:
    place = projects(home)
    session(place, ONE)
    write(place / f"{TWO}.jsonl", [*Claude(ONE).whole(), *Claude(TWO).whole()])
    assert {one.run_id for one in runs(source("claude-code")).values()} == {ONE, TWO}


def test_links_and_second_names_make_no_second_run(home: Path, tmp_path: Path) -> None:
    place = projects(home)
    main = session(place)
    (place / "linked.jsonl").symlink_to(main)
    os.link(main, place / "zz.jsonl")
    (place.parent / "-linked").symlink_to(place)
    away = session(tmp_path / "away", TWO)
    (place / away.name).symlink_to(away)
    (place / "nowhere.jsonl").symlink_to(tmp_path / "nothing")
    (place / "loop.jsonl").symlink_to(place / "loop.jsonl")
    assert set(runs(source("claude-code"))) == {main.name, away.name}


def test_a_sub_agent_that_is_a_link_is_not_followed(home: Path, tmp_path: Path) -> None:
    place = projects(home)
    main = session(place)
    secret = agent(tmp_path / "agent-x.jsonl")
    folder = place / ONE / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-x.jsonl").symlink_to(secret)
    assert [stamp.path for stamp in runs(source("claude-code"))[main.name].files] == [main]


def test_a_home_and_its_projects_are_the_same_place(home: Path) -> None:
    main = session(projects(home))
    for path in (None, home / ".claude", home / ".claude" / "projects"):
        assert set(runs(source("claude-code", path))) == {main.name}


# --- Codex


def test_sessions_of_codex_by_day_and_put_away(home: Path) -> None:
    day = rollouts(home)
    first = write(day / "rollout-1.jsonl", [head("a"), codex_asks(), codex_says()])
    put_away = write(home / ".codex" / "archived_sessions" / "rollout-2.jsonl", [head("b"), codex_says()])
    flat = write(home / ".codex" / "sessions" / "rollout-3.jsonl", [head("c"), codex_says()])
    torn = write(day / "rollout-4.jsonl", [], end='{"timestamp"')
    write(day / "notes.jsonl", [{}])
    write(home / ".codex" / "history.jsonl", [{}])
    (day / "rollout-5.jsonl").touch()
    (day / "rollout-6.jsonl").symlink_to(first)
    (home / ".codex" / "sessions" / "2026" / "03").symlink_to(day.parent)
    found = runs(source("codex"))
    assert {name: one.run_id for name, one in found.items()} == {
        first.name: "a",
        put_away.name: "b",
        flat.name: "c",
        torn.name: None,
    }
    assert set(runs(source("codex", home / ".codex" / "sessions"))) == {first.name, flat.name, torn.name}


def test_a_sub_agent_of_codex_is_a_run_of_the_same_task(home: Path) -> None:
    day = rollouts(home)
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "root", "depth": 1}}}
    deeper = {"subagent": {"thread_spawn": {"parent_thread_id": "mid", "depth": 2}}}
    write(day / "rollout-1.jsonl", [head("root"), codex_says()])
    write(day / "rollout-2.jsonl", [head("mid", source=spawned), codex_says()])
    write(day / "rollout-3.jsonl", [head("deep", source=deeper), codex_says()])
    write(day / "rollout-4.jsonl", [head("by-id", thread_source="subagent", session_id="root"), codex_says()])
    write(day / "rollout-5.jsonl", [head("alone", source={"subagent": "review"}), codex_says()])
    write(day / "rollout-6.jsonl", [head("fork", forked_from_id="root"), codex_says()])
    loop = {"thread_source": "subagent", "parent_thread_id": "loop-b"}
    write(day / "rollout-7.jsonl", [head("loop-a", **loop), codex_says()])
    write(day / "rollout-8.jsonl", [head("loop-b", **loop | {"parent_thread_id": "loop-a"}), codex_says()])
    found = {one.run_id: one.task for one in runs(source("codex")).values()}
    assert {run: found[run] for run in ("root", "alone", "fork")} == {
        "root": None,
        "alone": None,
        "fork": None,
    }
    assert {found[run] for run in ("mid", "deep", "by-id")} == {"root"}
    assert set(found) >= {"loop-a", "loop-b"}


def test_a_compressed_session_is_said(home: Path) -> None:
    write(rollouts(home) / "rollout-1.jsonl.zst", [{}])
    assert words(source("codex")) == {
        "rollout-1.jsonl.zst": ("it is compressed; unpack it to have it archived", False)
    }


# --- messages


def test_messages_at_any_depth_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "logs"
    chat = write(place / "deep" / "er" / "chat.json", [messages()])
    lines = write(place / "lines.jsonl", messages())
    stream = write(place / "stream.jsonl", [*Claude(ONE).whole(), Claude(ONE).ended()])
    rollout = write(place / "some.jsonl", [head("r"), codex_asks(), codex_says()])
    row = {"task_id": "t", "goal": "g", "messages": [{"role": "system", "content": "x"}, *messages()]}
    write(place / "rows.jsonl", [row])
    (place / "row.json").write_text(json.dumps([row], indent=1))
    (place / "notes.txt").write_text("hello")
    (place / "data.json").write_text('{"a": 1}')
    (place / ".hidden.json").write_text(json.dumps(messages()))
    (place / "empty.json").touch()
    (place / "link.json").symlink_to(chat)
    os.mkfifo(place / "pipe.json")
    (place / "loop").symlink_to(place)
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(place)  # the path of a socket is short
        listener.bind("socket.json")
        found = list(source("messages", place).find())
    assert {Path(one.key).name: one.run_id for one in found if isinstance(one, Found)} == {
        chat.name: None,
        lines.name: None,
        stream.name: None,
        rollout.name: "r",
    }
    assert {Path(one.key).name: one.why for one in found if isinstance(one, Unusable)} == {
        "rows.jsonl": "it holds rows; name it to `archiver archive`",
        "row.json": "it holds rows; name it to `archiver archive`",
        "notes.txt": "it is no JSON",
        "data.json": "it is no transcript of a known format",
        "link.json": "it is a link; name the folder that it leads to as a source",
        "loop": "it is a link; name the folder that it leads to as a source",
    }
    assert not any(one.broken for one in found if isinstance(one, Unusable))


def test_a_word_about_a_task_does_not_make_a_row(tmp_path: Path) -> None:
    tool = {"name": "plan", "input_schema": {"properties": {"task_id": {}, "goal": {}, "messages": {}}}}
    request = {"model": "claude-sonnet-4", "tools": [tool], "system": "x", "messages": messages()}
    write(tmp_path / "logs" / "request.json", [request])
    assert set(runs(source("messages", tmp_path / "logs"))) == {"request.json"}


def test_sub_agents_among_messages_go_with_their_session(tmp_path: Path) -> None:
    place = tmp_path / "logs"
    main = session(place)
    agent(place / ONE / "subagents" / "agent-a1.jsonl")
    agent(place / "agent-b2.jsonl")
    lost = agent(place / "agent-c3.jsonl", TWO)
    found = list(source("messages", place).find())
    by_name = {Path(one.key).name: one for one in found if isinstance(one, Found)}
    assert set(by_name) == {main.name, lost.name}
    assert len(by_name[main.name].files) == 3
    assert by_name[lost.name].run_id == f"{TWO}-agent-c3"


# --- folders with a manifest


def manifest(folder: Path, **more: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    value = {"format": 1, "run": "r1", "transcript": ["log/chat.json"], **more}
    (folder / "archiver-run.json").write_text(json.dumps(value))
    return write(folder / "log" / "chat.json", [messages()])


def test_a_manifest_makes_a_run(tmp_path: Path) -> None:
    place = tmp_path / "runs"
    said = {"outcome": "failed", "task": "t1", "user": "u1", "phase": "p", "note": "n"}
    main = manifest(place / "deep" / "one", **said)
    found = runs(source("folder", place))["one"]
    assert (found.kind, found.key, found.paths) == ("folder", str(place / "deep" / "one"), (main,))
    assert [stamp.path for stamp in found.files] == [main, place / "deep" / "one" / "archiver-run.json"]
    assert (found.run_id, found.outcome, found.task) == ("r1", "failed", "t1")
    assert (found.user, found.phase, found.note) == ("u1", "p", "n")
    assert runs(source("folder", place, task="mine"))["one"].task == "mine"


def test_a_manifest_of_a_session_has_its_sub_agents(tmp_path: Path) -> None:
    place = tmp_path / "runs"
    manifest(place, transcript=[f"{ONE}.jsonl"])
    main, side = session(place), agent(place / ONE / "subagents" / "agent-a.jsonl")
    found = runs(source("folder", place))["runs"]
    assert found.paths == (main,)
    assert [stamp.path for stamp in found.files] == [main, side, place / "archiver-run.json"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("/etc/passwd", "is not a path within the folder"),
        ("../other/chat.json", "is not a path within the folder"),
        ("log/../../other/chat.json", "is not a path within the folder"),
        (".", "is not a path within the folder"),
        ("log", "is no regular file"),
        ("none.json", "is not there"),
        ("log/chat.json/x", "is not there"),
        ("link.json", "leads through a link"),
        ("linked/chat.json", "leads through a link"),
        ("pipe", "is no regular file"),
        ("bad\x1b[2Jname", "is not there"),
        ("x" * 300, "cannot be read: File name too long"),
        ("\ud800", "'transcript.1' is not text"),
    ],
)
def test_a_manifest_leads_nowhere_else(tmp_path: Path, name: str, why: str) -> None:
    place = tmp_path / "runs"
    manifest(place / "bad", transcript=["log/chat.json", name])
    good = manifest(place / "good").parents[1]
    manifest(place / "other")
    (place / "bad" / "link.json").symlink_to(place / "other" / "log" / "chat.json")
    (place / "bad" / "linked").symlink_to(place / "other" / "log")
    os.mkfifo(place / "bad" / "pipe")
    found = list(source("folder", place).find())
    assert {Path(one.key).name for one in found if isinstance(one, Found)} == {good.name, "other"}
    [bad] = [one for one in found if isinstance(one, Unusable)]
    assert (bad.key, bad.broken) == (str(place / "bad"), True)
    assert bad.why.endswith(why)
    assert "\x1b" not in bad.why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"format": 2, "run": "r"}', "has format 2, and this release reads 1: update checkpoint-archiver"),
        ('{"format": 1, "run": "r"}', "is not valid: the key 'transcript' is missing"),
        ('{"format": 1, "run": "", "transcript": ["a"]}', "is not valid: 'run' is empty"),
        ('{"run": "r", "transcript": ["a"], "more": 1}', "is not valid: there is no key 'more'"),
        ("[]", "is not valid: the document is not an object"),
        ('{"run":\n "x",}', "is no JSON: line 2, column 6: "),
        (" " * (1 << 20) + "{}", "has 1048578 bytes, more than 1048576"),
    ],
)
def test_a_manifest_that_is_none_is_refused_by_name(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "archiver-run.json").write_text(text)
    [bad] = list(source("folder", tmp_path).find())
    assert isinstance(bad, Unusable)
    assert bad.broken
    assert why in bad.why
    assert bad.why.startswith("its archiver-run.json ")


def test_a_manifest_that_is_a_link_is_refused(tmp_path: Path) -> None:
    manifest(tmp_path / "away")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "archiver-run.json").symlink_to(tmp_path / "away" / "archiver-run.json")
    (tmp_path / "runs" / "loop").symlink_to(tmp_path / "runs")
    assert words(source("folder", tmp_path / "runs")) == {
        "runs": ("its archiver-run.json is no regular file", True)
    }


# --- all of them


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("**", {"a", "b", "c"}),
        ("", {"a", "b", "c"}),
        ("one", {"a", "b"}),
        ("one/*", {"a", "b"}),
        ("one/a", {"a"}),
        ("**/b", {"b"}),
        ("*/b", {"b"}),
        ("[!o]*/**", {"c"}),
        ("**/two/**", {"c"}),
        ("tw?/**/c", {"c"}),
        ("a", set()),
        ("*/*/*", set()),
    ],
)
def test_only_what_fits_the_pattern(tmp_path: Path, pattern: str, expected: set[str]) -> None:
    for path in ("one/a", "one/b", "two/c"):
        manifest(tmp_path / path)
        write(tmp_path / "logs" / path, [messages()])
        write(tmp_path / "claude" / f"{path}.jsonl", Claude().whole())
    assert set(runs(source("folder", tmp_path, match=pattern))) == expected
    assert set(runs(source("messages", tmp_path / "logs", match=pattern))) == expected


def test_a_pattern_counts_for_harnesses_too(home: Path) -> None:
    session(projects(home))
    session(projects(home).with_name("-other"), TWO)
    write(rollouts(home) / "rollout-1.jsonl", [head("a"), codex_says()])
    assert set(runs(source("claude-code", match="-o*/**"))) == {f"{TWO}.jsonl"}
    assert runs(source("codex", match="archived_sessions/**")) == {}
    assert set(runs(source("codex", match="sessions/2026/**"))) == {"rollout-1.jsonl"}


def test_names_may_be_any_bytes(home: Path) -> None:
    name = os.fsdecode(b"\xff\xfe\x1b[2J.jsonl")
    session(projects(home)).rename(projects(home) / name)
    [found] = source("claude-code").find()
    assert isinstance(found, Found)
    assert found.key == str(projects(home) / name)
    assert source("claude-code").ending(found, NOW, OpenFiles()).outcome == "succeeded"


def test_a_folder_that_cannot_be_listed_leaves_the_others(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session(projects(home))
    closed = projects(home).with_name("-closed")
    session(closed, TWO)
    real = os.scandir

    def scandir(path: Any) -> Any:
        if os.fspath(path) == str(closed):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    for place in (source("claude-code"), source("messages", home / ".claude")):
        found = list(place.find())
        assert [Path(one.key).name for one in found if isinstance(one, Found)] == [f"{ONE}.jsonl"]
        [bad] = [one for one in found if isinstance(one, Unusable)]
        assert (bad.key, bad.broken) == (str(closed), True)
        assert bad.why == "cannot be looked at: Permission denied"


def test_what_vanishes_on_the_way_is_nobodys(home: Path) -> None:
    folder = projects(home)
    session(folder)
    session(folder.with_name("-zz"), TWO)
    found: Iterator[Found | Unusable] = source("claude-code").find()
    first = next(found)
    (folder.with_name("-zz") / f"{TWO}.jsonl").unlink()
    folder.with_name("-zz").rmdir()
    assert isinstance(first, Found)
    assert list(found) == []


def test_the_settings_say_how_long_and_for_what(home: Path) -> None:
    session(projects(home))
    [found] = source("claude-code", idle="2h", task="t").find()
    assert isinstance(found, Found)
    assert (found.idle, found.task) == (timedelta(hours=2), "t")
    [place] = configured(Settings(sweep=SweepSettings(idle="45m")))  # type: ignore[arg-type]
    [found] = place.find()
    assert isinstance(found, Found)
    assert (found.idle, found.task) == (timedelta(minutes=45), None)


def test_without_settings_there_are_the_harnesses_that_are_there(home: Path) -> None:
    assert configured(Settings()) == ()
    (home / ".codex").mkdir()
    assert [(one.kind, one.path) for one in configured(Settings())] == [("codex", home / ".codex")]
    projects(home).mkdir(parents=True)
    assert [one.kind for one in configured(Settings())] == ["claude-code", "codex"]


def test_a_place_that_is_not_there_is_said(home: Path) -> None:
    for kind in ("claude-code", "codex"):
        [word] = source(kind).find()
        assert isinstance(word, Unusable)
        assert (word.why, word.broken) == ("there is no such folder", False)
    for kind in ("claude-code", "codex", "messages", "folder"):
        [word] = source(kind, home / "none").find()
        assert isinstance(word, Unusable)
        assert (word.why, word.broken) == ("there is no such folder", True)


def test_the_examples_of_the_guide_are_valid(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "SOURCES.md").read_text("utf-8")
    blocks = re.findall(r"(?:^    .*\n)+", guide, re.MULTILINE)
    example = tomllib.loads(next(block for block in blocks if "[sweep]" in block))
    assert [one.kind for one in SweepSettings.model_validate(example["sweep"]).sources] == [
        "claude-code",
        "codex",
        "messages",
        "folder",
    ]
    said = json.loads(next(block for block in blocks if '"format"' in block))
    manifest(tmp_path, **said | {"transcript": ["log/chat.json"]})
    assert runs(source("folder", tmp_path))[tmp_path.name].run_id == "build-4711"
