"""A store in a folder: what its file system does, and who else can reach it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from archiver.config import load
from archiver.doctor import Check, exit_code
from archiver.setup import open_setup

from .conftest import Settle

Checked = Callable[..., dict[str, Check]]


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_folder_as_it_should_be(tmp_path: Path, settle: Settle, checked: Checked) -> None:
    settings = settle(str(tmp_path / "store"))
    before = files(tmp_path / "store")
    found = checked(settings)
    assert found.pop("key beside store").verdict == "warning"
    assert {check.verdict for check in found.values()} == {"ok"}, found
    assert found["fencing"].text.startswith("enforced")
    assert files(tmp_path / "store") == before == [".store.json.class", "store.json"]


def test_a_folder_that_is_not_there(tmp_path: Path, settle: Settle, checked: Checked) -> None:
    found = checked(settle(str(tmp_path / "store"), bare=True))
    assert (found["store"].verdict, found["store"].exit_code) == ("failure", 8)
    assert "archiver init" in (found["store"].remedy or "")
    assert not (tmp_path / "store").exists()
    (tmp_path / "file").write_text("x")
    assert "is no folder" in checked(settle(str(tmp_path / "file"), bare=True))["store"].text


def test_nothing_configured_and_nothing_there(checked: Checked) -> None:
    found = checked(load())
    assert found["store"].verdict == "failure"
    assert exit_code(found.values()) == 8


def test_an_address_of_no_known_kind(settle: Settle, checked: Checked) -> None:
    found = checked(settle("gopher://host/x", bare=True))
    assert (found["store"].verdict, found["store"].exit_code) == ("failure", 2)


def test_a_folder_that_is_no_store(tmp_path: Path, settle: Settle, checked: Checked) -> None:
    (tmp_path / "store").mkdir(mode=0o700)
    found = checked(settle(str(tmp_path / "store"), bare=True))
    assert (found["store id"].verdict, found["store id"].exit_code) == ("failure", 2)
    (tmp_path / "store" / "store.json").write_text("{}")
    found = checked(settle(str(tmp_path / "store"), bare=True))
    assert (found["store id"].verdict, found["store id"].exit_code) == ("failure", 4)


@pytest.mark.parametrize(
    ("mode", "what"), [(0o755, "look into"), (0o777, "write into"), (0o770, "write into")]
)
def test_a_folder_that_others_can_reach(
    mode: int, what: str, tmp_path: Path, settle: Settle, checked: Checked
) -> None:
    settings = settle(str(tmp_path / "store"))
    (tmp_path / "store").chmod(mode)
    (tmp_path / "store" / "store.json").chmod(0o644)
    found = checked(settings)["other users"]
    assert found.verdict == "warning"
    assert what in found.text
    assert found.remedy == f"`chmod -R go= {tmp_path / 'store'}`"
    if mode == 0o755:
        assert "store.json can be read" in found.text


def test_objects_without_a_class(tmp_path: Path, settle: Settle, checked: Checked) -> None:
    settings = settle(str(tmp_path / "store"))
    store = open_setup(settings, "write").store
    store.create("records/run/00000001.age", [b"x"], retention="record")
    (tmp_path / "store" / "records" / "run" / ".00000001.age.class").unlink()
    found = checked(settings)["classes"]
    assert found.verdict == "warning"
    assert "1 of 2 objects without one" in found.text


def test_a_file_system_without_hard_links(
    tmp_path: Path, settle: Settle, checked: Checked, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settle(str(tmp_path / "store"))

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")  # as FAT and some network mounts answer

    monkeypatch.setattr(os, "link", refuse)
    found = checked(settings)["fencing"]
    assert (found.verdict, found.exit_code) == ("failure", 8)
    assert "hard link" in found.text


def test_fencing_switched_off_for_nothing(tmp_path: Path, settle: Settle, checked: Checked) -> None:
    settings = settle(str(tmp_path / "store"), fencing=False)
    assert any("both win" in warning for warning in open_setup(settings, "write").warnings)
    assert checked(settings)["fencing"].verdict == "warning"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", place], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("a small tmpfs cannot be mounted here")
    yield place
    subprocess.run(["umount", place], check=True)


def test_little_room(small_disk: Path, settle: Settle, checked: Checked) -> None:
    found = checked(settle(str(small_disk)))["free space"]
    assert (found.verdict, found.exit_code) == ("failure", 8)
    assert "0.0 GB free" in found.text


LOOK = """
import sys
from archiver.config import load
from archiver.doctor import examine
for check in examine(load(flags={"store": {"url": sys.argv[1]}}, without_file=True)):
    print(check.verdict, check.name, check.text, sep="\\t")
"""


def looked_at_by_nobody(folder: Path) -> str:
    """What somebody else finds; only root can become somebody else, and others need only close the folder."""
    folder.chmod(0o555)
    somebody = {"user": 65534} if os.geteuid() == 0 else {}
    environ = {"HOME": str(folder.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    look = [sys.executable, "-c", LOOK, str(folder)]
    try:
        done = subprocess.run(look, env=environ, cwd="/", capture_output=True, text=True, **somebody)
    except PermissionError:
        pytest.skip("the interpreter is closed to others")
    finally:
        folder.chmod(0o755)
    if "store" not in done.stdout:
        pytest.skip("the interpreter is closed to others")
    return done.stdout


def test_somebody_who_may_only_read(settle: Settle) -> None:
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        folder = Path(place) / "store"
        settle(str(folder))
        (folder / "store.json").chmod(0o644)
        rows = [line.split("\t") for line in looked_at_by_nobody(folder).splitlines()]
    assert ["unknown", "fencing", "this user may not write here, so it could not be tried"] in rows
