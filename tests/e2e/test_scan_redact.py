"""`redact`: copies that are the same but for what was replaced; whole or not there; never over anything."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import stat
import sys
from pathlib import Path

import pytest

from archiver.errors import AlreadyExistsError, ArchiverError, RefusedError, UsageError
from archiver.redact import FileRedactor, new_key
from archiver.scan import Copied, redact
from archiver.scratch import PREFIX

from .scanning import SEAL, fill, opaque, packed, run, token

RECEIPT = "redaction-receipt.json"
PLACEHOLDER = re.compile(rb"\[REDACTED:[a-z-]+:[0-9a-f]{12}\]")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    fill(folder, token(), opaque())
    return folder


@pytest.fixture(scope="session")
def loaded(cache: Path) -> FileRedactor:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        return FileRedactor.load(new_key())


def copy(loaded: FileRedactor, into: Path, *paths: Path, **options: bool) -> Copied:
    return redact([str(path) for path in paths], into, loaded.with_key(new_key()), **options)


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def without(data: bytes) -> bytes:
    """The bytes with everything that is or was a credential as one sign."""
    for value in (token(), opaque()):
        data = data.replace(value.encode(), b"#")
    return PLACEHOLDER.sub(b"#", data)


def test_copies_are_the_same_but_for_credentials(source: Path, tmp_path: Path, loaded: FileRedactor) -> None:
    before = everything(source)
    copied = copy(loaded, tmp_path / "out", source)
    after = everything(tmp_path / "out")
    assert set(after) == {f"in/{name}" for name in before} | {RECEIPT}
    for name, data in before.items():
        made = after[f"in/{name}"]
        assert without(made) == without(data), name
        assert token().encode() not in made
        assert opaque().encode() not in made
        assert (made == data) == (name == "plain.bin")
    for line in after["in/s.jsonl"].splitlines():
        json.loads(line)
    assert json.loads(after["in/s.jsonl"].splitlines()[1])["message"]["content"][0]["signature"] == SEAL
    assert json.loads(after["in/body.json"])["messages"][1]["content"][0]["signature"] == SEAL
    # One value has one placeholder everywhere.
    assert (
        len(set(PLACEHOLDER.findall(b"".join(data for name, data in after.items() if name != RECEIPT)))) == 2
    )
    assert json.loads(after[RECEIPT]) == copied.receipt.document()
    again = copy(loaded, tmp_path / "again", tmp_path / "out")
    assert not again.receipt.findings


def test_an_opaque_field_is_kept_though_it_looks_like_a_credential(
    tmp_path: Path, loaded: FileRedactor
) -> None:
    seal = f"{SEAL[:200]}/AKIA{'QWERTZUIOPASDFGH'}/{SEAL[200:]}"
    path = tmp_path / "s.jsonl"
    fill(tmp_path / "in", token(), opaque())
    path.write_text((tmp_path / "in" / "s.jsonl").read_text().replace(SEAL, seal))
    copy(loaded, tmp_path / "out", path)
    made = (tmp_path / "out" / "s.jsonl").read_text()
    assert seal in made
    assert token() not in made


def test_modes_are_private(source: Path, tmp_path: Path, loaded: FileRedactor) -> None:
    copy(loaded, tmp_path / "out", source)
    for path in (tmp_path / "out", *(tmp_path / "out").rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
    assert not list((tmp_path / "out").glob(f"{PREFIX}*"))


def test_what_is_no_text_is_left_out_and_named(source: Path, tmp_path: Path, loaded: FileRedactor) -> None:
    (source / "packed.gz").write_bytes(packed(token()))
    # Nothing in this file says that it holds a credential: another one does.
    (source / "a.bin").write_bytes(b"\0\1\2" + opaque().encode() + b"\0")
    copied = copy(loaded, tmp_path / "out", source)
    assert {left.member for left in copied.receipt.left_out} == {"in/packed.gz", "in/a.bin"}
    assert not (tmp_path / "out/in/packed.gz").exists()
    assert not (tmp_path / "out/in/a.bin").exists()


def test_a_name_with_a_credential_is_replaced(tmp_path: Path, loaded: FileRedactor) -> None:
    folder = tmp_path / "in" / f"k-{token()}"
    folder.mkdir(parents=True)
    for name in (f"{token(3)}.txt", "x" * 200 + "-" + token(4) + ".txt"):
        (folder / name).write_text("x")
    copied = copy(loaded, tmp_path / "out", tmp_path / "in")
    assert len(copied.files) == 2
    assert not any(token(seed) in str(everything(tmp_path / "out")) for seed in (1, 3, 4))
    assert all(len(step.encode()) <= 255 for name in copied.files for step in name.split("/"))


def test_nothing_is_written_over(source: Path, tmp_path: Path, loaded: FileRedactor) -> None:
    out = tmp_path / "out"
    (out / "in").mkdir(parents=True)
    (out / "in" / "s.jsonl").write_text("mine")
    with pytest.raises(AlreadyExistsError):
        copy(loaded, out, source)
    assert everything(out) == {"in/s.jsonl": b"mine"}
    copy(loaded, out, source, overwrite=True)
    assert (out / "in" / "s.jsonl").read_text() != "mine"
    assert (out / RECEIPT).exists()


def test_no_link_is_followed(source: Path, tmp_path: Path, loaded: FileRedactor) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("mine")
    for name, link in (("one", "in"), ("two", "in/s.jsonl")):
        out = tmp_path / name
        (out / link).parent.mkdir(parents=True)
        (out / link).symlink_to(other if link == "in" else other / "mine.txt")
        with pytest.raises((RefusedError, AlreadyExistsError)):
            copy(loaded, out, source)
    copy(loaded, tmp_path / "two", source, overwrite=True)
    assert not (tmp_path / "two/in/s.jsonl").is_symlink()
    with pytest.raises(RefusedError):
        copy(loaded, tmp_path / "one", source, overwrite=True)
    assert everything(other) == {"mine.txt": b"mine"}


def test_inputs_that_overlap_are_refused(
    source: Path, tmp_path: Path, loaded: FileRedactor, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "x.txt").write_text("x")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "s.jsonl").write_text("x")
    (tmp_path / "l").symlink_to(source)
    monkeypatch.chdir(source)
    for into, *paths in (
        (source / "out", source),
        (source, source),
        (out, out / "x.txt"),
        (out, source, source),
        (out, source, tmp_path / "l"),
        (out, source, source / "s.jsonl"),
        (out, source / "s.jsonl", tmp_path / "b" / "s.jsonl"),
        (source / "x", Path()),
        (out, Path("-")),
    ):
        with pytest.raises(UsageError):
            copy(loaded, into, *paths)
    assert everything(out) == {"x.txt": b"x"}
    copy(loaded, tmp_path / "here", Path())
    assert (tmp_path / "here" / "s.jsonl").exists()


def test_a_dry_run_writes_nothing(source: Path, tmp_path: Path, loaded: FileRedactor) -> None:
    planned = copy(loaded, tmp_path / "out", source, dry_run=True)
    assert not (tmp_path / "out").exists()
    done = copy(loaded, tmp_path / "out", source)
    assert planned.files == done.files
    assert [one.count for one in planned.receipt.findings] == [one.count for one in done.receipt.findings]


def test_the_program(source: Path, tmp_path: Path, home: Path) -> None:
    (source / "packed.gz").write_bytes(packed(token()))
    done = run("redact", source, "--into", tmp_path / "out")
    assert done.returncode == 0
    assert b"copied\tin/s.jsonl\t-\n" in done.stdout
    assert b"left out\tin/packed.gz\t" in done.stdout
    assert b"packed.gz was left out" in done.stderr
    assert token().encode() not in done.stdout + done.stderr
    failed = run("redact", source, "--into", tmp_path / "out", "--json")
    assert failed.returncode == 3
    assert json.loads(failed.stdout)["error"]["type"] == "AlreadyExistsError"


def test_a_full_disk_leaves_nothing_half(source: Path, tmp_path: Path, home: Path) -> None:
    (source / "big.txt").write_text(f"{token()} and more\n" * 3_000)
    limit = 100_000

    def narrow() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = run("redact", source, "--into", tmp_path / "out", preexec_fn=narrow)
    assert done.returncode == 8, done.stderr
    assert not (tmp_path / "out" / RECEIPT).exists()
    check_whole(source, tmp_path / "out")


def check_whole(source: Path, out: Path) -> None:
    """Every file under a name of its own is a whole copy, and no credential is anywhere."""
    before = everything(source)
    for name, data in everything(out).items():
        for value in (token(), opaque()):
            assert value.encode() not in data, name
        if not name.startswith(PREFIX) and name != RECEIPT:
            assert without(data) == without(before[name.removeprefix("in/")])


def test_killed_anywhere_it_leaves_no_half_file(source: Path, tmp_path: Path, loaded: FileRedactor) -> None:
    """Killed at one event after the other, until one run gets through."""
    copy(loaded, tmp_path / "warm", source)
    finished = 0
    for event in range(3, 4000, 7):
        out = tmp_path / f"out-{event}"
        child = os.fork()
        if child == 0:
            die_at(event)
            copy(loaded, out, source)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            assert os.WEXITSTATUS(status) == 0
            break
        if out.exists():
            check_whole(source, out)
            if (out / RECEIPT).exists():
                finished += 1
                assert len(everything(out)) >= len(everything(source)) + 1
    assert event > 50
    # What the last killed run left behind does not stand in the way of the next.
    out = tmp_path / f"out-{event - 7}"
    copy(loaded, out, source, overwrite=True)
    assert not list(out.glob(f"{PREFIX}*"))


def die_at(event: int) -> None:
    seen = 0

    def hook(name: str, _: object) -> None:
        nonlocal seen
        if name.startswith(("open", "os.", "shutil.", "tempfile.", "fcntl.")):
            seen += 1
            if seen == event:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def test_errors_are_typed(tmp_path: Path, loaded: FileRedactor) -> None:
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "file").write_text("x")
    for into in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ArchiverError):
            copy(loaded, into, tmp_path / "a.txt")
    missing = copy(loaded, tmp_path / "out", tmp_path / "a.txt", tmp_path / "no")
    assert missing.exit_code == 2
    assert missing.files == ("a.txt",)
