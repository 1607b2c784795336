"""What whoever writes runs cannot have read in the name of whoever archives them: what lies elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.conftest import cache, config, setup

from archiver.errors import RefusedError
from archiver.setup import Setup
from archiver.sources import Found, OpenFiles, Unusable, folder
from archiver.sources.beneath import led_astray
from archiver.sources.found import FileStamp
from archiver.sources.listing import stamp_of
from archiver.sweep.saving import save
from archiver.transcripts.reader import read
from sources.samples import NOW, messages, projects, write
from sources.test_finding import ONE, agent, manifest, session, source

__all__ = ["cache", "config", "setup"]


@pytest.mark.parametrize("link", [ONE, f"{ONE}/subagents"])
@pytest.mark.parametrize("kind", ["folder", "messages", "claude-code"])
def test_no_link_leads_to_the_sub_agents_of_somebody_else(
    home: Path, tmp_path: Path, kind: str, link: str
) -> None:
    """They would be archived in the run of who put the link there."""
    theirs = agent(tmp_path / "theirs" / "subagents" / "agent-a.jsonl")
    place = projects(home)
    main = session(place)
    if kind == "folder":
        manifest(place, transcript=[main.name])
    (place / link).parent.mkdir(exist_ok=True)
    (place / link).symlink_to(theirs.parents[1 if link == ONE else 0])
    root = place.parent if kind == "claude-code" else place
    [found] = [one for one in source(kind, root).find() if isinstance(one, Found)]
    assert not [stamp for stamp in found.files if stamp.path.name == "agent-a.jsonl"]
    assert [one.source.path for one in read(found.paths).files] == [main]


@pytest.mark.parametrize("swapped", ["log", "log/chat.json"])
def test_a_link_that_is_there_for_a_moment_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    theirs = write(tmp_path / "theirs" / "chat.json", [messages()])
    main = manifest(tmp_path / "runs" / "one")
    path = tmp_path / "runs" / "one" / swapped
    look = folder.files_of

    def files_of(paths: tuple[Path, ...]) -> tuple[FileStamp, ...]:
        path.rename(tmp_path / "aside")
        path.symlink_to(theirs.parent if swapped == "log" else theirs)
        try:
            return look(paths)
        finally:
            path.unlink()
            (tmp_path / "aside").rename(path)

    monkeypatch.setattr(folder, "files_of", files_of)
    [bad] = source("folder", tmp_path / "runs").find()
    assert isinstance(bad, Unusable)
    assert bad.why == "log/chat.json is reached through a link"
    assert main.exists()


@pytest.mark.parametrize("swapped", ["log", "log/chat.json"])
@pytest.mark.parametrize("kind", ["folder", "messages"])
def test_what_is_swapped_for_a_link_after_it_was_found_is_not_saved(
    tmp_path: Path, setup: Setup, kind: str, swapped: str
) -> None:
    theirs = write(tmp_path / "theirs" / "chat.json", [messages()])
    manifest(tmp_path / "runs" / "one")
    [found] = [one for one in source(kind, tmp_path / "runs").find() if isinstance(one, Found)]
    path = tmp_path / "runs" / "one" / swapped
    path.rename(tmp_path / "aside")
    path.symlink_to(theirs.parent if swapped == "log" else theirs)
    saved = save(found, "succeeded", setup)
    assert saved.what == "failed"
    assert isinstance(saved.error, RefusedError)
    assert "is not the file that was found there" in str(saved.error)
    path.unlink()
    (tmp_path / "aside").rename(path)
    assert save(found, "succeeded", setup).what == "archived"


def test_a_link_that_stays_is_seen_as_well(tmp_path: Path) -> None:
    root = tmp_path / "root"
    main = write(root / "log" / "chat.json", [messages()])
    (root / "linked").symlink_to("log")
    (root / "link.json").symlink_to(main)
    (tmp_path / "link").symlink_to(root)
    stamps = {path: stamp_of(path) for path in (main, root / "linked" / main.name, root / "link.json")}
    for path, stamp in stamps.items():
        assert stamp is not None
        assert led_astray(root, [stamp]) == (None if path == main else path)
    through = stamp_of(tmp_path / "link" / "log" / main.name)
    assert through is not None
    assert led_astray(tmp_path / "link", [through]) is None  # the place itself may be a link


def test_how_it_ended_is_not_told_by_what_a_link_leads_to(tmp_path: Path) -> None:
    theirs = write(tmp_path / "theirs" / "chat.json", [messages()])
    main = manifest(tmp_path / "runs" / "one")
    place = source("folder", tmp_path / "runs")
    [found] = [one for one in place.find() if isinstance(one, Found)]
    main.unlink()
    main.symlink_to(theirs)
    assert not place.ending(found, NOW, OpenFiles()).complete
