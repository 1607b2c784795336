"""The local file of the audit: nothing is lost, nothing is swallowed, and what is changed shows."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archiver import age, jsonio
from archiver.audit import journal, reading, seen
from archiver.audit.reading import Read
from archiver.errors import AuditError, InputNotFoundError
from archiver.model.audit import AuditEntry, AuditLine

NOBODY = 65534
SCHEMAS = Path(__file__).parent.parent / "schemas"


def add(path: Path, number: int = 0, why: str = "", at: datetime = datetime(2026, 3, 1, tzinfo=UTC)) -> None:
    def document(previous: str | None) -> dict[str, Any]:
        line = AuditLine(
            at=at, action="open", run="r", seq=number, who="anna@desk", uid=7,
            why=why, store="ab" * 16, url="file:///s", previous=previous,
        )  # fmt: skip
        return line.document()

    journal.append(path, document)


def states(path: Path) -> list[str]:
    return [one.state for one in reading.read(path)]


def in_child(work: Callable[[], object]) -> int:
    """The wait status of a child that does this."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "audit.jsonl"


def test_each_line_holds_the_digest_of_the_one_before(path: Path) -> None:
    for number in (1, 2, 3):
        add(path, number)
    lines = path.read_bytes().splitlines()
    said = [jsonio.loads(line)["previous"] for line in lines]
    assert said == [None, *(hashlib.sha256(line).hexdigest() for line in lines[:-1])]
    found = list(reading.read(path))
    assert [one.line.seq for one in found if one.line] == [1, 2, 3]
    assert states(path) == ["ok"] * 3


def test_the_file_and_its_folder_are_private(path: Path) -> None:
    add(path)
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_line_is_ascii_and_steers_no_terminal(path: Path) -> None:
    why = '\x1b[2J\u202e\u2028\x7f\x00 ä 🦜 "\\\n'
    add(path, why=why)
    data = path.read_bytes()
    assert data.count(b"\n") == 1
    assert all(32 <= byte < 127 for byte in data[:-1])
    (found,) = reading.read(path)
    assert found.line is not None
    assert found.line.why == why


def edited(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[1].replace(b"anna", b"otto"), *lines[2:]]


def removed(lines: list[bytes]) -> list[bytes]:
    return [lines[0], *lines[2:]]


def swapped(lines: list[bytes]) -> list[bytes]:
    return [lines[1], lines[0], *lines[2:]]


def inserted(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[0], *lines[1:]]


def the_first_removed(lines: list[bytes]) -> list[bytes]:
    return lines[1:]


def made_garbage(lines: list[bytes]) -> list[bytes]:
    return [lines[0], b"garbage", *lines[2:]]


def emptied(lines: list[bytes]) -> list[bytes]:
    return [lines[0], b"", *lines[2:]]


