"""When a bundle is based on an earlier one: only on what the store is known to have, and not for ever."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.compact import Marks
from archiver.epochs import LONGEST, Based, Epochs, Reason, Terms, pays
from archiver.model import Member
from archiver.model.manifest import BaseRef, Manifest, ManifestMember
from archiver.pack import Packed

NOW = datetime(2026, 3, 2, tzinfo=UTC)
TERMS = Terms("rules", frozenset({"a"}))


def name_of(seq: int) -> str:
    return f"bundles/r/{seq:08d}-0123456789abcdef.tar.zst.age"


def packed(seq: int, choice: Based | Reason, files: dict[str, int]) -> Packed:
    """A bundle of a table of paths and sizes, packed as `pack` would."""
    table = {path: (size, hashlib.sha256(bytes(size)).hexdigest(), 0o644) for path, size in files.items()}
    under = choice.base.table if isinstance(choice, Based) else {}
    fields = {}
    if isinstance(choice, Based):
        ref = BaseRef(bundle=choice.base.bundle, sha256=choice.base.manifest_sha256)
        dropped = tuple(sorted(path for path in under if path not in table))
        fields = {"format": 2, "base": ref, "dropped": dropped}
    manifest = Manifest(
        run="r",
        seq=seq,
        schema_version=2,
        redaction_key="",
        members=tuple(
            ManifestMember(path=path, size=held[0], sha256=held[1], mode=held[2])
            for path, held in table.items()
            if under.get(path) != held
        ),
        **fields,
    )
    bases = choice.base.chain if isinstance(choice, Based) else ()
    return Packed(manifest, manifest.sha256, manifest.unpacked, 0, (), bases)


class Process:
    """One process that saves a run."""

    def __init__(self, every: int = 200) -> None:
        self.epochs = Epochs(every)
        self.seq = 0
        self.now = NOW

    def save(
        self,
        files: dict[str, int] | None = None,
        *,
        terms: Terms = TERMS,
        end: bool = False,
        size: bool = False,
    ) -> Based | Reason:
        self.seq += 1
        choice = self.epochs.choose(terms, "succeeded" if end else "running", self.now)
        if size and isinstance(choice, Based):
            choice = "size"
        made = packed(self.seq, choice, files or {"a": self.seq})
        self.epochs.sealed(self.seq, made, Marks(), terms, self.now, choice)
        return choice

    def stored(self, seq: int | None = None) -> None:
        seq = seq or self.seq
        self.epochs.acknowledged(seq, name_of(seq))


def chain(choice: Based | Reason) -> tuple[int, ...]:
    assert isinstance(choice, Based), choice
    return choice.base.chain


def test_nothing_is_based_on_what_is_not_acknowledged() -> None:
    one = Process()
    assert [one.save(), one.save(), one.save()] == ["unacknowledged"] * 3
    one.stored(1)
    assert chain(one.save()) == (1,)
    assert chain(one.save()) == (1,), "the newest that the store has, not the newest"
    one.stored(4)
    assert chain(one.save()) == (1, 4)
    assert chain(one.save()) == (1, 4)


def test_what_gave_up_its_bundle_is_no_base() -> None:
    one = Process()
    one.save()
    one.stored()
    one.save()  # 2: never acknowledged
    one.save()
    one.stored()
    assert chain(one.save()) == (1, 3)


def test_the_name_is_that_under_which_it_came_into_the_store() -> None:
    one = Process()
    one.save()
    one.epochs.acknowledged(1, "bundles/r/00000001-ffffffffffffffff.tar.zst.age")
    choice = one.save()
    assert isinstance(choice, Based)
    assert choice.base.bundle == "bundles/r/00000001-ffffffffffffffff.tar.zst.age"


def saved(one: Process, times: int) -> None:
    for _ in range(times):
        one.save()
        one.stored()


def test_an_epoch_has_so_many_bundles() -> None:
    one = Process(every=3)
    saved(one, 3)
    assert one.save() == "count"
    one.stored()
    assert chain(one.save()) == (4,)


def test_those_that_nothing_is_based_on_count_too() -> None:
    one = Process(every=3)
    saved(one, 1)
    one.save()
    one.save()
    assert one.save() == "count"


def test_every_bundle_may_be_full() -> None:
    one = Process(every=1)
    saved(one, 1)
    assert one.save() == "count"


@pytest.mark.parametrize(("later", "full"), [(LONGEST - timedelta(seconds=1), False), (LONGEST, True)])
def test_an_epoch_lasts_a_day(later: timedelta, full: bool) -> None:
    one = Process()
    saved(one, 2)
    one.now += later
    assert (one.save() == "age") is full


def test_a_clock_that_goes_back_ends_an_epoch() -> None:
    one = Process()
    saved(one, 2)
    one.now -= timedelta(seconds=1)
    assert one.save() == "age"


def test_what_changes_ends_an_epoch() -> None:
    one = Process()
    saved(one, 1)
    assert one.save(terms=Terms("other", frozenset({"a"}))) == "rules"
    saved(other := Process(), 1)
    assert other.save(terms=Terms("rules", frozenset({"a", "b"}))) == "recipients"
    assert one.save(end=True) == "end"


def test_what_ends_a_run_is_no_base() -> None:
    """Its class is that of the outcome: it may be gone before what is saved after it all the same."""
    one = Process()
    saved(one, 2)
    assert one.save(end=True) == "end"
    one.stored()
    assert one.save() == "unacknowledged"
    one.stored()
    assert chain(one.save()) == (4,)


def test_nothing_goes_on_with_an_epoch_that_ended() -> None:
    """Not even while the full bundle is still on its way: then each is full."""
    one = Process()
    saved(one, 3)
    assert one.save(size=True) == "size"
    assert one.save() == "unacknowledged"
    one.stored(4)
    assert chain(one.save()) == (4,)
    one.stored(3)
    assert chain(one.save()) == (4,)


def test_what_comes_late_of_an_epoch_that_ended_is_no_base() -> None:
    one = Process()
    saved(one, 1)
    one.save()
    one.save(size=True)
    one.stored(2)
    assert one.save() == "unacknowledged"


def member(path: str, size: int) -> Member:
    return Member(path, bytes(size), size, hashlib.sha256(bytes(size)).hexdigest())


@pytest.mark.parametrize(("new", "is_worth_it"), [(0, True), (149, True), (150, False), (1000, False)])
def test_an_increment_pays_where_less_than_60_percent_is_new(new: int, is_worth_it: bool) -> None:
    old = member("old", 100)
    table = {"old": (old.size, old.sha256, old.mode)}
    assert pays([old, member("new", new)], table) is is_worth_it


STEPS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3), max_size=4),
        st.sampled_from(["stored", "waits", "skipped", "late"]),
        st.sampled_from(["", "", "", "", "size", "day", "resume"]),
    ),
    max_size=12,
)


@given(STEPS)
def test_a_base_is_in_the_store_and_its_table_is_true(steps: list[tuple[dict[str, int], str, str]]) -> None:
    one = Process(every=4)
    tables: dict[int, dict[str, int]] = {}
    chains: dict[int, tuple[int, ...]] = {}
    stored: set[int] = set()
    waiting: list[int] = []
    for files, fate, event in steps:
        one.now += timedelta(hours=25) if event == "day" else timedelta(minutes=1)
        if event == "resume":
            one.epochs, waiting = Epochs(4), []
        choice = one.save(files or {"a": 9}, size=event == "size")
        tables[one.seq], chains[one.seq] = files or {"a": 9}, ()
        if isinstance(choice, Based):
            numbers = choice.base.chain
            assert stored.issuperset(numbers)
            assert numbers == (*chains[numbers[-1]], numbers[-1])
            assert {path: held[0] for path, held in choice.base.table.items()} == tables[numbers[-1]]
            chains[one.seq] = numbers
        waiting += [one.seq] if fate != "skipped" else []
        if fate in ("stored", "late"):
            for seq in waiting if fate == "stored" else waiting[:1]:
                one.stored(seq)
                stored.add(seq)
            waiting = [] if fate == "stored" else waiting[1:]


def test_what_is_kept_of_a_base_without_a_look_counts_as_old() -> None:
    assert not pays([member("new", 100)], {})
    assert not pays([member("new", 100)], {}, 66)
    assert pays([member("new", 100)], {}, 67)


def test_a_base_brings_its_text_but_not_every_one_that_waits() -> None:
    epochs = Epochs(200)
    for seq in range(1, 11):
        made = replace(packed(seq, "unacknowledged", {"a": 100}), text=b"text of %d" % seq)
        epochs.sealed(seq, made, Marks(), TERMS, NOW, "unacknowledged")
    found = []
    for seq in range(1, 11):
        epochs.acknowledged(seq, name_of(seq))
        based = epochs.choose(TERMS, "running", NOW)
        assert isinstance(based, Based)
        found.append(based.base.text)
    assert found == [b""] * 6 + [b"text of 7", b"text of 8", b"text of 9", b"text of 10"]
