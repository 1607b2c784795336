"""Which keys open what was saved last, each recipient alone, and the room on this machine's disks."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from archiver import age
from archiver.archive import Given, Options, Source, archive
from archiver.config import Settings, config_home, load
from archiver.doctor import Check, in_use, keys, room
from archiver.setup import open_setup
from archiver.sign import SigningKey

from .conftest import Settle

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path, settle_unproved: Settle) -> Path:
    folder = tmp_path / "store"
    folder.mkdir(mode=0o700)
    settle_unproved(str(folder))
    return folder


def settings(folder: Path, *recipients: str, identities: tuple[Path, ...] = (), **more: Any) -> Settings:
    given: dict[str, Any] = {"recipients": recipients, **({"identities": identities} if identities else {})}
    return load(flags={"store": {"url": str(folder)}, "keys": given, **more}, without_file=True)


def own() -> age.SecretIdentity:
    (found,) = age.read_identities(config_home() / "keys" / "identity.txt")
    assert isinstance(found, age.SecretIdentity)
    return found


def save(folder: Path, run: str, *recipients: str, identities: tuple[Path, ...] = ()) -> None:
    note = folder.parent / "note.txt"
    note.write_text("a note\n")
    setup = open_setup(settings(folder, *recipients, identities=identities), "write")
    archive(Source(paths=(note,)), setup, options=Options(given=Given(run_id=run)))


def looked(made: Settings) -> list[Check]:
    return list(in_use.checks(made, keys.hold(made)))


def test_a_store_without_runs(store: Path) -> None:
    (found,) = looked(settings(store))
    assert (found.verdict, found.text) == ("ok", "no runs yet")


def test_what_would_be_lost_with_each_key(store: Path) -> None:
    mine, other = str(own().recipient), age.generate()
    save(store, "both", mine, str(other.recipient))
    save(store, "alone", mine)
    (found,) = looked(settings(store, mine, str(other.recipient)))
    assert found.verdict == "ok"
    assert f"{own().fingerprint}, 2 runs (without it 1 run would be lost)" in found.text
    assert f"{other.fingerprint}, 1 run (others open all of them too)" in found.text


def test_a_key_that_nobody_here_knows(store: Path) -> None:
    mine, other = str(own().recipient), age.generate()
    save(store, "both", mine, str(other.recipient))
    (found,) = looked(settings(store, mine))
    assert found.verdict == "warning"
    assert f"1 run of those saved last is sealed to {other.fingerprint}, which is no recipient" in found.text
    assert "rekey --all" in (found.remedy or "")


def test_an_identity_that_is_no_recipient_any_more_and_still_needed(store: Path, tmp_path: Path) -> None:
    retired, today = own(), age.generate()
    place = tmp_path / "today.txt"
    age.write_identity(place, today, created=NOW)
    both = (config_home() / "keys" / "identity.txt", place)
    save(store, "old", str(retired.recipient))
    (found,) = looked(settings(store, str(today.recipient), identities=both))
    assert found.verdict == "warning"
    assert f"{retired.fingerprint}, whose identity is here" in found.text
    assert "without it 1 run of those saved last would be lost (old)" in found.text
    assert "keep its identity" in (found.remedy or "")

    save(store, "new", str(retired.recipient), str(today.recipient), identities=both)
    (found,) = looked(settings(store, str(today.recipient), identities=both))
    assert "without it 1 run" in found.text  # of the two, one opens with the key of today


def test_a_retired_key_that_is_not_needed(store: Path, tmp_path: Path) -> None:
    retired, today = own(), age.generate()
    place = tmp_path / "today.txt"
    age.write_identity(place, today, created=NOW)
    both = (config_home() / "keys" / "identity.txt", place)
    save(store, "new", str(retired.recipient), str(today.recipient), identities=both)
    (found,) = looked(settings(store, str(today.recipient), identities=both))
    assert "nothing would be lost with it" in found.text


def test_nobody_here_can_read(store: Path) -> None:
    save(store, "r", str(own().recipient))
    (config_home() / "keys" / "identity.txt").unlink()
    (found,) = looked(settings(store, str(age.generate().recipient)))
    assert found.verdict == "unknown"


def test_nobody_here_believes_who_signed(store: Path) -> None:
    """The key opens all of it, so that nothing can be opened would be no answer."""
    mine = str(own().recipient)
    save(store, "one", mine)
    (config_home() / "keys" / "signing.pem").unlink()
    SigningKey.generate().save(config_home() / "keys" / "signing.pem")
    (found,) = looked(settings(store, mine))
    assert (found.verdict, found.text) == (
        "unknown",
        "of none of 1 run, as it is signed by somebody whose signatures are not believed here",
    )
    assert "writers" in (found.remedy or "")
    save(store, "two", mine)
    assert looked(settings(store, mine))[0].verdict == "ok"
    (config_home() / "keys" / "signing.pem").unlink()
    SigningKey.generate().save(config_home() / "keys" / "signing.pem")
    (found,) = looked(settings(store, mine))
    assert "of none of 2 runs, as all are signed by somebody" in found.text


def test_each_recipient_is_proven_alone(store: Path, checked: Callable[..., dict[str, Check]]) -> None:
    mine, other = own(), age.generate()
    found = checked(settings(store, str(mine.recipient)))["each recipient"]
    assert (found.verdict, found.text) == ("ok", f"proven to open, each alone: {mine.fingerprint}")
    made = settings(store, str(mine.recipient), str(other.recipient))
    one, two = [
        check for check in keys.examine(made, keys.hold(made), remote=False) if check.name == one_by_one
    ]
    assert (one.verdict, two.verdict) == ("ok", "unknown")
    assert other.fingerprint in two.text
    assert "archiver drill --break-glass FILE" in (two.remedy or "")


one_by_one = "each recipient"


def test_an_identity_that_does_not_open_what_is_sealed_to_it(store: Path) -> None:
    """Two keys that say they are one, as a file that was mixed up would."""

    class Mixed:
        def __init__(self, inner: age.SecretIdentity, name: str) -> None:
            self._inner, self.fingerprint = inner, name

        def unwrap(self, stanzas: Any) -> bytes | None:
            return self._inner.unwrap(stanzas)

    made = settings(store, str(own().recipient))
    held = keys.hold(made)
    held = replace(held, identities=(Mixed(age.generate(), own().fingerprint),))
    (found,) = [check for check in keys.examine(made, held, remote=False) if check.name == one_by_one]
    assert (found.verdict, found.exit_code) == ("failure", 6)


def test_room(tmp_path: Path) -> None:
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize

    def of(spool_limit: int) -> list[Check]:
        flags = {
            "run": {"spool": tmp_path / "a" / "spool", "spool_limit": spool_limit},
            "sweep": {"state": tmp_path / "state"},
        }
        return list(room.checks(load(flags=flags, without_file=True)))

    assert [check.verdict for check in of(1 << 20)] == ["ok", "ok"]
    spool, sweeps = of(free * 2)
    assert (spool.verdict, sweeps.verdict) == ("warning", "ok")
    assert str(tmp_path / "a" / "spool") in spool.text
    for word in ("free space", "run.spool_limit", "run.spool"):
        assert word in (spool.remedy or "")
    assert not (tmp_path / "a").exists()
    # What waits already is a part of what may come.
    (tmp_path / "a" / "spool").mkdir(parents=True)
    with (tmp_path / "a" / "spool" / "waiting").open("wb") as file:
        file.truncate(free * 2)
    assert of(free * 2)[0].verdict == "ok"


def test_no_room_for_sweeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "NEEDED", 1 << 62)
    made = load(flags={"sweep": {"state": tmp_path / "state"}}, without_file=True)
    found = {check.name: check for check in room.checks(made)}["room for sweeps"]
    assert found.verdict == "warning"
    assert "sweep.state" in (found.remedy or "")
