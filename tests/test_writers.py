"""Who is believed: unknown keys, other runs, other times; and the lines that would change it."""

from __future__ import annotations

import os
import shlex
import subprocess
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.errors import ConfigError, UntrustedWriterError, UsageError
from archiver.sign import SigningKey
from archiver.writers import OWN, Writers, administrator_entry, entry, toml_text

KEY = SigningKey.from_seed(b"\1" * 32).public
OTHER = SigningKey.from_seed(b"\2" * 32).public
AT = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def listed(tmp_path: Path, *entries: str) -> Writers:
    path = tmp_path / "writers.toml"
    path.write_text("".join(f"[[writer]]\n{text}\n" for text in entries))
    return Writers.load(path, own=OTHER)


def test_without_a_file_the_own_key_alone_is_trusted() -> None:
    writers = Writers.load(None, own=KEY)
    assert writers.judge(KEY, "any run", AT) == OWN
    with pytest.raises(UntrustedWriterError, match="not a trusted writer"):
        writers.judge(OTHER, "any run", AT)
    with pytest.raises(UntrustedWriterError):
        Writers.load(None).judge(KEY, "any run", AT)


def test_with_a_file_only_its_writers_are_trusted(tmp_path: Path) -> None:
    writers = listed(tmp_path, f'name = "ci"\nkey = "{KEY}"')
    assert writers.judge(KEY, "run", AT) == "ci"
    with pytest.raises(UntrustedWriterError):
        writers.judge(OTHER, "run", AT)


def test_run_patterns(tmp_path: Path) -> None:
    writers = listed(
        tmp_path, f'name = "ci"\nkey = "{KEY}"\nruns = "ci-*"', f'name = "one"\nkey = "{KEY}"\nruns = "x"'
    )
    assert writers.judge(KEY, "ci-7", AT) == "ci"
    assert writers.judge(KEY, "x", AT) == "one"
    for run in ("CI-7", "my-ci-7", "X", ""):
        with pytest.raises(UntrustedWriterError, match=r"trusted for runs 'ci-\*', 'x' only"):
            writers.judge(KEY, run, AT)


def test_times_are_those_of_the_store(tmp_path: Path) -> None:
    writers = listed(
        tmp_path,
        f'name = "ci"\nkey = "{KEY}"\nvalid_from = 2026-02-01T00:00:00Z\n'
        "distrusted_after = 2026-04-01T02:00:00+02:00",
    )
    begin, end = datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)
    assert writers.judge(KEY, "r", begin) == writers.judge(KEY, "r", end) == "ci"
    with pytest.raises(UntrustedWriterError, match="trusted only from 2026-02-01"):
        writers.judge(KEY, "r", begin - timedelta(microseconds=1))
    with pytest.raises(UntrustedWriterError, match="distrusted after 2026-04-01"):
        writers.judge(KEY, "r", end + timedelta(microseconds=1))


def test_an_entry_that_distrusts_a_key_decides(tmp_path: Path) -> None:
    writers = listed(
        tmp_path,
        f'name = "broad"\nkey = "{KEY}"',
        f'name = "stolen"\nkey = "{KEY}"\ndistrusted_after = 2026-02-01T00:00:00Z',
    )
    with pytest.raises(UntrustedWriterError, match="stolen"):
        writers.judge(KEY, "r", AT)
    assert writers.judge(KEY, "r", datetime(2026, 1, 1, tzinfo=UTC)) == "broad"


def test_a_later_entry_may_be_valid_already(tmp_path: Path) -> None:
    writers = listed(
        tmp_path,
        f'name = "later"\nkey = "{KEY}"\nvalid_from = 2027-01-01T00:00:00Z',
        f'name = "now"\nkey = "{KEY}"',
    )
    assert writers.judge(KEY, "r", AT) == "now"


