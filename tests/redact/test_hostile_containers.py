"""Archives and databases made to hurt: each ends within limits, and is not carried."""

from __future__ import annotations

import gzip
import io
import lzma
import random
import sqlite3
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.model import LeftOut
from archiver.redact import Carried, InflateLimits, Redactor
from archiver.redact.finder import Finder
from archiver.redact.inflate import Allowance, databases, inflater_for
from archiver.scratch import Scratch
from tests.redact.conftest import KEY
from tests.redact.containers import CONTAINERS, blocks, file, in_ar, in_database, in_tar, in_zip
from tests.redact.support import expand

MEGA = 1 << 20
TOKEN = expand("ghp_{alnum:36}", 12).encode()
SMALL = InflateLimits(inflated=4 * MEGA, entries=1_000, held=8 * MEGA)

Take = Callable[..., Carried | LeftOut]


@pytest.fixture
def take(finder: Finder, scratch: Scratch) -> Take:
    work = Redactor(finder, KEY, ()).carried(scratch, limits=SMALL)
    return lambda data, size=MEGA: work.file(file("held"), blocks(data, size))


def refused(made: Carried | LeftOut, *words: str) -> None:
    assert isinstance(made, LeftOut)
    assert made.reason.startswith("it could not be looked into: ")
    assert any(word in made.reason for word in words), made.reason


def zeros(count: int) -> bytes:
    """A gzip file of so many MiB of zeros, made of members of one MiB."""
    return gzip.compress(bytes(MEGA)) * count


