"""`verify --deep --sample` opens some bundles, `verify --distrust` says what a stolen key would cost."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver import layout, sign
from archiver.age import X25519Identity
from archiver.archive import Given, Options, Source, archive
from archiver.cli import program
from archiver.distrust import Loss, losses
from archiver.errors import UsageError
from archiver.rekey import rekey
from archiver.sampling import Sample
from archiver.setup import Setup
from archiver.verify import verify
from archiver.writers import Administrator, Writer, Writers, entry
from e2e.rekeying import at, backdate, overwrite, to

NOW = datetime.now(UTC)
DAY = timedelta(days=1)
RUNS = {"a": 3, "b; c": 4, "-d": 1}


@pytest.fixture
def full(setup: Setup, note: Path) -> Setup:
    """Eight checkpoints of three runs, one a day; the newest of each was saved today."""
    for run, count in RUNS.items():
        for seq in range(1, count + 1):
            archive(Source(paths=(note,)), setup, options=Options(given=Given(run_id=run)))
            backdate(setup, NOW - (count - seq) * DAY, layout.record_name(run, seq))
    return setup


def opened(setup: Setup, size: str, seed: int, run: str | None = None) -> list[tuple[str | None, int | None]]:
    sample = Sample(size, seed)
    found = list(verify(setup, run, deep=True, sample=sample))
    assert sum(one.object.startswith("records/") for one in found if not one.again) == (
        sum(RUNS.values()) if run is None else RUNS[run]
    )
    again = [one for one in found if one.note.startswith("opened")]
    assert all(one.again for one in again)
    assert len(again) == sample.size
    return [(one.run, one.seq) for one in again]


# --- samples ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "count"), [("5%", 1), ("0.001%", 1), ("25%", 2), ("25.1%", 3), ("100%", 8), ("3", 3), ("99", 8)]
)
def test_so_many_are_opened(full: Setup, size: str, count: int) -> None:
    found = opened(full, size, 1)
    assert len(found) == len(set(found)) == count


def test_the_same_seed_has_the_same_sample(full: Setup) -> None:
    found = [tuple(opened(full, "3", seed)) for seed in (7, 7, 8, 9, 10)]
    assert found[0] == found[1]
    assert len(set(found)) > 1


def test_a_sample_of_one_run(full: Setup) -> None:
    assert {run for run, _ in opened(full, "50%", 1, "b; c")} == {"b; c"}


def test_only_what_is_opened_is_found_damaged_and_all_records_are_checked(full: Setup) -> None:
    victim = next(info for info in full.store.list("bundles/a/") if "/00000002-" in info.name)
    data = bytearray(at(full, victim.name).read_bytes())
    data[-1] ^= 1
    overwrite(at(full, victim.name), bytes(data))
    bad = {}
    for seed in range(12):
        found = list(verify(full, deep=True, sample=Sample("1", seed)))
        bad[seed] = [one.object for one in found if not one.ok]
    assert any(bad.values())
    assert not all(bad.values())
    assert {name for names in bad.values() for name in names} == {victim.name}
    overwrite(at(full, layout.record_name("a", 1)), b"garbage")
    assert any(not one.ok and one.run == "a" for one in verify(full, deep=True, sample=Sample("1", 0)))


def test_strange_bundles_are_not_part_of_it(full: Setup) -> None:
    for number in range(50):
        full.store.create(layout.bundle_name("a", 1, f"{number:016x}"), [b"x"], retention="live")
    sample = Sample("100%", 1)
    assert all(one.ok for one in verify(full, deep=True, sample=sample))
    assert sample.total == 8


def test_an_empty_store(setup: Setup) -> None:
    sample = Sample("5%", 1)
    assert list(verify(setup, deep=True, sample=sample)) == []
    assert (sample.size, sample.total) == (0, 0)


@pytest.mark.parametrize(
    "size",
    ["", "0", "0%", "0.0%", "-5%", "101%", "100.01%", "5 %", "5%%", "nan%", "1e2", "٥%", "5.%", "1" * 20],
)
def test_what_is_no_size(size: str) -> None:
    with pytest.raises(UsageError, match="not the size of a sample") as caught:
        Sample(size)
    assert "5%" in str(caught.value.remedy)


@given(st.integers(1, 400), st.integers(1, 100), st.integers(0, 3))
def test_a_share_is_rounded_up(total: int, percent: int, seed: int) -> None:
    sample = Sample(f"{percent}%", seed)
    for seq in range(total):
        sample.add(f"run {seq // 7}", seq)
    picked = sample.picked()
    assert sum(map(len, picked.values())) == sample.size == -(-total * percent // 100)
    assert all(seq // 7 == int(run[4:]) for run, numbers in picked.items() for seq in numbers)


def test_each_has_the_same_chance() -> None:
    counts = dict.fromkeys(range(20), 0)
    for seed in range(400):
        sample = Sample("5%", seed)
        for seq in counts:
            sample.add("r", seq)
        for numbers in sample.picked().values():
            for seq in numbers:
                counts[seq] += 1
    assert sum(counts.values()) == 400
    assert min(counts.values()) >= 5
    assert max(counts.values()) <= 45


def test_the_command_says_how_many_and_the_seed(
    full: Setup, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["verify", "--deep", "--sample", "25%", "--config", str(config)]
    assert program.run("archiver", [*flags, "--seed", "7", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["sample"] == {"opened": 2, "of": 8, "seed": 7}
    assert sum(one["note"].startswith("opened") for one in document["findings"]) == 2
    assert program.run("archiver", flags) == 0
    told = capsys.readouterr()
    assert "2 of 8 bundles opened" in told.err
    seed = told.err.split("--seed ", 1)[1].split()[0]
    assert program.run("archiver", [*flags, "--seed", seed]) == 0
    again = capsys.readouterr()
    opened_rows = [line for line in told.out.splitlines() if line.endswith("\topened")]
    assert len(opened_rows) == 2
    assert [line for line in again.out.splitlines() if line.endswith("\topened")] == opened_rows


@pytest.mark.parametrize(
    "words",
    [
        ["--sample", "5%"],
        ["--deep", "--seed", "1"],
        ["--deep", "--sample", "x"],
        ["--deep", "--sample", "5%", "--seed", "-1"],
        ["--distrust", "x"],
        ["--since", "7d"],
        ["--distrust", "own signing key", "--since", "soon"],
        ["--distrust", "own signing key", "--since", "9999-12-31T23:59:59-14:00"],
        ["--distrust", "own signing key", "--since", "7d", "--deep"],
        ["--distrust", "own signing key", "--since", "7d", "--deep", "--sample", "5%"],
        ["--distrust", "nobody", "--since", "7d"],
    ],
)
def test_what_does_not_belong_together(
    full: Setup, config: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.run("archiver", ["verify", *words, "--config", str(config)]) == 2
    assert capsys.readouterr().out == ""


# --- distrust -----------------------------------------------------------------------------------------------


def lost(setup: Setup, days: float, run: str | None = None, key: str | None = None) -> dict[str, Loss]:
    own = key or setup.require_signing_key().public
    return {loss.run: loss for loss in losses(setup, own, NOW - days * DAY, run)}


def test_what_a_stolen_key_would_cost(full: Setup) -> None:
    found = lost(full, 1.5)
    told = {run: (loss.records, loss.first, loss.newest, loss.left) for run, loss in found.items()}
    assert told == {"a": (2, 2, 3, 1), "b; c": (2, 3, 4, 2), "-d": (1, 1, 1, None)}
    assert found["a"].command == "archiver restore --at 1 a"
    assert found["b; c"].command == "archiver restore --at 2 'b; c'"
    assert found["-d"].command is None
    assert list(lost(full, 1.5, "a")) == ["a"]
    assert lost(full, -1) == {}


def test_the_lines_do_what_was_said(full: Setup, config: Path, tmp_path: Path) -> None:
    """With the printed lines in writers.toml, the printed commands restore, and nothing newer is believed."""
    key = full.require_signing_key().public
    lines = full.writers.distrusting(key, NOW - 1.5 * DAY).entries(key)
    path = tmp_path / "writers.toml"
    path.write_text(lines, encoding="utf-8")
    flags = ["--config", str(config), "--writers", str(path)]
    for run, loss in lost(full, 1.5).items():
        words = ["verify", *flags, "--", run]
        assert program.run("archiver", words) == 3
        if loss.command is not None:
            into = tmp_path / f"out {run}"
            shown = f"set -- {loss.command.removeprefix('archiver ')}; printf '%s\\0' \"$@\""
            split = subprocess.run(["bash", "-c", shown], capture_output=True, text=True, check=True).stdout
            restore = split.rstrip("\0").split("\0")
            accept = ["--accept", "age", "--into", str(into)]
            assert program.run("archiver", [restore[0], *flags, *accept, *restore[1:]]) == 0
            assert into.is_dir()


def test_another_key_costs_nothing(full: Setup) -> None:
    other = sign.SigningKey.generate().public
    both = Writers((*full.writers.trusted, Writer(name="b", key=other)), None, full.writers.administrators)
    assert lost(replace(full, writers=both), 400, key=other) == {}


def test_nothing_is_changed(full: Setup, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "store").rglob("*")}
    assert lost(full, 400)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "store").rglob("*")} == before


def test_what_is_refused_already_counts_too(full: Setup) -> None:
    key = full.require_signing_key().public
    stolen = replace(full, writers=full.writers.distrusting(key, NOW - 1.5 * DAY))
    assert lost(stolen, 0.5) == lost(full, 1.5)
    assert lost(stolen, 2.5)["b; c"].first == 2


def test_rekeyed_records_are_judged_by_when_they_were_written(full: Setup) -> None:
    other = X25519Identity.generate()
    rekeyed = to(full, other)
    administrator = sign.SigningKey.generate()
    trusting = Writers(full.writers.trusted, None, (Administrator(name="ops", key=administrator.public),))
    rekeyed = replace(rekeyed, writers=trusting, signing_key=administrator)
    assert all(done.error is None for done in rekey(list(RUNS), rekeyed))
    found = lost(rekeyed, 1.5, key=full.require_signing_key().public)
    assert {run: loss.first for run, loss in found.items()} == {"a": 2, "b; c": 3, "-d": 1}


def test_notes_by_the_key_are_not_believed_either(full: Setup) -> None:
    """A note that the stolen key signed must not make its records old."""
    other = X25519Identity.generate()
    rekeyed = to(full, other)
    assert all(done.error is None for done in rekey(list(RUNS), rekeyed))
    assert {run: loss.first for run, loss in lost(rekeyed, 1.5).items()} == {"a": 1, "b; c": 1, "-d": 1}


def test_a_damaged_run_is_told_with_its_error(full: Setup) -> None:
    overwrite(at(full, layout.record_name("a", 3)), b"garbage")
    found = lost(full, 1.5)["a"]
    assert (found.records, found.first, found.left) == (1, 2, 1)
    assert found.error is not None
    assert lost(full, 0.5)["a"].records == 0


def test_a_checkpoint_without_its_bundle_is_not_what_is_left(full: Setup) -> None:
    (bundle,) = [info.name for info in full.store.list("bundles/b~3B~20c/00000002-")]
    at(full, bundle).unlink()
    assert lost(full, 1.5)["b; c"].left == 1


def test_the_command(full: Setup, config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = full.require_signing_key().public
    path = tmp_path / "writers.toml"
    path.write_text(entry("ci", key, None), encoding="utf-8")
    flags = ["--config", str(config), "--writers", str(path)]
    since = (NOW - 1.5 * DAY).isoformat()
    words = ["verify", "--distrust", "ci", "--since", since, *flags]
    assert program.run("archiver", [*words, "--json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert (document["key"], document["errors"]) == (key, [])
    told_of = {one["run"]: (one["first"], one["left"]) for one in document["runs"]}
    assert told_of == {"a": (2, 1), "b; c": (3, 2), "-d": (1, None)}
    assert 'name = "ci"' in document["writers"]
    assert "distrusted_after = " in document["writers"]
    assert program.run("archiver", words) == 3
    told = capsys.readouterr()
    rows = {line.split("\t")[0]: line.split("\t") for line in told.out.splitlines()}
    assert rows["a"][1:6] == ["2", "2", "3", "1", "archiver restore --at 1 a"]
    assert "distrusted_after = " in told.err
    assert str(path) in told.err
    assert program.run("archiver", ["verify", "--distrust", key, "--since", "2999-01-01", *flags]) == 0
    assert program.run("archiver", ["verify", "none", "--distrust", key, "--since", "7d", *flags]) == 9


def test_at_a_terminal(
    full: Setup, config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archiver.cli.output.tty", lambda: True)
    words = ["verify", "--distrust", "own signing key", "--since", (NOW - 1.5 * DAY).isoformat()]
    assert program.run("archiver", [*words, "--config", str(config)]) == 3
    told = capsys.readouterr()
    assert "run a: 2 records by this key" in told.out
    assert "    archiver restore --at 2 'b; c'\n" in told.out
    assert "3 runs would lose records" in told.out