@given(run=st.text(min_size=1, max_size=40), name=st.text(min_size=1, max_size=40))
def test_the_remedy_is_the_exact_entry(tmp_path_factory: pytest.TempPathFactory, run: str, name: str) -> None:
    if any("\ud800" <= character <= "\udfff" for character in run + name):
        return
    document = tomllib.loads(entry(name, KEY, run))
    assert document["writer"][0]["name"] == name
    path = tmp_path_factory.getbasetemp() / "writers.toml"
    path.write_text(entry(name, KEY, run), encoding="utf-8")
    writers = Writers.load(path)
    assert writers.judge(KEY, run, AT) == name
    with pytest.raises(UntrustedWriterError):
        writers.judge(KEY, run + "x", AT)


def test_the_remedy_names_the_file_and_can_be_pasted(tmp_path: Path) -> None:
    writers = listed(tmp_path, f'name = "ci"\nkey = "{KEY}"')
    with pytest.raises(UntrustedWriterError) as caught:
        writers.judge(OTHER, "run [1]*", AT)
    introduction, lines = str(caught.value.remedy).split("\n\n", 1)
    assert str(writers.source) in introduction
    assert tomllib.loads(lines)["writer"][0]["key"] == OTHER
    assert writers.source is not None
    with writers.source.open("a") as file:
        file.write(lines)
    assert Writers.load(writers.source).judge(OTHER, "run [1]*", AT)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[writer]]\nname = "a"\n', "writer.1.key: Field required"),
        (f'[[writer]]\nname = ""\nkey = "{KEY}"\n', "writer.1.name"),
        ('[[writer]]\nname = "a"\nkey = "ed25519:AAAA"\n', "writer.1.key: not a public signing key"),
        (f'[[writer]]\nname = "a"\nkey = "{KEY}"\nrun = "*"\n', "writer.1.run: Extra inputs"),
        (f'[[writer]]\nname = "a"\nkey = "{KEY}"\nvalid_from = 2026-01-01T00:00:00\n', "valid_from"),
        (f'[[writers]]\nname = "a"\nkey = "{KEY}"\n', "writers: Extra inputs"),
        (f'[[administrator]]\nname = "a"\nkey = "{KEY}"\nruns = "*"\n', "administrator.1.runs: Extra inputs"),
        ("[[writer]\n", "is not TOML"),
        ("#" * (1 << 20) + "\n", "more than"),
    ],
)
def test_a_broken_list_is_refused_by_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "writers.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        Writers.load(path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


def test_a_missing_list_is_not_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        Writers.load(tmp_path / "none.toml", own=KEY)


@given(st.text())
def test_toml_text(text: str) -> None:
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert tomllib.loads(f"a = {toml_text(text)}")["a"] == text


def administered(tmp_path: Path, text: str) -> Writers:
    path = tmp_path / "writers.toml"
    path.write_text(text)
    return Writers.load(path, own=OTHER)


def test_without_a_file_the_own_key_is_the_administrators_too() -> None:
    assert Writers.load(None, own=KEY).judge_administrator(KEY, "notes/x", AT) == OWN
    for writers in (Writers.load(None, own=OTHER), Writers.load(None)):
        with pytest.raises(UntrustedWriterError, match=r"notes/x is signed by .+ not a trusted admin"):
            writers.judge_administrator(KEY, "notes/x", AT)


def test_a_writer_is_no_administrator_and_the_other_way_round(tmp_path: Path) -> None:
    writer = administered(tmp_path, entry("ci", KEY, None))
    with pytest.raises(UntrustedWriterError) as caught:
        writer.judge_administrator(KEY, "notes/x", AT)
    assert administrator_entry("…", KEY) in (caught.value.remedy or "")
    administrator = administered(tmp_path, administrator_entry("ops", KEY))
    assert administrator.judge_administrator(KEY, "notes/x", AT) == "ops"
    with pytest.raises(UntrustedWriterError, match="not a trusted writer"):
        administrator.judge(KEY, "run", AT)
    with pytest.raises(UntrustedWriterError):
        administrator.judge_administrator(OTHER, "notes/x", AT)  # the own key counts only without a list


def test_the_suggested_administrator_is_believed(tmp_path: Path) -> None:
    with pytest.raises(UntrustedWriterError) as caught:
        administered(tmp_path, "").judge_administrator(KEY, "notes/x", AT)
    suggested = (caught.value.remedy or "").split("\n\n", 1)[1]
    assert administered(tmp_path, suggested).judge_administrator(KEY, "notes/x", AT) == "…"


