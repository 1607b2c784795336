"""What a restore needs of this machine: the memory of runs, the audit file; and where the key lies."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from archiver.archive import Given, Options, Source, archive
from archiver.cli.program import run
from archiver.config import Settings, config_home, state_home
from archiver.doctor import Check
from archiver.restore import restore
from archiver.setup import open_setup

from .conftest import Settle

Checked = Callable[..., dict[str, Check]]


@pytest.fixture
def used(tmp_path: Path, settle: Settle) -> Settings:
    """A store with a run that was restored once, so that everything was written that ever is."""
    settings = settle(str(tmp_path / "store"))
    (tmp_path / "note.txt").write_text("a note\n")
    setup = open_setup(settings, "write")
    archive(Source(paths=(tmp_path / "note.txt",)), setup, options=Options(given=Given(run_id="-r 1")))
    restore("-r 1", setup, into=tmp_path / "out", now=datetime.now(UTC))
    return settings


def remembered() -> Path:
    (file,) = (state_home() / "witness").glob("*/*.json")
    return file


def test_what_is_whole(used: Settings, checked: Checked) -> None:
    found = checked(used)
    assert (found["witness"].verdict, found["audit file"].verdict) == ("ok", "ok")
    assert "1 run of this store" in found["witness"].text


def test_a_damaged_memory_names_the_run_and_a_command_that_helps(
    used: Settings, checked: Checked, monkeypatch: pytest.MonkeyPatch
) -> None:
    remembered().write_text("{torn")
    found = checked(used)["witness"]
    assert (found.verdict, found.exit_code) == ("failure", 3)
    assert "of run -r 1 in" in found.text
    words = shlex.split((found.remedy or "").split("`")[1])
    monkeypatch.setattr("signal.signal", lambda *_: None)
    assert run(words[0], [*words[1:3], "--yes", *words[3:]]) == 0
    assert checked(used)["witness"].verdict == "ok"


def test_the_memory_of_another_store_is_none_of_its_business(used: Settings, checked: Checked) -> None:
    other = remembered().parent.with_name("0" * 32)
    other.mkdir()
    (other / "x.json").write_text("{torn")
    assert checked(used)["witness"].verdict == "ok"


def test_an_audit_file_that_was_changed_or_cannot_be_written(used: Settings, checked: Checked) -> None:
    file = state_home() / "audit.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([lines[0].replace(b"-r 1", b"-r 2"), *lines[1:]]))
    found = checked(used)["audit file"]
    assert (found.verdict, found.exit_code) == ("failure", 4)
    file.unlink()
    file.mkdir()
    assert checked(used)["audit file"].verdict == "failure"
    file.rmdir()
    assert checked(used)["audit file"].verdict == "ok"
    apart = used.model_copy(
        update={"audit": used.audit.model_copy(update={"file": config_home() / "keys/identity.txt/a"})}
    )
    assert checked(apart)["audit file"].verdict == "failure"


def test_a_key_beside_its_store(used: Settings, checked: Checked) -> None:
    assert checked(used)["key beside store"].verdict == "warning"
    identity = config_home() / "keys" / "identity.txt"
    identity.unlink()
    assert "key beside store" not in checked(used)


def test_a_signing_key_that_others_can_read_is_one_failure(used: Settings, checked: Checked) -> None:
    (config_home() / "keys" / "signing.pem").chmod(0o644)
    found = checked(used)
    assert found["signing key"].verdict == "failure"
    assert found["writers"].verdict == "unknown"
