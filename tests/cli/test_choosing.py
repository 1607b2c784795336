"""An older checkpoint than the newest: only when asked for, and never without saying what that costs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from archiver import age
from archiver.archive import Given, Options, Source, archive
from archiver.config import load
from archiver.setup import Setup, open_setup

from .conftest import Command, Outcome
from .test_commands import check_harmless, session, work  # noqa: F401 - a fixture

RUN = "run 1"
FOLDER = "run~201"
ENDED = ("--outcome", "succeeded")
"""What is still going on never expires."""


class Store:
    """The files of a store with one run of three checkpoints."""

    def __init__(self, root: Path, setup: Setup) -> None:
        self.root = root
        self.setup = setup

    def record(self, seq: int) -> Path:
        return self.root / f"records/{FOLDER}/{seq:08d}.age"

    def bundle(self, seq: int) -> Path:
        (path,) = (self.root / f"bundles/{FOLDER}").glob(f"{seq:08d}-*.age")
        return path


def put(path: Path, data: bytes) -> None:
    path.unlink()
    path.write_bytes(data)


def flipped(data: bytes) -> bytes:
    return data[:-20] + bytes([data[-20] ^ 1]) + data[-19:]


@pytest.fixture
def store(command: Command, work: Path, tmp_path: Path) -> Store:  # noqa: F811 - as above
    root = tmp_path / "store"
    assert command("init", root, "--json").code == 0
    for number in (1, 2, 3):
        path = session(tmp_path / "t.jsonl", work, said=f"Said {number}.")
        done = command(
            "archive", path, "--run-id", RUN, "--phase", f"phase {number}", "--note", f"note {number}", *ENDED
        )
        assert done.code == 0, done.err
    return Store(root, open_setup(load(), need="read"))


def sealed_to_a_stranger(store: Store) -> None:
    pieces: list[bytes] = []
    sealer = age.seal([age.generate().recipient], pieces.append)
    sealer.write(b"x" * 500)
    sealer.close()
    put(store.record(3), b"".join(pieces))


RECORDS: dict[str, tuple[Callable[[Store], object], int]] = {
    "a flipped bit": (lambda store: put(store.record(3), flipped(store.record(3).read_bytes())), 4),
    "cut off": (lambda store: put(store.record(3), store.record(3).read_bytes()[:-1]), 4),
    "empty": (lambda store: put(store.record(3), b""), 4),
    "another record": (lambda store: put(store.record(3), store.record(2).read_bytes()), 4),
    "sealed to a stranger": (sealed_to_a_stranger, 6),
    "too large": (lambda store: put(store.record(3), b"x" * (2 << 20)), 3),
    "beyond a gap": (lambda store: store.record(3).rename(store.record(7)), 4),
}
BUNDLES: dict[str, Callable[[Store], object]] = {
    "gone": lambda store: store.bundle(3).unlink(),
    "cut off": lambda store: put(store.bundle(3), store.bundle(3).read_bytes()[:20]),
    "too long": lambda store: put(store.bundle(3), store.bundle(3).read_bytes() + b"x" * (1 << 20)),
    "empty": lambda store: put(store.bundle(3), b""),
}
FOUND_WHEN_OPENED: dict[str, Callable[[Store], object]] = {
    "flipped": lambda store: put(store.bundle(3), flipped(store.bundle(3).read_bytes())),
    "zeros": lambda store: put(store.bundle(3), bytes(store.bundle(3).stat().st_size)),
}


def refused(outcome: Outcome, code: int, seq: int = 2) -> str:
    """The next step of an error that tells the exact command for an older checkpoint."""
    assert outcome.code == code, outcome.err
    error = outcome.json["error"]
    assert f"`archiver restore --at {seq} '{RUN}'`" in error["remedy"]
    assert error["remedy"].count("archiver restore --at") == 1
    assert "lost by that: " in error["remedy"]
    return str(error["remedy"])


def taken(command: Command, *arguments: object, seq: int = 2) -> list[str]:
    """What a restore of an older checkpoint says is lost; plan and restore say the same."""
    planned = command("restore", RUN, "--plan", "--json", *arguments)
    assert planned.code == 0, planned.err
    done = command("restore", RUN, "--json", *arguments)
    assert done.code == 0, done.err
    report = done.json
    assert (planned.json["seq"], report["seq"]) == (seq, seq)
    assert planned.json["lost"] == report["lost"]
    assert f"Said {seq}." in next((Path(report["folder"]) / "transcript").iterdir()).read_text()
    assert any("what came after it is not restored" in warning for warning in report["warnings"])
    shutil.rmtree(report["folder"])
    return list(report["lost"])


@pytest.mark.parametrize("how", RECORDS)
def test_a_newest_record_that_is_damaged(command: Command, store: Store, how: str) -> None:
    damage, code = RECORDS[how]
    damage(store)
    for plan in ([], ["--plan"]):
        remedy = refused(command("restore", RUN, "--json", *plan), code)
    number = 7 if how == "beyond a gap" else 3
    assert f"lost by that: record {number}, which cannot be read" in remedy
    for asked in (["--previous"], ["--at", 2]):
        (line,) = taken(command, *asked)
        assert line.startswith(f"record {number}, which cannot be read: ")


@pytest.mark.parametrize("how", BUNDLES)
def test_a_newest_bundle_that_is_gone_or_of_a_wrong_size(command: Command, store: Store, how: str) -> None:
    BUNDLES[how](store)
    for plan in ([], ["--plan"]):
        remedy = refused(command("restore", RUN, "--json", *plan), 4)
    assert re.search(r"lost by that: checkpoint 3 of [-0-9: ]+ UTC, phase phase 3, note: note 3", remedy)
    for asked in (["--previous"], ["--at", 2]):
        (line,) = taken(command, *asked)
        assert re.fullmatch(r"checkpoint 3 of [-0-9: ]+ UTC, phase phase 3, note: note 3", line)


@pytest.mark.parametrize("how", FOUND_WHEN_OPENED)
def test_a_newest_bundle_that_is_found_damaged_when_it_is_opened(
    command: Command, store: Store, how: str
) -> None:
    FOUND_WHEN_OPENED[how](store)
    assert command("restore", RUN, "--plan", "--json").code == 0
    refused(command("restore", RUN, "--json"), 4)
    refused(command("restore", RUN, "--json", "--at", 3), 4)
    assert len(taken(command, "--previous")) == 1


def test_the_command_of_the_error_restores(command: Command, store: Store) -> None:
    store.bundle(3).unlink()
    remedy = refused(command("restore", RUN, "--json"), 4)
    found = re.search(r"`archiver (restore --at [^`]+)`", remedy)
    assert found is not None
    done = command(*shlex.split(found[1]), "--json")
    assert (done.code, done.json["seq"]) == (0, 2)


def test_a_newest_bundle_that_expired(command: Command, store: Store, tmp_path: Path) -> None:
    then = datetime.now(UTC) - timedelta(days=60)
    writer = open_setup(load(), need="write")
    given = Given(run_id="old", note="made long ago", outcome="succeeded")
    for _ in range(2):
        archive(Source((tmp_path / "t.jsonl",)), writer, options=Options(given=given), now=lambda: then)
    for path in (store.root / "records/old").glob("*.age"):
        os.utime(path, (then.timestamp(), then.timestamp()))
    (bundle,) = (store.root / "bundles/old").glob("00000002-*.age")
    bundle.unlink()
    outcome = command("restore", "old", "--json")
    assert (outcome.code, outcome.json["error"]["type"]) == (9, "BundleExpiredError")
    assert "`archiver restore --at 1 old`" in outcome.json["error"]["remedy"]
    assert "made long ago" in outcome.json["error"]["remedy"].partition("lost by that: ")[2]
    report = command("restore", "old", "--plan", "--previous", "--accept", "age", "--json").json
    assert (report["seq"], len(report["lost"])) == (1, 1)


def test_a_record_in_the_middle_leaves_what_is_before_it(command: Command, store: Store) -> None:
    put(store.record(2), flipped(store.record(2).read_bytes()))
    refused(command("restore", RUN, "--json"), 4, seq=1)
    lost = taken(command, "--previous", seq=1)
    assert lost[0].startswith("record 2, which cannot be read")
    assert re.search(r"checkpoint 3 of .*note 3", lost[1])
    assert command("restore", RUN, "--plan", "--at", 3).code == 4


def test_a_missing_record_in_the_middle_leaves_what_is_before_it(command: Command, store: Store) -> None:
    store.record(2).unlink()
    refused(command("restore", RUN, "--json"), 4, seq=1)
    (line,) = taken(command, "--previous", seq=1)
    assert "checkpoint 3" in line


def test_bundles_that_are_gone_are_passed_over(command: Command, store: Store) -> None:
    store.bundle(3).unlink()
    store.bundle(2).unlink()
    refused(command("restore", RUN, "--json"), 4, seq=1)
    refused(command("restore", RUN, "--json", "--at", 2), 4, seq=1)
    assert len(taken(command, "--previous", seq=1)) == 2


def test_the_bundle_before_may_turn_out_to_be_damaged_too(command: Command, store: Store) -> None:
    store.bundle(3).unlink()
    put(store.bundle(2), flipped(store.bundle(2).read_bytes()))
    refused(command("restore", RUN, "--json", "--previous"), 4, seq=1)


def test_previous_of_a_whole_run_is_the_one_before(command: Command, store: Store) -> None:
    (line,) = taken(command, "--previous")
    assert "checkpoint 3" in line
    assert command("restore", RUN, "--plan", "--json").json["lost"] == []


def test_where_nothing_older_is_whole_no_way_is_invented(command: Command, store: Store) -> None:
    for seq in (1, 2, 3):
        store.bundle(seq).unlink()
    outcome = command("restore", RUN, "--json")
    assert outcome.code == 4
    assert "restore --at" not in outcome.json["error"]["remedy"]
    assert command("restore", RUN, "--json", "--previous").code == 9
    put(store.record(1), flipped(store.record(1).read_bytes()))
    for asked in ([], ["--previous"]):
        outcome = command("restore", RUN, "--json", *asked)
        assert outcome.code == 4
        assert "restore --at" not in outcome.json["error"]["remedy"]


def test_two_ways_to_ask_are_one_too_many(command: Command, store: Store) -> None:
    outcome = command("restore", RUN, "--plan", "--json", "--at", 2, "--previous")
    assert (outcome.code, outcome.json["error"]["type"]) == (2, "UsageError")


def test_what_is_lost_is_said_to_people_and_stays_harmless(
    command: Command,
    store: Store,
    work: Path,  # noqa: F811 - as above
    tmp_path: Path,
) -> None:
    hostile = "\x1b[2J\u202eevil\n\tline"
    path = session(tmp_path / "t.jsonl", work, said="Said 4.")
    done = command("archive", path, "--run-id", RUN, "--note", hostile * 40, "--phase", hostile)
    assert done.code == 0, done.err
    outcome = command("restore", RUN, "--plan", "--previous", terminal=True)
    assert outcome.code == 0
    assert "not restored" in outcome.out
    check_harmless(outcome)
    (row,) = [row for row in command("restore", RUN, "--plan", "--at", 3).rows if row[0] == "not restored"]
    assert len(row) == 2
    assert len(row[1]) < 600
    store.bundle(4).unlink()
    outcome = command("restore", RUN, terminal=True)
    assert outcome.code == 4
    check_harmless(outcome)


def test_the_help_names_all_that_can_be_accepted() -> None:
    from typing import get_type_hints

    from archiver.cli.restore import restore
    from archiver.freshness.builtin import BUILTIN
    from archiver.gate import EFFECTS
    from archiver.rollback import ROLLBACK

    (option,) = get_type_hints(restore, include_extras=True)["accept"].__metadata__
    words = set(re.findall(r"[a-z_]+", option.help))
    assert words >= {probe.name for probe in BUILTIN} | {EFFECTS, ROLLBACK}