def test_an_administrator_has_times_as_a_writer_has(tmp_path: Path) -> None:
    text = administrator_entry("ops", KEY) + (
        "valid_from = 2026-02-01T00:00:00Z\ndistrusted_after = 2026-04-01T00:00:00Z\n"
    )
    writers = administered(tmp_path, text)
    assert writers.judge_administrator(KEY, "notes/x", AT) == "ops"
    with pytest.raises(UntrustedWriterError, match="trusted only from 2026-02-01"):
        writers.judge_administrator(KEY, "notes/x", AT - 40 * DAY)
    with pytest.raises(UntrustedWriterError, match="distrusted after 2026-04-01"):
        writers.judge_administrator(KEY, "notes/x", AT + 40 * DAY)


def test_a_distrusted_writer_is_not_believed_as_an_administrator_either(tmp_path: Path) -> None:
    """Whoever stole the key could else vouch for the age of what he forged with it."""
    text = entry("ci", KEY, "one run") + "distrusted_after = 2026-03-01T00:00:00Z\n"
    writers = administered(tmp_path, text + administrator_entry("ops", KEY))
    assert writers.judge_administrator(KEY, "notes/x", AT) == "ops"
    with pytest.raises(UntrustedWriterError, match="distrusted after 2026-03-01"):
        writers.judge_administrator(KEY, "notes/x", AT + timedelta(milliseconds=1))


def test_whether_the_time_of_a_key_matters(tmp_path: Path) -> None:
    plain = entry("ci", KEY, "a")
    for text, timed in (
        (plain, False),
        (plain + entry("ci", OTHER, None) + "valid_from = 2026-02-01T00:00:00Z\n", False),
        (plain + entry("ci", KEY, "b") + "valid_from = 2026-02-01T00:00:00Z\n", True),
        (plain + "distrusted_after = 2026-02-01T00:00:00Z\n", True),
    ):
        assert administered(tmp_path, text).is_timed(KEY) == timed
    assert not Writers.load(None, own=KEY).is_timed(KEY)


def test_a_key_that_is_distrusted_for_some_runs_is_for_all(tmp_path: Path) -> None:
    """Whoever stole it can sign any run: an entry for other runs does not keep it alive."""
    writers = listed(
        tmp_path,
        f'name = "ci"\nkey = "{KEY}"\nruns = "ci-*"\ndistrusted_after = 2026-02-01T00:00:00Z',
        f'name = "all"\nkey = "{KEY}"',
    )
    for run in ("ci-1", "other"):
        with pytest.raises(UntrustedWriterError, match="distrusted after 2026-02-01"):
            writers.judge(KEY, run, AT)
    assert writers.judge(KEY, "other", datetime(2026, 1, 1, tzinfo=UTC)) == "all"


def test_one_entry_twice_is_one(tmp_path: Path) -> None:
    writers = listed(tmp_path, *[f'name = "ci"\nkey = "{KEY}"'] * 2)
    assert writers.judge(KEY, "r", AT) == "ci"
    assert writers.key_of("ci") == KEY


def test_several_keys_of_one_name(tmp_path: Path) -> None:
    writers = listed(tmp_path, f'name = "ci"\nkey = "{KEY}"', f'name = "ci"\nkey = "{OTHER}"')
    assert writers.judge(KEY, "r", AT) == writers.judge(OTHER, "r", AT) == "ci"
    with pytest.raises(UsageError, match="several keys have the name 'ci'") as caught:
        writers.key_of("ci")
    assert KEY in str(caught.value.remedy)
    assert writers.key_of(OTHER) == OTHER


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        ("run [12]", ["run 1", "run 2"], ["run [12]", "run 3"]),
        ("run [[]1]", ["run [1]"], ["run 1"]),
        ("[!a]*", ["b", "[a"], ["a", "ab"]),
        ("a[", ["a["], ["a", "a[x"]),
        ("a?c", ["abc", "a?c"], ["ac", "abbc"]),
        ("*", ["", "a\nb", "ä"], []),
        ("a*", ["a\nb"], ["b\na"]),
    ],
)
def test_patterns(tmp_path: Path, pattern: str, fits: list[str], fits_not: list[str]) -> None:
    writers = listed(tmp_path, f'name = "ci"\nkey = "{KEY}"\nruns = {toml_text(pattern)}')
    for run in fits:
        assert writers.judge(KEY, run, AT) == "ci"
    for run in fits_not:
        with pytest.raises(UntrustedWriterError):
            writers.judge(KEY, run, AT)


