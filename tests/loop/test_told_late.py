"""What becomes known as secret is taken out of a folder's files that are not read again, too."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from freshness.repos import Repo
from workspace.git_saving import git

from archiver.progress import Silent
from archiver.saved import fetch
from archiver.setup import Setup
from archiver.workspace import cache
from loop.growing import bases, records
from loop.working import Working, back, looks, reading


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as settled at once."""
    monkeypatch.setattr(cache, "_MARGIN", 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    for number in range(30):
        part = place / f"part{number % 3}"
        part.mkdir(parents=True, exist_ok=True)
        (part / f"file{number}.txt").write_text(f"text {number}\n" * 60)
    return place


@pytest.fixture
def working(setup: Setup, folder: Path) -> Working:
    return Working(setup, folder)


@pytest.fixture
def value() -> str:
    return secrets.token_hex(10) + "Zq7"


def everything(working: Working, tmp_path: Path, seq: int) -> bytes:
    """All bytes of all members that a checkpoint has, those of its bases too."""
    found = {one.seq: one for one in records(working.setup)}
    bundle = found[seq].bundle
    assert bundle is not None
    unpacked = tmp_path / f"unpacked-{seq}"
    fetch(found[seq], working.setup, unpacked, Silent(), tuple(found[base] for base in bundle.bases))
    return b"".join(path.read_bytes() for path in unpacked.rglob("*") if path.is_file())


def tell(working: Working, value: str) -> None:
    (working.folder / "z.ini").write_text(f'password = "{value}"\n')


def test_a_base_from_before_does_not_bring_it_back(working: Working, tmp_path: Path, value: str) -> None:
    """The store answers late: what is based on an old bundle must not keep what that has of the file."""
    (working.folder / "part1" / "some.txt").write_text(f"it says {value} here\n")
    working.save()
    working.save()
    tell(working, value)
    for _ in range(3):
        working.save(deliver=False)
    assert working.deliver()
    assert bases(working.setup)[2:] == [(1, 2)] * 3
    for seq in (3, 4, 5):
        assert value.encode() not in everything(working, tmp_path, seq)


def as_link(path: Path) -> None:
    path.symlink_to("elsewhere")


def as_folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("before", [as_link, as_folder])
@pytest.mark.parametrize("name", [".env", "x.env"])
def test_a_file_of_credentials_in_the_place_of_something_else_is_learned_from(
    working: Working, tmp_path: Path, value: str, name: str, before: Callable[[Path], None]
) -> None:
    path = working.folder / name
    before(path)
    working.save()
    path.rmdir() if path.is_dir() else path.unlink()
    path.write_text(f"LABEL={value}\n")
    (working.folder / "log.txt").write_text(f"the label is {value}\n")
    working.messages.append({"role": "user", "content": f"take {value} as label"})
    working.save()
    assert value.encode() not in everything(working, tmp_path, 2)


def _fails(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["archiver.preparing.last_scan", "archiver.preparing.seal"])
def test_a_save_that_is_interrupted_has_nothing_forgotten(
    working: Working, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str, where: str
) -> None:
    working.save()
    (working.folder / "x.env").write_text(f"LABEL={value}\n")
    (working.folder / "log.txt").write_text(f"the label is {value}\n")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(where, _fails)
        working.save()
    working.save()
    assert value.encode() not in everything(working, tmp_path, 2)


@pytest.mark.parametrize("saves_between", [0, 1])
@pytest.mark.parametrize("known_by", ["turn", "last scan"])
def test_lines_that_others_overrule_are_not_kept_of_a_base(
    working: Working,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    value: str,
    saves_between: int,
    known_by: str,
) -> None:
    """The name of a file that has gone since, and what a link said before."""
    gone, link = working.folder / f"part-{value}", working.folder / "link"
    gone.write_text("its name\n")
    link.symlink_to(f"to-{value}")
    working.save()
    gone.unlink()
    link.unlink()
    link.symlink_to("other")
    for _ in range(saves_between):
        working.save()
    if known_by == "turn":
        working.messages.append({"role": "user", "content": f"DB_PASSWORD={value}"})
    else:
        _found_by_the_last_scan(monkeypatch, value)
    working.save(deliver=False)
    working.save()
    for seq in (2 + saves_between, 3 + saves_between):
        assert bases(working.setup)[seq - 1] == tuple(range(1, 2 + saves_between))
        assert value.encode() not in everything(working, tmp_path, seq)


def _found_by_the_last_scan(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    from archiver.redact import Redactor

    scan = Redactor.members

    def finds(self: Redactor, *given: Any) -> Any:
        self._ledger.replace("github-token", "github-token", value.encode(), "the last scan")
        return scan(self, *given)

    monkeypatch.setattr(Redactor, "members", finds)


def test_what_the_name_of_a_pipe_tells_is_searched_for(working: Working, tmp_path: Path, value: str) -> None:
    """It is seen when all files were taken already."""
    (working.folder / "part1" / "some.txt").write_text(f"it says {value} here\n")
    working.save()
    os.mkfifo(working.folder / f"password={value}")
    for seq in (2, 3):
        working.save()
        assert value.encode() not in everything(working, tmp_path, seq)


def test_what_only_the_index_of_git_tells_is_searched_for(setup: Setup, tmp_path: Path, value: str) -> None:
    repo, folder = Repo(tmp_path / "repo"), tmp_path / "repo"
    repo.commit("one\n")
    for number in range(9):
        (folder / f"file{number}").write_text(f"{number}\n" * 3000)
    (folder / "some.txt").write_text(f"it says {value} here\n")
    working = Working(setup, folder)
    working.save()
    (folder / "z.ini").write_text(f'password = "{value}"\n')
    git(folder, "add", "z.ini")
    (folder / "z.ini").write_text("nothing\n")
    for seq in (2, 3):
        working.save()
        assert bases(working.setup)[seq - 1] == tuple(range(1, seq))
        assert value.encode() not in everything(working, tmp_path, seq)


def test_it_is_found_however_json_writes_it(working: Working, tmp_path: Path, value: str) -> None:
    escaped = "".join(f"\\u{ord(sign):04x}" for sign in value)
    (working.folder / "one.json").write_text(f'{{"a": "{escaped}"}}\n')
    (working.folder / "lines.json").write_text(f'{{\n "a": 1,\n "b": "{escaped}"\n}}\n')
    (working.folder / "part.py").write_text(f'key = "{escaped}"\n')
    working.save()
    tell(working, value)
    working.save()
    assert bases(working.setup)[1] == (1,)
    held = everything(working, tmp_path, 2)
    assert value.encode() not in held
    assert escaped.encode() not in held


def limited(setup: Setup, **limits: Any) -> Setup:
    changed = setup.settings.limits.model_copy(update=limits)
    return replace(setup, settings=setup.settings.model_copy(update={"limits": changed}))


def test_a_bundle_without_room_leaves_out_the_largest_file_though_its_base_has_it(
    setup: Setup, folder: Path, tmp_path: Path
) -> None:
    """What need not be read has no right to its place: the save would fail for the conversation."""
    (folder / "large").write_bytes(secrets.token_hex(60_000).encode())
    working = Working(limited(setup, bundle=300_000, member=250_000, artifact=250_000), folder)
    working.save()
    for _ in range(5):
        working.grow(4_000)
        working.save()
    whole, cut = looks(back(working, tmp_path, 2)), looks(back(working, tmp_path, 6))
    assert whole == working.looked[2]
    assert cut == {path: seen for path, seen in working.looked[6].items() if path != "large"}
    assert bases(working.setup)[5] == (1, 2, 3, 4, 5)


def test_a_bundle_with_room_reads_nothing_for_its_limits(
    setup: Setup, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    working = Working(limited(setup, bundle=300_000, member=250_000, artifact=250_000), folder)
    working.save()
    with reading(monkeypatch) as read:
        working.save()
    assert read == []
