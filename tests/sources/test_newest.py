"""Which session is meant when no path is named."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from archiver.errors import InputNotFoundError
from archiver.sources.newest import newest_session


def session(folder: Path, name: str, age: int, text: str = "{}\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    return path


def projects(home: Path, folder: Path) -> Path:
    slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in str(folder))
    return home / ".claude" / "projects" / slug


def test_the_newest_session_of_this_folder(home: Path) -> None:
    place = projects(home, Path.cwd())
    session(place, "old.jsonl", 100)
    newest = session(place, "new.jsonl", 10)
    session(place, "agent-abc.jsonl", 1)  # a sub-agent, not a session
    session(place, "empty.jsonl", 1, "")
    session(place, "notes.txt", 1)
    (place / "folder.jsonl").mkdir()
    session(projects(home, home), "elsewhere.jsonl", 0)
    assert newest_session(Path.cwd()) == newest


def test_the_configured_place(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session(projects(home, Path.cwd()), "default.jsonl", 0)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    with pytest.raises(InputNotFoundError):
        newest_session(Path.cwd())
    slug = projects(home, Path.cwd()).name
    expected = session(tmp_path / "claude" / "projects" / slug, "here.jsonl", 50)
    assert newest_session(Path.cwd()) == expected


def test_a_folder_reached_through_a_link(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "linked_work"
    link.symlink_to(home / "work")
    expected = session(projects(home, link), "by-link.jsonl", 0)
    monkeypatch.chdir(link)
    with pytest.raises(InputNotFoundError):
        newest_session(Path.cwd())
    monkeypatch.setenv("PWD", str(link))
    assert newest_session(Path.cwd()) == expected
    monkeypatch.setenv("PWD", "/somewhere/else")  # a variable that lies
    with pytest.raises(InputNotFoundError):
        newest_session(Path.cwd())


def test_long_folders_are_cut(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = home / ("a" * 150) / ("b" * 150)
    folder.mkdir(parents=True)
    slug = projects(home, folder).name
    expected = session(home / ".claude" / "projects" / f"{slug[:200]}-x1y2", "long.jsonl", 0)
    assert newest_session(folder) == expected


def test_none_says_where_it_looked(home: Path) -> None:
    with pytest.raises(InputNotFoundError) as caught:
        newest_session(Path.cwd())
    assert str(projects(home, Path.cwd())) in str(caught.value)
    assert caught.value.remedy == "name a transcript: `archiver archive PATH`"


def rollout(place: Path, name: str, folder: Path, age: int, **meta: object) -> Path:
    payload = {"id": "s", "cwd": str(folder), "source": "cli", **meta}
    head = {"timestamp": "2026-06-26T12:24:12.748Z", "type": "session_meta", "payload": payload}
    return session(place / "2026" / "06" / "26", f"rollout-{name}.jsonl", age, json.dumps(head) + "\n{}\n")


def test_a_session_of_codex_is_one_of_the_folder_it_was_started_in(home: Path) -> None:
    place = home / ".codex" / "sessions"
    rollout(place, "other", home, 1)
    rollout(place, "side", Path.cwd(), 2, source={"subagent": "review"})
    rollout(place, "side-too", Path.cwd(), 3, thread_source="subagent")
    rollout(place, "older", Path.cwd(), 90)
    (place / "2026" / "06" / "26" / "rollout-torn.jsonl").write_text('{"timestamp"')
    session(place / "2026" / "06" / "26", "notes.jsonl", 0)
    newest = rollout(place, "newer", Path.cwd(), 50)
    assert newest_session(Path.cwd()) == newest


def test_the_newest_of_both_harnesses(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claude = session(projects(home, Path.cwd()), "c.jsonl", 20)
    rollout(home / ".codex" / "sessions", "old", Path.cwd(), 30)
    assert newest_session(Path.cwd()) == claude
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    newest = rollout(tmp_path / "codex" / "sessions", "new", Path.cwd(), 10)
    assert newest_session(Path.cwd()) == newest