@pytest.mark.parametrize("kind", ["writer", "administrator"])
def test_times_that_exclude_each_other(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "writers.toml"
    times = "valid_from = 2026-02-01T00:00:00Z\ndistrusted_after = 2026-01-01T00:00:00Z\n"
    path.write_text(f'[[{kind}]]\nname = "a"\nkey = "{KEY}"\n{times}')
    with pytest.raises(ConfigError) as caught:
        Writers.load(path)
    assert f"{path}: {kind}.1: distrusted_after 2026-01-01" in str(caught.value)
    assert "is before valid_from 2026-02-01" in str(caught.value)
    path.write_text(path.read_text().replace("2026-01-01", "2026-02-01"))
    Writers.load(path)


@pytest.mark.parametrize("mode", [0o602, 0o666, 0o777])
def test_a_list_that_everybody_may_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "it's writers.toml"
    path.write_text(entry("ci", KEY, None))
    path.chmod(mode)
    with pytest.raises(ConfigError, match="everybody") as caught:
        Writers.load(path)
    assert str(path) in str(caught.value)
    command = str(caught.value.remedy).split(": ", 1)[1]
    subprocess.run(shlex.split(command), check=True)
    Writers.load(path)


def test_a_list_that_some_others_may_write_to_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "writers.toml"
    path.write_text(entry("ci", KEY, None))
    for mode in (0o600, 0o644, 0o444):
        path.chmod(mode)
        assert Writers.load(path).warnings == ()
    path.chmod(0o660)
    (warning,) = Writers.load(path).warnings
    assert f"the group {path.stat().st_gid} may change {path}" in warning


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to another user")
def test_a_list_that_belongs_to_another_user_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "writers.toml"
    path.write_text(entry("ci", KEY, None))
    os.chown(path, 12345, 0)
    (warning,) = Writers.load(path).warnings
    assert "user 12345" in warning


def test_a_name_that_is_not_listed(tmp_path: Path) -> None:
    writers = listed(tmp_path, f'name = "ci"\nkey = "{KEY}"')
    for name in (OTHER, "c", "", "ed25519:"):
        with pytest.raises(UsageError, match="neither the key nor the name") as caught:
            writers.key_of(name)
        assert f"'ci' ({KEY})" in str(caught.value.remedy)
    assert writers.key_of("ci") == writers.key_of(KEY) == KEY


def test_distrust_in_memory_is_what_its_lines_say(tmp_path: Path) -> None:
    text = (
        f'[[writer]]\nname = "ci"\nkey = "{KEY}"\nruns = "ci-*"\nvalid_from = 2026-01-10T00:00:00Z\n'
        f'[[writer]]\nname = "o\\"d\\u0007d"\nkey = "{KEY}"\ndistrusted_after = 2026-02-10T00:00:00Z\n'
        f'[[writer]]\nname = "other"\nkey = "{OTHER}"\n'
        f'[[administrator]]\nname = "ops"\nkey = "{KEY}"\n'
    )
    writers = administered(tmp_path, text)
    for after in (AT, datetime(2026, 1, 20, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)):
        changed = writers.distrusting(KEY, after)
        pasted = administered(tmp_path, changed.entries(KEY) + "\n" + entry("other", OTHER, None))
        assert pasted.administrators == changed.administrators
        assert {one.distrusted_after for one in changed.trusted if one.key == OTHER} == {None}
        assert [one for one in pasted.trusted if one.key == KEY] == [
            one for one in changed.trusted if one.key == KEY
        ]
    first, second, _ = writers.distrusting(KEY, AT).trusted
    assert (first.distrusted_after, second.distrusted_after) == (AT, datetime(2026, 2, 10, tzinfo=UTC))
    assert "distrusted_after" not in writers.believing(KEY).entries(KEY).split("[[administrator]]")[0]
