"""What distrusting a key would cost is what it costs once the list of writers says so, in each order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path

import pytest

from archiver import layout, records
from archiver.archive import Given, Options, Source, archive
from archiver.catalog import Catalog
from archiver.distrust import losses
from archiver.errors import UntrustedWriterError
from archiver.setup import Setup
from archiver.sign import SigningKey
from archiver.writers import Administrator, Writer, Writers
from e2e.rekeying import backdate

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
RUNS = {"first": "AABBA", "second": "BAAB", "third": "AAA", "fourth": "BB"}
"""Who wrote each record; where the writer changes it is a claim. One a day, all runs alike."""
BETWEEN = timedelta(microseconds=600)


@pytest.fixture
def keys(setup: Setup) -> dict[str, SigningKey]:
    return {"A": setup.require_signing_key(), "B": SigningKey.generate()}


@pytest.fixture
def shared(setup: Setup, keys: dict[str, SigningKey], note: Path) -> Setup:
    """Two writers, of which the one also administers, and runs that went from one to the other."""
    trusted = tuple(Writer(name=name, key=key.public) for name, key in keys.items())
    operator = Administrator(name="B too", key=keys["B"].public)
    setup = replace(setup, writers=Writers(trusted, None, (operator,)), witness=None)
    for run, order in RUNS.items():
        first = replace(setup, signing_key=keys[order[0]])
        last = archive(Source(paths=(note,)), first, options=Options(given=Given(run_id=run))).record
        for seq, name in enumerate(order[1:], start=2):
            made = {"seq": seq, "previous": records.body_sha256(last), "kind": "claim", "bundle": None}
            last = last.model_copy(update={**made, "writer": keys[name].public})
            data = records.encode(last, keys[name], setup.recipients)
            setup.store.create(layout.record_name(run, seq), [data], retention="record")
        for seq in range(1, len(order) + 1):
            backdate(setup, BEGUN + seq * DAY, layout.record_name(run, seq))
    return setup


def after(setup: Setup, key: SigningKey, since: datetime, folder: Path) -> Setup:
    """The set-up with the list that the lines of the command make, written and read again."""
    changed = setup.writers.distrusting(key.public, since)
    everybody = {one.key for one in (*changed.trusted, *changed.administrators)}
    path = folder / f"writers-{len(list(folder.glob('writers-*')))}.toml"
    path.write_text("\n".join(changed.entries(public) for public in sorted(everybody)), encoding="utf-8")
    return replace(setup, writers=Writers.load(path))


def believed(setup: Setup) -> dict[str, int]:
    """How many records of each run a restore takes; the next is refused for its writer alone."""
    found = {}
    for run in RUNS:
        beginning = Catalog(setup).beginning(run)
        assert beginning.error is None or isinstance(beginning.error, UntrustedWriterError)
        found[run] = len(beginning.links)
    return found


def predicted(setup: Setup, key: SigningKey, since: datetime) -> dict[str, int]:
    """The same as the command says it, where the other key is trusted without an end."""
    costs = {loss.run: loss for loss in losses(setup, key.public, since)}
    found = {}
    for run, order in RUNS.items():
        loss = costs.get(run)
        ends = [len(order)]
        if loss is not None and loss.records:
            ends.append(loss.first - 1)
        if loss is not None and loss.error is not None:  # what is refused already, for the other key
            assert isinstance(loss.error, UntrustedWriterError)
            ends.append(believed(replace(setup, writers=setup.writers.believing(key.public)))[run])
        found[run] = min(ends)
    return found


def moments() -> Iterator[datetime]:
    for day in range(6):
        yield BEGUN + day * DAY + DAY / 2
        yield BEGUN + day * DAY
        yield BEGUN + day * DAY - BETWEEN
        yield BEGUN + day * DAY + BETWEEN


@pytest.mark.parametrize("name", ["A", "B"])
def test_one_key(shared: Setup, keys: dict[str, SigningKey], name: str, tmp_path: Path) -> None:
    for since in moments():
        told = predicted(shared, keys[name], since)
        assert told == believed(after(shared, keys[name], since, tmp_path)), since
    assert predicted(shared, keys[name], BEGUN) != predicted(shared, keys[name], BEGUN + 9 * DAY)


@pytest.mark.parametrize("order", list(permutations("AB")))
def test_one_key_after_the_other(
    shared: Setup, keys: dict[str, SigningKey], order: tuple[str, str], tmp_path: Path
) -> None:
    """And each of them a second time, from earlier on and from later on, which takes nothing back."""
    first, second = (keys[name] for name in order)
    for since in (BEGUN + 1.5 * DAY, BEGUN + 2.5 * DAY, BEGUN + 3.5 * DAY):
        setup = after(shared, first, since, tmp_path)
        for key in (second, first):
            for then in (BEGUN + 1.5 * DAY, BEGUN + 2.5 * DAY, BEGUN + 4.5 * DAY):
                assert predicted(setup, key, then) == believed(after(setup, key, then, tmp_path))


def test_a_part_of_a_millisecond_is_no_difference(
    shared: Setup, keys: dict[str, SigningKey], tmp_path: Path
) -> None:
    """The store of a folder has finer times than the list of writers."""
    for run, order in RUNS.items():
        for seq in range(1, len(order) + 1):
            backdate(shared, BEGUN + seq * DAY + BETWEEN, layout.record_name(run, seq))
    since = BEGUN + 2 * DAY + BETWEEN + BETWEEN / 2
    told = predicted(shared, keys["A"], since)
    assert told == believed(after(shared, keys["A"], since, tmp_path))
    assert told["third"] == 1
