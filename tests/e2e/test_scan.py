"""`scan` on files: what it finds in every form, what it passes over, and that it tells nothing of a value."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from archiver.redact import FileRedactor, Held, new_key
from archiver.scan import Scanned, Stream, scan
from archiver.scan.inputs import HELD_LIMIT, standard_input

from .scanning import fill, line, opaque, packed, run, session, token


def scanned(*paths: Path | str, **options: object) -> Scanned:
    return scan([str(path) for path in paths], FileRedactor.load(new_key()), **options)  # type: ignore[arg-type]


def places(found: Scanned) -> dict[str, list[str]]:
    return {one.rule: list(one.places) for one in found.receipt.findings}


def test_every_form_is_looked_into(tmp_path: Path) -> None:
    secret, bare = token(), opaque()
    folder = tmp_path / "in"
    fill(folder, secret, bare)
    (folder / "packed.gz").write_bytes(packed(secret))
    found = scanned(folder)
    by_rule = {one.rule: one for one in found.receipt.findings}
    assert set(by_rule) == {"github-token", "assigned-secret"}
    assert by_rule["github-token"].count >= 7
    # Four times as a password, and where it stands bare: before that, in another file, in a document.
    assert by_rule["assigned-secret"].count == 6
    assert {place.split(" ")[0] for place in by_rule["assigned-secret"].places} >= {"in/bare.txt"}
    assert found.exit_code == 1
    assert found.files == 8


def test_nothing_found_is_exit_0(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("nothing here")
    assert scanned(tmp_path).exit_code == 0


def test_the_program_tells_nothing_of_a_value(tmp_path: Path, home: Path) -> None:
    secret, bare = token(), opaque()
    folder = tmp_path / "in"
    fill(folder, secret, bare)
    (folder / f"{secret}.txt").write_text(secret)
    for options in ((), ("--json",), ("--quiet",)):
        done = run("scan", *options, folder)
        assert done.returncode == 1, done.stderr
        said = (done.stdout + done.stderr).decode()
        for value in (secret, bare):
            assert not any(value[at : at + 8] in said for at in range(len(value) - 7))
            assert hashlib.sha256(value.encode()).hexdigest()[:12] not in said
        assert ("rotate" in said) == (options != ("--quiet",))
    assert not done.stdout
    assert not done.stderr


def test_standard_input(home: Path) -> None:
    done = run("scan", "-", "--json", given=session(token(), opaque()).encode())
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert document["receipt"]["findings"][-1]["places"] == [
        "standard input line 2 $.message.content[0].thinking"
    ]
    assert document["rotate"][0]["step"]
    assert run("scan", "-", given=b"nothing").returncode == 0


def test_a_long_standard_input_is_seen_once() -> None:
    text = b"a line of text that says nothing\n" * (HELD_LIMIT // 33 + 1000)
    given = standard_input(io.BytesIO(text + f"key {token()}\n".encode()))
    assert isinstance(given, Stream)
    found = scanned("-", standard_input=given)
    assert [one.count for one in found.receipt.findings] == [1]
    assert isinstance(standard_input(io.BytesIO(b"x")), Held)


def test_what_is_no_file_is_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / ".git" / "objects").mkdir(parents=True)
    (folder / ".git" / "refs").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: x")
    (folder / ".git" / "config").write_text(f"url = https://x:{token()}@example.com/")
    (tmp_path / "out.txt").write_text(token(9))
    (folder / "link").symlink_to(tmp_path / "out.txt")
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    (folder / "packed.zst").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(100))
    found = scanned(folder)
    assert [one.count for one in found.receipt.findings] == [1]
    assert found.receipt.findings[0].places == ("in/.git/config line 1",)
    assert {one.name for one in found.skipped} == {"in/link", "in/loop", "in/pipe", "in/.git/objects"}
    assert [one.name for one in found.unseen] == ["in/packed.zst"]
    assert found.exit_code == 1
    assert scanned(folder / "link").exit_code == 1  # named itself, it is followed


def test_what_cannot_be_read_is_an_error_beside_what_was_found(tmp_path: Path, home: Path) -> None:
    (tmp_path / "a.txt").write_text(token())
    (tmp_path / "x").symlink_to("x")
    done = run("scan", tmp_path / "a.txt", tmp_path / "no", tmp_path / "x", tmp_path / token(3))
    assert done.returncode == 2
    assert b"github-token\t1\t" in done.stdout
    assert done.stderr.count(b"cannot be read") == 3
    assert token(3).encode() not in done.stderr


def test_a_file_that_is_named_twice_is_looked_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text(token())
    found = scanned(folder / "a.txt", folder, folder / "." / "a.txt")
    assert [one.count for one in found.receipt.findings] == [1]
    assert found.files == 1
    assert len(found.skipped) == 2


class Removing:
    """A progress that removes the other files of a folder once the first was looked at."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def stage(self, name: str, total: int | None = None) -> None:
        """Nothing to do."""

    def advance(self, count: int) -> None:
        for path in sorted(self._folder.iterdir())[1:]:
            path.unlink()


def test_files_that_vanish_are_no_crash(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.txt").write_text(token())
    found = scanned(folder, progress=Removing(folder))
    assert {one.why for one in found.skipped} == {"it vanished meanwhile"}
    assert len(found.skipped) == 2
    assert found.exit_code == 1


def test_hostile_names_are_shown_inert(tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in (
        b"\x1b]52;c;eA==\x07.txt",
        "\u202eevil.txt".encode(),
        b"\xff\xfe.txt",
        b"a\nb.txt",
        b"-rf",
        b"%41",
    ):
        (folder / os.fsdecode(name)).write_text(token())
    for options in ((), ("--json",)):
        done = run("scan", *options, folder)
        assert done.returncode == 1
        assert not any(
            sign in done.stdout + done.stderr for sign in (b"\x1b", b"\x07", "\u202e".encode(), b"\xff")
        )
        assert len(done.stdout.splitlines()) == 1


def test_a_session_that_is_written_to_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(session(token(), opaque()) + line(3, "half")[:20])
    assert scanned(path).exit_code == 1


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="tells no peak of memory")
@pytest.mark.parametrize(
    "shape",
    ["lines", *(pytest.param(shape, marks=pytest.mark.soak) for shape in ("one line", "zeros"))],
)
def test_memory_is_bounded(tmp_path: Path, shape: str, home: Path) -> None:
    path = tmp_path / "huge"
    with path.open("wb") as file:
        if shape == "lines":
            for _ in range(100):
                file.write(b"a line of text that says nothing at all\n" * 26214)
        elif shape == "one line":
            file.write(b"{")
            for _ in range(100):
                file.write(b"x" * (1 << 20))
        else:
            file.truncate(50 << 20)
        file.write(f"\nkey {token()}\n".encode())
    code = (
        "import sys; from archiver.cli import main; sys.argv = ['archiver', 'scan', sys.argv[1]]\n"
        "try: main()\n"
        "except SystemExit as end:\n"
        "    peak = [line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')]\n"
        "    print(end.code, *peak)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=100
    )
    exit_code, peak = done.stdout.splitlines()[-1].split()
    assert exit_code == "1", done.stderr
    assert int(peak) < 260 << 10  # kilobytes


def test_usage(home: Path) -> None:
    for arguments in ([], ["--newest", "x"]):
        assert run("scan", *arguments).returncode == 2