def rle(count: int) -> bytes:
    """A frame of zstd whose every four bytes stand for 128 KiB."""
    block = (128 << 10 << 3 | 1 << 1).to_bytes(3, "little") + b"a"
    last = (128 << 10 << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"a"
    return b"\x28\xb5\x2f\xfd\x00\x58" + block * count + last


def many_entries(count: int) -> Iterator[bytes]:
    """A gzip file of a tar archive of so many empty files."""
    packer = zlib.compressobj(1, wbits=31)
    header = tarfile.TarInfo("x").tobuf()
    for _ in range(count // 1_000):
        yield packer.compress(header * 1_000)
    yield packer.flush()


def nested(pack: Callable[[bytes], bytes], depth: int) -> bytes:
    data = b"text"
    for _ in range(depth):
        data = pack(data)
    return data


def zip_of_entries(count: int) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for at in range(count):
            archive.writestr(f"{at}", b"")
    return held.getvalue()


def overlapping(count: int) -> bytes:
    """A zip archive whose directory names the same compressed bytes so many times."""
    one = io.BytesIO()
    with zipfile.ZipFile(one, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", bytes(MEGA))
    data = one.getvalue()
    start = data.index(b"PK\x01\x02")
    end = data.index(b"PK\x05\x06")
    entry = data[start:end]
    tail = b"PK\x05\x06" + bytes(4) + count.to_bytes(2, "little") * 2
    tail += (len(entry) * count).to_bytes(4, "little") + start.to_bytes(4, "little") + bytes(2)
    return data[:start] + entry * count + tail


BOMBS: dict[str, tuple[Callable[[], bytes], tuple[str, ...]]] = {
    "gzip of zeros": (lambda: zeros(64), ("MiB of content",)),
    "xz of zeros": (lambda: lzma.compress(bytes(64 * MEGA), preset=1), ("MiB of content",)),
    "zstd of zeros": (lambda: rle(64 * 8), ("MiB of content",)),
    "zip of zeros": (lambda: in_zip(bytes(64 * MEGA)), ("MiB of content",)),
    "zip in zip of zeros": (lambda: in_zip(in_zip(bytes(64 * MEGA))), ("MiB of content",)),
    "zip that overlaps": (lambda: overlapping(900), ("MiB of content", "damaged")),
    "zip of many": (lambda: zip_of_entries(2_000), ("1000 entries",)),
    "tar of many": (lambda: b"".join(many_entries(30_000)), ("1000 entries",)),
    "deep zip": (lambda: nested(in_zip, 12), ("nested too deeply",)),
    "deep gzip": (lambda: nested(gzip.compress, 40), ("nested too deeply",)),
    "deep tar": (lambda: nested(in_tar, 9), ("nested too deeply",)),
    "zip that is large": (lambda: b"PK\x03\x04" + bytes(9 * MEGA), ("larger than 8 MiB",)),
    "database that is large": (lambda: b"SQLite format 3\0" + bytes(9 * MEGA), ("larger than 8 MiB",)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_meets_a_limit(take: Take, name: str) -> None:
    make, words = BOMBS[name]
    refused(take(make()), *words)


def test_empty_streams_in_a_row_take_no_longer_than_others(take: Take) -> None:
    data = gzip.compress(b"") * 20_000
    assert isinstance(take(data), Carried)


@pytest.mark.soak
def test_large_bombs_meet_the_limits_of_everybody(finder: Finder, scratch: Scratch) -> None:
    work = Redactor(finder, KEY, ()).carried(scratch)
    refused(work.file(file("a.gz"), blocks(zeros(10 << 10))), "1024 MiB of content")
    refused(work.file(file("a.tgz"), lambda: many_entries(1_000_000)), "20000 entries")
    refused(work.file(file("a.zst"), blocks(rle(100_000))), "1024 MiB of content")


def test_all_containers_of_a_workspace_share_a_limit_and_a_time(finder: Finder, scratch: Scratch) -> None:
    limits = InflateLimits(altogether=3 * MEGA)
    work = Redactor(finder, KEY, ()).carried(scratch, limits=limits)
    made = [work.file(file(f"{at}.gz"), blocks(gzip.compress(bytes([at]) * MEGA))) for at in range(1, 6)]
    assert [isinstance(one, Carried) for one in made] == [True, True, True, False, False]
    refused(made[-1], "with all others")
    clock = iter(range(0, 10_000, 5))
    late = inflater_for(zeros(20)[:600], Allowance(InflateLimits(seconds=60), lambda: next(clock)))
    assert late is not None
    assert len(list(late.feed(zeros(20)))) < 15
    assert late.failure == "gzip: more than 60 seconds of work"


@pytest.mark.parametrize("name", [*CONTAINERS, "ar"])
def test_a_container_that_is_cut_off_is_not_carried_and_a_damaged_one_never_raises(
    take: Take, name: str
) -> None:
    whole = {**CONTAINERS, "ar": in_ar}[name](b"see " + TOKEN + b" there\n")
    assert isinstance(take(whole[: len(whole) * 2 // 3]), LeftOut)
    rng = random.Random(name)
    for _ in range(25):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 6)):
            data[rng.randrange(16, len(data))] = rng.randrange(256)
        take(bytes(data), 3_000)


@settings(max_examples=150, deadline=None)
@given(
    start=st.sampled_from([make(b"text")[:40] for make in CONTAINERS.values()]), rest=st.binary(max_size=900)
)
def test_any_bytes_behind_the_start_of_a_container_are_no_error(
    finder: Finder, start: bytes, rest: bytes
) -> None:
    with Scratch() as scratch:
        work = Redactor(finder, KEY, ()).carried(scratch, limits=SMALL)
        work.file(file("x"), blocks(start + rest, 100))


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"7z\xbc\xaf\x27\x1c" + bytes(90), "7z is not supported"),
        (b"Rar!\x1a\x07\x01\0" + bytes(90), "rar is not supported"),
        (b"\x04\x22\x4d\x18" + bytes(90), "lz4 is not supported"),
        (b"PACK\0\0\0\2\0\0\0\0" + bytes(20), "pack of git"),
        (b"# v2 git bundle\n" + bytes(90), "bundle of git"),
        (gzip.compress(b"7z\xbc\xaf\x27\x1c" + bytes(90), mtime=0), "inside it, 7z is not supported"),
    ],
)
def test_what_nobody_can_look_into_is_named(take: Take, data: bytes, word: str) -> None:
    refused(take(data), word)


def test_an_encrypted_zip_is_not_carried_and_its_names_are_not_told(take: Take) -> None:
    data = bytearray(in_zip(b"text", f"{TOKEN.decode()}.txt"))
    for magic, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = -1
        while (place := data.find(magic, place + 1)) >= 0:
            data[place + at] |= 1
    made = take(bytes(data))
    refused(made, "zip: it is encrypted")
    assert isinstance(made, LeftOut)
    assert TOKEN.decode() not in made.reason


def test_old_tars_and_texts_that_begin_like_archives(take: Take) -> None:
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT):
        held = io.BytesIO()
        with tarfile.open(fileobj=held, mode="w", format=form) as archive:
            data = gzip.compress(b"see " + TOKEN)
            entry = tarfile.TarInfo("a.gz")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        old = bytearray(held.getvalue())
        if form == tarfile.USTAR_FORMAT:  # as before 1988: no magic, so another sum
            old[257:265] = bytes(8)
            old[148:156] = b" " * 8
            old[148:156] = b"%06o\0 " % sum(old[:512])
        assert isinstance(take(bytes(old)), LeftOut)
    for text in (b"x^2 + y^2 = z^2\n", b"x\x01 text", b"PK is a name\n", b"!<arch\n", b"BZh is a name\n"):
        assert isinstance(take(text * 40), Carried)


# --- databases ----------------------------------------------------------------------------------------------


def database(*statements: str | tuple[str, tuple[object, ...]], page: int = 4096) -> bytes:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as base:
        base.execute(f"PRAGMA page_size = {page}")
        for statement in statements:
            base.execute(*((statement,) if isinstance(statement, str) else statement))
        return base.serialize()


def altered(data: bytes, old: str, new: str) -> bytes:
    """The database with a text of its schema replaced by one of the same length."""
    assert len(old) == len(new)
    assert data.count(old.encode()) == 1
    return data.replace(old.encode(), new.encode())


def test_nothing_that_a_schema_says_is_carried_out(take: Take) -> None:
    data = database(
        "CREATE TABLE t (a TEXT, b TEXT AS (zeroblob(900000000)) VIRTUAL, c TEXT CHECK (length(c) < 99))",
        "INSERT INTO t (a, c) VALUES ('text', 'other')",
        "CREATE VIEW v AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n",
        "CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT load_extension('x'); END",
        "CREATE INDEX i ON t (abs(length(a)))",
    )
    assert isinstance(take(data), Carried)
    hidden = altered(data, "CREATE VIEW v AS", "CREATE TABLE v (")
    refused(take(hidden), "SQLite")


@pytest.mark.parametrize(
    ("action", "first"),
    [
        (sqlite3.SQLITE_FUNCTION, None),
        (sqlite3.SQLITE_INSERT, "t"),
        (sqlite3.SQLITE_ATTACH, "/x"),
        (sqlite3.SQLITE_PRAGMA, "writable_schema"),
        (sqlite3.SQLITE_RECURSIVE, None),
        (sqlite3.SQLITE_CREATE_VTABLE, "t"),
    ],
)
def test_a_statement_may_read_and_nothing_else(action: int, first: str | None) -> None:
    assert databases._may(action, first, None, None, None) == sqlite3.SQLITE_DENY
    assert databases._may(sqlite3.SQLITE_READ, "t", "a", "main", None) == sqlite3.SQLITE_OK


def test_columns_that_are_generated_and_stored_are_read(take: Take) -> None:
    data = database(
        "CREATE TABLE t (a TEXT, b TEXT AS (upper(a) || 'x') STORED)",
        "INSERT INTO t (a) VALUES ('text')",
    )
    assert isinstance(take(data), Carried)
    odd = database(
        'CREATE TABLE "t""x y" ("a""b" TEXT, "select" TEXT, PRIMARY KEY ("a""b")) WITHOUT ROWID',
        ('INSERT INTO "t""x y" VALUES (?, ?)', ("." * 3_000, "." * 5_000 + TOKEN.decode())),
        page=512,
    )
    assert isinstance(take(odd), LeftOut)


def test_a_name_of_a_column_tells_what_its_values_are(take: Take) -> None:
    word = expand("{alnum:28}", 4)
    data = database("CREATE TABLE logins (id, api_key TEXT)", ("INSERT INTO logins VALUES (1, ?)", (word,)))
    assert isinstance(take(data), LeftOut)
    data = database("CREATE TABLE builds (id, revision TEXT)", ("INSERT INTO builds VALUES (1, ?)", (word,)))
    assert isinstance(take(data), Carried)


def test_many_columns_and_many_rows_are_read_to_the_end(take: Take) -> None:
    columns = ", ".join(f"c{at} TEXT" for at in range(50))
    padding = "." * 700
    row = ("." * 3_000, *[padding] * 48, padding + TOKEN.decode())
    data = database(
        f"CREATE TABLE t ({columns})",
        (f"INSERT INTO t VALUES ({', '.join('?' * 50)})", row),  # noqa: S608 - no value
        page=512,
    )
    assert isinstance(take(data), LeftOut)


def test_a_database_with_a_log_is_read_too(take: Take) -> None:
    for word in (TOKEN, b"nothing"):
        data = bytearray(in_database(word, page=512, before=5_000))
        data[18:20] = b"\2\2"
        assert isinstance(take(bytes(data)), Carried if word == b"nothing" else LeftOut)


def test_a_table_whose_pages_are_the_same_one_meets_a_limit(take: Take) -> None:
    """Its root names one page four hundred times, and that one itself: there are endless rows."""
    rows = [("INSERT INTO t VALUES (?, ?)", (at, "." * 300)) for at in range(200)]
    data = bytearray(database("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)", *rows, page=512))
    root = next(at for at in range(512, len(data), 512) if data[at] == 5)
    count = int.from_bytes(data[root + 3 : root + 5], "big")
    cells = [int.from_bytes(data[root + 12 + 2 * at : root + 14 + 2 * at], "big") for at in range(count)]
    for cell in cells[1:]:
        data[root + cell : root + cell + 4] = data[root + cells[0] : root + cells[0] + 4]
    data[root + 8 : root + 12] = (root // 512 + 1).to_bytes(4, "big")
    refused(take(bytes(data)), "SQLite")


def test_work_without_content_meets_a_limit(finder: Finder, scratch: Scratch) -> None:
    data = database(
        "CREATE TABLE t (a INTEGER PRIMARY KEY)",
        "INSERT INTO t WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 20000)"
        " SELECT x FROM n",
    )
    for steps, kind in ((5_000, LeftOut), (1_000_000, Carried)):
        work = Redactor(finder, KEY, ()).carried(scratch, limits=InflateLimits(steps=steps))
        made = work.file(file("a.db"), blocks(data))
        assert isinstance(made, kind), made
        if isinstance(made, LeftOut):
            refused(made, "too much work")


def test_a_value_over_the_limit_of_one_is_not_read(finder: Finder, scratch: Scratch) -> None:
    data = database("CREATE TABLE t (a)", "INSERT INTO t VALUES (zeroblob(17000000))")
    made = Redactor(finder, KEY, ()).carried(scratch).file(file("a.db"), blocks(data))
    refused(made, "SQLite")