@pytest.mark.parametrize("change", [edited, removed, swapped, inserted, made_garbage, emptied])
def test_a_change_shows(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    for number in range(1, 6):
        add(path, number)
    path.write_bytes(b"".join(line + b"\n" for line in change(path.read_bytes().splitlines())))
    assert "broken" in states(path)
    add(path, 6)  # what comes after holds, and hides nothing
    assert "broken" in states(path)
    assert states(path)[-1] == "ok"


def test_a_beginning_that_was_taken_out_is_mentioned(path: Path) -> None:
    for number in (1, 2, 3):
        add(path, number)
    path.write_bytes(b"".join(line + b"\n" for line in the_first_removed(path.read_bytes().splitlines())))
    first, second = reading.read(path)
    assert (first.state, second.state) == ("note", "ok")
    assert "taken out" in first.said


def killed_in_the_middle(path: Path) -> None:
    write = os.write

    def half(handle: int, data: bytes) -> int:
        write(handle, data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    os.write = half
    add(path, 2)


def test_the_torn_line_of_a_killed_process_swallows_nothing(path: Path) -> None:
    add(path, 1)
    status = in_child(lambda: killed_in_the_middle(path))
    assert os.WIFSIGNALED(status)
    assert not path.read_bytes().endswith(b"\n")
    assert states(path) == ["ok", "note"]
    add(path, 3)
    found = list(reading.read(path))
    assert [one.line.seq if one.line else None for one in found] == [1, None, 3]
    assert [one.state for one in found] == ["ok", "note", "ok"]
    assert "cut off" in found[1].said


ADDING = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from test_audit import add
for number in range(int(sys.argv[2])):
    add(Path(sys.argv[1]), number)
"""


def test_processes_that_write_at_the_same_time(path: Path) -> None:
    arguments = [sys.executable, "-c", ADDING, str(path), "60", str(Path(__file__).parent)]
    running = [subprocess.Popen(arguments) for _ in range(3)]
    assert [one.wait(timeout=120) for one in running] == [0, 0, 0]
    assert states(path) == ["ok"] * 180
    numbers = sorted(one.line.seq or 0 for one in reading.read(path) if one.line)
    assert numbers == sorted(list(range(60)) * 3)


def test_a_disk_without_room(path: Path) -> None:
    add(path, 1)
    before = path.read_bytes()

    def limited() -> None:
        limit = len(before) + 40
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        with pytest.raises(AuditError, match="cannot be written") as caught:
            add(path, 2)
        assert "free some disk space" in (caught.value.remedy or "")
        os._exit(3)

    assert os.WEXITSTATUS(in_child(limited)) == 3
    assert path.read_bytes() == before
    add(path, 3)
    assert states(path) == ["ok", "ok"]


def test_a_file_that_may_not_be_written(path: Path) -> None:
    add(path, 1)
    path.chmod(0o400)
    before = path.read_bytes()

    def other_user() -> None:
        if os.getuid() == 0:
            for folder in (path.parent, *path.parents[1:4]):
                folder.chmod(0o755)
            os.setuid(NOBODY)
        with pytest.raises(AuditError) as caught:
            add(path, 2)
        assert "audit.file" in (caught.value.remedy or "")
        os._exit(3)

    assert os.WEXITSTATUS(in_child(other_user)) == 3
    assert path.read_bytes() == before


def a_folder(path: Path) -> None:
    path.mkdir()


def a_link(path: Path) -> None:
    (path.parent / "elsewhere").write_bytes(b"")
    path.symlink_to(path.parent / "elsewhere")


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("put", [a_folder, a_link, a_pipe])
def test_what_is_no_file(path: Path, put: Callable[[Path], None]) -> None:
    path.parent.mkdir()
    put(path)
    with pytest.raises(AuditError, match="cannot be written"):
        add(path)
    with pytest.raises(InputNotFoundError):
        list(reading.read(path))


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(AuditError):
        add(tmp_path / "file" / "audit.jsonl")


def test_a_name_that_cannot_be_one(tmp_path: Path) -> None:
    with pytest.raises(AuditError, match="null byte"):
        add(tmp_path / "a\0b")


def test_a_file_that_another_process_holds(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "PATIENCE", 0.05)
    add(path, 1)
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(AuditError, match="another process"):
            add(path, 2)
    add(path, 3)
    assert states(path) == ["ok", "ok"]


def test_rotation_goes_on_from_the_old_file(path: Path) -> None:
    add(path, 1)
    add(path, 2)
    old = path.with_name("audit.jsonl.1")
    path.rename(old)
    add(path, 3)
    (found,) = reading.read(path)
    assert (found.state, found.said) == ("ok", "goes on from audit.jsonl.1")
    shortened = old.read_bytes().splitlines(keepends=True)[:1]
    old.write_bytes(b"".join(shortened))
    (found,) = reading.read(path)
    assert found.state == "note"
    assert "taken out" in found.said


def test_a_file_rotated_while_it_is_waited_for(path: Path) -> None:
    """The line goes into the file that bears the name, and not into the one that was moved away."""
    add(path, 1)
    lock = journal._lock
    moved: list[bool] = []

    def rotating(handle: int) -> bool:
        if not moved:
            moved.append(True)
            path.rename(path.with_name("audit.jsonl.1"))
        return lock(handle)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "_lock", rotating)
        add(path, 2)
    assert [one.line.seq for one in reading.read(path) if one.line] == [2]
    assert states(path) == ["ok"]


def test_a_line_of_a_later_release_and_one_without_shape(path: Path) -> None:
    add(path, 1)
    later = {**jsonio.loads(path.read_bytes()), "format": 2}
    with path.open("ab") as file:
        file.write(json.dumps(later).encode() + b"\n[]\n" + b"x" * (reading.MAX_LINE + 10) + b"\n")
    said = [one.said for one in reading.read(path) if one.said]
    assert "format 2; this release reads 1" in said[0]
    assert "shape" in said[1]
    assert "longer" in said[2]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_whatever_lies_there_is_read_and_gone_on_from(path: Path, data: bytes, huge: bool) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"y" * (reading.MAX_LINE + 1) + data if huge else data)
    list(reading.read(path))
    add(path, 9)
    *_, newest = reading.read(path)
    assert isinstance(newest, Read)
    assert newest.line is not None
    assert (newest.line.seq, newest.state, newest.said) == (9, "ok", "")


def test_nothing_is_read_of_a_file_that_is_not_there(path: Path) -> None:
    assert list(reading.read(path)) == []


def test_an_opened_file_says_which_identity_opened_it() -> None:
    one, two = age.generate(), age.generate()
    phrase = age.ScryptIdentity("a phrase of some length")
    for recipients, identities, opener in (
        ([one.recipient, two.recipient], [two], two),
        ([one.recipient, two.recipient], [age.generate(), one, two], one),
        ([age.ScryptRecipient("a phrase of some length", age.WorkFactor.TEST_ONLY)], [one, phrase], phrase),
    ):
        pieces: list[bytes] = []
        sealer = age.seal(recipients, pieces.append)
        sealer.write(b"text")
        sealer.close()
        with age.unseal(identities, BytesIO(b"".join(pieces))) as opened:
            assert opened.opened_by == opener.fingerprint


def test_the_schemas_describe_what_is_written(path: Path) -> None:
    add(path, 7, "why")
    line = jsonio.loads(path.read_bytes())
    entry = AuditEntry(
        at=datetime(2026, 3, 1, tzinfo=UTC), action="open", who="anna", uid=7, store="ab" * 16, task="t",
        by="ed25519:x", opened={"r": 2}, opened_by="ab" * 16, detail={"objects": [1]},
    ).document()  # fmt: skip
    for name, document in (("audit-line", line), ("audit", entry)):
        schema = jsonio.loads((SCHEMAS / "v2" / f"{name}.schema.json").read_bytes())
        validator = jsonschema.Draft202012Validator(schema)
        validator.validate(document)
        assert not validator.is_valid({**document, "more": 1})
        assert validator.is_valid({**document, "action": "of-a-later-release"})
        assert not validator.is_valid({**document, "action": "Look\n"})


def test_of_a_file_without_end_only_the_newest_lines_are_held(path: Path) -> None:
    """Clocks go back: the newest are those of the latest time, wherever they stand."""
    for number, day in enumerate((3, 9, 1, 7, 2), start=1):
        add(path, number, at=datetime(2026, 3, day, tzinfo=UTC))
    assert [one.act.seq for one in seen.local(path, None)] == [1, 2, 3, 4, 5]
    assert [one.act.seq for one in seen.local(path, "r", 2)] == [2, 4]
    assert list(seen.local(path, "other", 2)) == []
