"""Whatever the tables of a chain are, each of its checkpoints comes back, and any part of it."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archiver import age, bundles
from archiver.bundles.gathering import Choose
from archiver.config import load
from archiver.errors import ArchiveFormatError, ArchiverError, DigestMismatchError
from archiver.model import Record
from archiver.model.manifest import MOST_DICTIONARY, Manifest
from archiver.pack.frames import CONTENT
from archiver.progress import Silent
from archiver.setup import Setup, open_setup
from archiver.store.counted import counted
from e2e.auditing import file, lines, path_of
from e2e.chains import RUN, Chains, Files, Noted


@cache
def words(seed: int, size: int) -> bytes:
    chance = random.Random(seed)
    if size > 10_000:
        return chance.randbytes(size)
    return b" ".join(b"word%d" % chance.randrange(10**4) for _ in range(size // 8 + 1))[:size]


def chosen(*paths: str) -> Choose:
    def choose(manifest: Manifest) -> Collection[str]:
        return [one.path for one in manifest.members if one.path in paths]

    return choose


def looked_at(chains: Chains) -> list[ArchiverError | None]:
    """What `verify` finds of each, one after the other."""
    with bundles.Standing(chains.records, chains.setup.settings.limits) as standing:
        return [look(chains, record, standing) for record in chains.records]


def look(chains: Chains, record: Record, standing: bundles.Standing) -> ArchiverError | None:
    manifest, wrong = None, None
    with tempfile.TemporaryDirectory() as place:
        try:
            manifest = bundles.fetch_own(record, chains.setup, Path(place) / "own", Silent(), standing)
        except ArchiverError as error:
            wrong = error
    return standing.found(record, wrong, manifest) or wrong


def test_parts_that_are_picked_one_after_the_other(setup: Setup, tmp_path: Path) -> None:
    chains = Chains(setup)
    files: Files = {}
    for number in range(1, 7):
        files |= {f"transcript/{number}": words(number, 900), f"workspace/{number}": words(-number, 300)}
        files["checkpoint.json"] = b"%d" % number
        chains.save(files, number - 1 or None)
    assert {one.format for one in chains.manifests.values()} == {1, 3}
    rounds = [f"workspace/{number}" for number in (6, 2, 5, 4)] + ["transcript/3"]
    found = chains.read(6, tmp_path / "into", chosen(rounds[0]), [chosen(one) for one in rounds[1:]])
    assert found == {path: files[path] for path in rounds}


def test_a_dictionary_of_a_bundle_without_members(setup: Setup, tmp_path: Path) -> None:
    chains = Chains(setup)
    chains.save({"checkpoint.json": b"text", "a": b"1"})
    chains.lie(1, b"text", format=3, dictionary=4)
    assert chains.read(2, tmp_path / "into") == chains.tables[2]


TEXT = {"checkpoint.json": b"text"}


@pytest.mark.parametrize(
    ("first", "fields", "said"),
    [
        (TEXT, {"dictionary": 3}, "a dictionary of 3 bytes, and its base a text of 4"),
        (TEXT, {"dictionary": 5}, "a dictionary of 5 bytes, and its base a text of 4"),
        ({"a": b"text"}, {"dictionary": 4}, "a dictionary of 4 bytes, and its base a text of 0"),
        ({"checkpoint.json": b""}, {"dictionary": 1}, "a dictionary of 1 bytes, and its base a text of 0"),
        (TEXT, {"dictionary": 4, "dropped": ("b",)}, "drops 'b', which its base"),
    ],
    ids=["shorter", "longer", "no text", "empty text", "drops what is not there"],
)
def test_what_no_writer_makes(
    first: Files, fields: dict[str, Any], said: str, setup: Setup, tmp_path: Path
) -> None:
    chains = Chains(setup)
    chains.save(first)
    chains.lie(1, b"text", format=3, **fields)
    for choose in (None, chosen("b")):
        with pytest.raises(ArchiveFormatError, match=said):
            chains.read(2, tmp_path / f"{choose}", choose)
    found = looked_at(chains)
    assert isinstance(found[1], ArchiveFormatError)
    assert said in str(found[1])


def test_frames_in_the_record_of_one_that_has_a_dictionary(setup: Setup, tmp_path: Path) -> None:
    chains = Chains(setup)
    growing(chains, 2)
    ref = chains.records[1].bundle
    assert ref is not None
    chains.records[1] = chains.records[1].model_copy(
        update={"bundle": ref.model_copy(update={"frames": (400, 400)})}
    )
    for choose in (None, chosen("checkpoint.json")):
        with pytest.raises(ArchiveFormatError):
            chains.read(2, tmp_path / f"{choose}", choose)


def bundle(chains: Chains, seq: int) -> tuple[Path, str]:
    """The file and the name of a bundle."""
    found = chains.records[seq - 1].bundle
    assert found is not None
    return path_of(chains.setup, found.name), found.name


@dataclass
class Watched:
    """A progress display that keeps what it was told, and how much was written down by then."""

    home: Path
    stages: list[tuple[str, int, int]] = field(default_factory=list)
    """The name of each, the bytes it was to have, and how many lines there were when it began."""
    done: list[int] = field(default_factory=list)

    def stage(self, name: str, total: int | None = None) -> None:
        self.stages.append((name, total or 0, len(lines(self.home)) if file(self.home).exists() else 0))
        self.done.append(0)

    def advance(self, count: int) -> None:
        self.done[-1] += count


def growing(chains: Chains, count: int) -> None:
    files: Files = {}
    for number in range(1, count + 1):
        files |= {f"transcript/{number:04d}.jsonl": words(number, 900), "checkpoint.json": b"%d" % number}
        chains.save(files, number - 1 or None)


def test_who_opens_a_base_is_written_down_before_anything_of_it_is_unpacked(
    setup: Setup, home: Path, tmp_path: Path
) -> None:
    first, later = age.generate(), age.generate()
    chains = Chains(replace(setup, recipients=(first.recipient,)))
    growing(chains, 2)
    chains.setup = replace(setup, recipients=(later.recipient,))
    for number in (3, 4):
        chains.save(chains.tables[2] | {"checkpoint.json": words(number, 900)}, number - 1)
    chains.setup = replace(setup, identities=(first, later))
    assert chains.read(4, tmp_path / "whole", progress=(whole := Watched(home))) == chains.tables[4]
    assert [line.opened_by for line in lines(home)] == [later.fingerprint, first.fingerprint]
    assert [seen for name, _, seen in whole.stages if name == "fetch"] == [2]
    chains.read(4, tmp_path / "part", chosen("checkpoint.json"), progress=(part := Watched(home)))
    assert [line.opened_by for line in lines(home)[2:]] == [later.fingerprint, first.fingerprint]
    assert [seen for name, _, seen in part.stages if name == "fetch"] == [4]


def test_a_display_of_what_is_done_never_has_more_than_all(setup: Setup, home: Path, tmp_path: Path) -> None:
    chains = Chains(setup)
    growing(chains, 4)
    chains.read(4, tmp_path / "into", progress=(seen := Watched(home)))
    assert [name for name, _, _ in seen.stages] == ["open and unpack", "fetch", "open and unpack"]
    assert [total for _, total, _ in seen.stages[1:]] == seen.done[1:]


def test_what_a_base_lacks_is_said_by_each_that_needs_it_and_read_once(setup: Setup) -> None:
    chains = Chains(setup)
    growing(chains, 20)
    path, name = bundle(chains, 10)
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    store = Noted(setup.store)
    chains.setup = replace(setup, store=store)
    found = looked_at(chains)
    assert found[:9] == [None] * 9
    assert {type(one) for one in found[9:]} == {DigestMismatchError}
    said = [f"checkpoint {seq} of run {RUN} needs checkpoint 10: {name} is not" for seq in range(11, 21)]
    assert [str(one)[: len(start)] for one, start in zip(found[10:], said, strict=True)] == said
    assert max(Counter(store.opened).values()) == 2, "to hash it, and to unpack it"


def test_a_small_bundle_comes_from_a_server_once(s3_config: Path, tmp_path: Path) -> None:
    setup = open_setup(load(s3_config), need="write")
    chains = Chains(setup)
    growing(chains, 6)
    for number, picks in enumerate(
        [(), ("checkpoint.json", "transcript/0002.jsonl", "transcript/0005.jsonl")]
    ):
        chains.setup = replace(setup, store=(store := counted(setup.store)))
        first, *then = [chosen(one) for one in picks] or [None]
        assert chains.read(6, tmp_path / f"{number}", first, then)
        assert {verb: count.calls for verb, count in store.counts.items() if verb != "create"} == {
            "download": 6
        }


def test_texts_are_kept_as_long_as_somebody_needs_them(setup: Setup) -> None:
    chains = Chains(setup)
    growing(chains, 3)
    chains.save({"checkpoint.json": words(1, 900)})
    with bundles.Standing(chains.records, setup.settings.limits) as standing:
        held = []
        for record in chains.records:
            assert look(chains, record, standing) is None
            held.append(len(standing._texts._places))
        assert held == [2, 4, 0, 0]
        tape = standing._texts._tape
        assert tape is not None
        assert tape.size == 0, "what they took is free"


# --- any history --------------------------------------------------------------------------------------------

TEXTS = ("checkpoint.json", "effects.jsonl", "evidence.jsonl", "receipt.json")
PATHS = (
    *TEXTS,
    *(f"transcript/{number:04d}.jsonl" for number in range(1, 5)),
    "workspace/workspace.json",
    "workspace/objects/1",
    "artifacts/1",
)
SIZES = (0, 1, 700, 5000, MOST_DICTIONARY // 2, MOST_DICTIONARY, 2 * MOST_DICTIONARY, CONTENT)


@dataclass(frozen=True)
class Step:
    """One save: what changes, on which base from the end (0: a full one), and whether anything is kept."""

    changes: dict[str, tuple[int, int] | None]
    """A seed and a size, or None for what is not there any more."""
    back: int
    keeps: bool


CHANGES = st.dictionaries(
    st.sampled_from(PATHS),
    st.none() | st.tuples(st.integers(0, 3), st.sampled_from(SIZES)),
    max_size=4,
)
STEPS = st.lists(
    st.builds(Step, CHANGES, st.sampled_from((1, 1, 1, 1, 2, 3, 0)), st.booleans()), min_size=2, max_size=8
)
PICKS = st.lists(st.sets(st.sampled_from(PATHS), max_size=3), min_size=1, max_size=3)


def saved(chains: Chains, steps: list[Step]) -> None:
    for step in steps:
        count = len(chains.records)
        base = count - step.back + 1 if 0 < step.back <= count else None
        before = chains.tables[count] if count else {"checkpoint.json": words(9, 900)}
        files = {path: data for path, data in before.items() if step.changes.get(path, path) is not None}
        files |= {path: words(*one) for path, one in step.changes.items() if one is not None}
        had = chains.tables[base] if base is not None else {}
        kept = {
            path for path, data in files.items() if step.keeps and path[:2] == "wo" and had.get(path) == data
        }
        chains.save({path: files[path] for path in files.keys() - kept}, base, kept=kept)
        assert chains.tables[count + 1] == files


def any_history(setup: Setup, folder: Path, steps: list[Step], picks: list[set[str]]) -> None:
    chains = Chains(setup)
    saved(chains, steps)
    with tempfile.TemporaryDirectory(dir=folder) as into:
        for seq, files in chains.tables.items():
            assert chains.read(seq, Path(into) / f"{seq}") == files
            found = chains.read(
                seq, Path(into) / f"{seq}-part", chosen(*picks[0]), [chosen(*one) for one in picks[1:]]
            )
            assert found == {path: files[path] for path in set().union(*picks) & files.keys()}
        assert looked_at(chains) == [None] * len(chains.records)
        left = {path.name for path in Path(into).iterdir()}
    assert not [name for name in left if not name.replace("-part", "").isdigit()]


AS_IT_COMES = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=10, deadline=None, suppress_health_check=AS_IT_COMES)
@given(steps=STEPS, picks=PICKS)
def test_any_history_comes_back(
    setup: Setup, tmp_path: Path, steps: list[Step], picks: list[set[str]]
) -> None:
    any_history(setup, tmp_path, steps, picks)


@pytest.mark.soak
@settings(max_examples=400, deadline=None, suppress_health_check=AS_IT_COMES)
@given(steps=STEPS, picks=PICKS)
def test_many_histories_come_back(
    setup: Setup, tmp_path: Path, steps: list[Step], picks: list[set[str]]
) -> None:
    any_history(setup, tmp_path, steps, picks)
