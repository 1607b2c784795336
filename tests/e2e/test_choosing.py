"""What is lost by an older checkpoint: a line for each later one, bounded, also where nothing can be read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import pytest
from many import Maker, name_of

from archiver import choosing
from archiver.archive import Source, archive
from archiver.catalog import Catalog, Chain
from archiver.errors import DamagedError, DigestMismatchError, NoSuchRunError, StoreUnreachableError
from archiver.model import Checkpoint, Record, Spend
from archiver.restore import plan
from archiver.setup import Setup
from archiver.store.local import LocalStore

RUN = name_of(0)
AGED = ("age",)


@pytest.fixture
def root(setup: Setup) -> Path:
    return Path(setup.store.url.removeprefix("file://"))


def fill(setup: Setup, checkpoints: int) -> None:
    for one in Maker(setup, checkpoints).run(0):
        setup.store.create(one.name, [one.body], retention=one.retention)


def record_at(root: Path, seq: int) -> Path:
    return root / f"records/{RUN}/{seq:08d}.age"


def test_of_many_the_first_and_the_last_are_told(setup: Setup) -> None:
    fill(setup, 30)
    lost = plan(RUN, setup, at=1, accept=AGED).lost
    assert len(lost) == choosing.MAX_LOST + 1
    numbers = [re.match(r"checkpoint (\d+) of ", line) for line in lost]
    told = [int(found[1]) for found in numbers if found]
    assert told == [*range(2, 12), *range(21, 31)]
    assert lost[10] == "9 more"
    assert len(plan(RUN, setup, at=10, accept=AGED).lost) == choosing.MAX_LOST
    assert plan(RUN, setup, accept=AGED).lost == ()


def test_a_remedy_tells_less(setup: Setup, root: Path) -> None:
    fill(setup, 9)
    for path in (root / f"bundles/{RUN}").iterdir():
        if not path.name.startswith((".", "00000001")):
            path.unlink()
    with pytest.raises(DamagedError) as caught:
        plan(RUN, setup, accept=AGED)
    remedy = caught.value.remedy or ""
    assert f"`archiver restore --at 1 {RUN}`" in remedy
    price = remedy.partition("lost by that: ")[2]
    assert [part.split(" of ")[0] for part in price.split("; ")] == [
        "checkpoint 2", "checkpoint 3", "5 more", "checkpoint 9",
    ]  # fmt: skip


def test_turns_and_spend_are_the_difference(setup: Setup) -> None:
    now = datetime.now(UTC)

    def save(turn: int, spend: Spend) -> Record:
        made = Checkpoint(
            run_id="r", task_id="t", created_at=now, checkpoint_at=now, turn=turn, spend=spend, phase="p"
        )
        return archive(Source(checkpoint=made), setup).record

    save(3, Spend(tokens_in=100, tokens_out=20, cost=0.5))
    save(4, Spend(tokens_in=100, tokens_out=21, cost=0.5))
    save(9, Spend(tokens_in=1100, tokens_out=220, cost=2.75))
    save(2, Spend(tokens_in=5, cost=9, currency="EUR"))
    lost = plan("r", setup, at=1).lost
    said = [line.partition(", phase p")[2] for line in lost]
    assert said == [
        " (1 turn, 1 token after checkpoint 1)",
        " (6 turns, 1200 tokens, 2.25 USD after checkpoint 1)",
        "",
    ]


def test_later_records_that_cannot_be_read_are_lines_too(setup: Setup, root: Path) -> None:
    fill(setup, 5)
    record_at(root, 3).write_bytes(b"\x1b[2J")
    record_at(root, 5).write_bytes(b"")
    lost = plan(RUN, setup, at=2, accept=AGED).lost
    assert [line.split(":")[0].split(" of ")[0] for line in lost] == [
        "record 3, which cannot be read", "checkpoint 4", "record 5, which cannot be read",
    ]  # fmt: skip


def test_a_far_number_is_one_line(setup: Setup, root: Path) -> None:
    fill(setup, 2)
    record_at(root, 99_999_999).write_bytes(b"junk")
    report = plan(RUN, setup, previous=True, accept=AGED)
    assert report.seq == 2
    (line,) = report.lost
    assert line.startswith("record 99999999, which cannot be read")


class Unreachable(LocalStore):
    """A store that answers lists and then no more."""

    reads = 0

    def read(self, name: str, *, limit: int) -> bytes:
        self.reads += 1
        raise StoreUnreachableError("gone")

    def open(self, name: str, *, offset: int = 0) -> BinaryIO:
        self.reads += 1
        raise StoreUnreachableError("gone")


def test_a_store_that_is_gone_is_asked_once(setup: Setup, root: Path) -> None:
    fill(setup, 9)
    chain = Catalog(setup).chain(RUN, upto=2)
    store = Unreachable(root)
    lost = choosing.lost(chain, chain.head.record, replace(setup, store=store))
    assert len(lost) == 7
    assert ["cannot be read: gone" in line for line in lost] == [True] + [False] * (len(lost) - 1)
    assert all("cannot be read" in line for line in lost)
    assert store.reads == 1


def test_a_store_that_is_gone_is_no_damage(setup: Setup, root: Path) -> None:
    fill(setup, 2)
    away = replace(setup, store=Unreachable(root))
    for previous in (False, True):
        with pytest.raises(StoreUnreachableError) as caught:
            plan(RUN, away, previous=previous)
        assert "restore --at" not in (caught.value.remedy or "")


@contextmanager
def damaged(record: Record, setup: Setup) -> Iterator[DigestMismatchError]:
    error = DigestMismatchError("wrong", remedy="look at the disk")
    with pytest.raises(DigestMismatchError), choosing.advising(record, setup):
        raise error
    yield error


def test_what_the_error_said_before_is_kept(setup: Setup) -> None:
    fill(setup, 3)
    chain: Chain = Catalog(setup).chain(RUN)
    with damaged(chain.links[2].record, setup) as error:
        assert (error.remedy or "").startswith("look at the disk; or `archiver restore --at 2 ")
    with damaged(chain.links[0].record, setup) as error:
        assert error.remedy == "look at the disk"


def test_a_run_of_one_checkpoint_has_none_before(setup: Setup) -> None:
    fill(setup, 1)
    with pytest.raises(NoSuchRunError, match="no whole checkpoint before its newest"):
        plan(RUN, setup, previous=True)
