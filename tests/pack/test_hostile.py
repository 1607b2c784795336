"""Archives that were damaged or made to harm: a typed error, bounded memory, nothing outside the folder."""

from __future__ import annotations

import io
import itertools
import os
import random
import tarfile
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver import jsonio
from archiver.errors import (
    AlreadyExistsError,
    ArchiveFormatError,
    ArchiverError,
    DigestMismatchError,
    InputNotFoundError,
    LimitExceededError,
    StoreFullError,
    UnsupportedSchemaError,
)
from archiver.model.limits import MAX_MANIFEST, Limits
from archiver.model.manifest import Manifest
from archiver.pack import read_manifest, tar, unpack
from archiver.pack.frames import CONTENT

from .archives import (
    FILES,
    HEAD,
    archive_of,
    contents,
    entries,
    entry,
    first_frame,
    frame,
    manifest_of,
    packed,
    tree,
    unpacked,
)

DAMAGE = (ArchiveFormatError, DigestMismatchError, LimitExceededError)
STREAM = b"".join([*entries(), tar.END])


def refused(archive: bytes, into: Path, error: type[ArchiverError], said: str = ".") -> None:
    """The archive is refused so, and takes little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(error, match=said):
            unpacked(archive, into)
        assert tracemalloc.get_traced_memory()[1] < 40 * 2**20
    finally:
        tracemalloc.stop()


def test_the_archives_of_these_tests_are_good_before_they_are_damaged(tmp_path: Path) -> None:
    unpacked(archive_of([*entries(), tar.END]), tmp_path / "into")
    assert tree(tmp_path / "into") == FILES
    assert contents(archive_of([STREAM])) == contents(packed())


# --- damage -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Makes a new empty folder; removing each at once would take longer than all the rest."""
    root, numbers = tmp_path_factory.mktemp("fresh"), itertools.count()

    def make() -> Path:
        path = root / str(next(numbers))
        path.mkdir()
        return path

    return make


def outcome(archive: bytes, into: Path) -> object:
    """What unpacking gives: the files, or None for a refusal; any other exception fails the test."""
    try:
        unpack(io.BytesIO(archive), into, limits=Limits())
    except DAMAGE:
        return None
    return tree(into)


def test_every_flipped_byte_is_noticed_or_harmless(fresh: Callable[[], Path]) -> None:
    archive = packed()
    for place, mask in itertools.product(range(len(archive)), (0x01, 0x80, 0xFF)):
        damaged = archive[:place] + bytes([archive[place] ^ mask]) + archive[place + 1 :]
        assert outcome(damaged, fresh()) in (None, FILES), (place, mask)


def test_every_truncation_is_noticed(fresh: Callable[[], Path]) -> None:
    archive = packed()
    for length in range(len(archive)):
        assert outcome(archive[:length], fresh()) is None


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_what_is_cut_moved_or_put_in_is_noticed(fresh: Callable[[], Path], data: st.DataObject) -> None:
    archive = packed()
    damaged = bytearray(archive)
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(damaged)))
        end = data.draw(st.integers(start, min(len(damaged), start + 64)))
        damaged[start:end] = data.draw(st.one_of(st.binary(max_size=64), st.just(archive[:40])))
    assert outcome(bytes(damaged), fresh()) in (None, FILES)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_a_damaged_stream_in_good_frames_is_noticed(fresh: Callable[[], Path], data: st.DataObject) -> None:
    """Frames and checksums are right; the tar stream inside is not."""
    stream = bytearray(STREAM)
    start = data.draw(st.integers(0, len(stream)))
    end = data.draw(st.integers(start, min(len(stream), start + 3)))
    stream[start:end] = data.draw(st.binary(max_size=3))
    assert outcome(archive_of([bytes(stream)]), fresh()) == (FILES if stream == STREAM else None)


@settings(max_examples=200, deadline=None)
@given(noise=st.one_of(st.binary(max_size=60), st.binary(max_size=60).map(b"\x28\xb5\x2f\xfd".__add__)))
def test_noise_is_refused(fresh: Callable[[], Path], noise: bytes) -> None:
    assert outcome(noise, fresh()) is None
    assert outcome(first_frame() + noise, fresh()) is None
    assert outcome(packed() + noise, fresh()) == (None if noise else FILES)


# --- frames -------------------------------------------------------------------------------------------------


def raw_frame(
    claimed: int, blocks: bytes, *, descriptor: int = 0b11000100, window: int | None = 0x68
) -> bytes:
    """A frame by hand: magic, descriptor, window, an 8-byte content size, blocks (with their headers)."""
    head = b"\x28\xb5\x2f\xfd" + bytes([descriptor]) + (b"" if window is None else bytes([window]))
    return head + claimed.to_bytes(8, "little") + blocks


def block(size: int, kind: int, body: bytes, *, last: bool = False) -> bytes:
    return (size << 3 | kind << 1 | last).to_bytes(3, "little") + body


RLE = block(128 * 2**10, 1, b"A")
SKIPPABLE = b"\x50\x2a\x4d\x18" + (16).to_bytes(4, "little") + bytes(16)
REST = frame(STREAM)


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(
    "extra", [SKIPPABLE, frame(b""), frame(b"x"), b"\0", b"\x28\xb5\x2f\xfd"], ids=range(5)
)
def test_a_frame_too_many(tmp_path: Path, place: int, extra: bytes) -> None:
    parts = [first_frame(), REST]
    parts.insert(place, extra)
    refused(b"".join(parts), tmp_path / "into", ArchiveFormatError)


@pytest.mark.parametrize(
    "rest",
    {
        "no content size": frame(STREAM, size=False),
        "no checksum": frame(STREAM, checksum=False),
        "tiny frames": b"".join(frame(STREAM[place : place + 1]) for place in range(len(STREAM))),
        "two frames": frame(STREAM[:1000]) + frame(STREAM[1000:]),
        "the manifest twice": first_frame() + REST,
        "none": b"",
        "a huge claim": raw_frame(2**62, RLE),
        "a claim of all bits": raw_frame(2**64 - 1, RLE),
        "a bomb in the right claim": raw_frame(len(STREAM), RLE * 60_000 + block(0, 0, b"", last=True)),
        "endless empty blocks": raw_frame(len(STREAM), block(0, 0, b"") * 100_000),
        "a block of a reserved kind": raw_frame(len(STREAM), block(9, 3, bytes(9), last=True)),
        "a block over the limit": raw_frame(len(STREAM), block(2**20, 0, bytes(2**20), last=True)),
        "a huge window": raw_frame(len(STREAM), RLE, window=0xFF),
        "a window just over the limit": raw_frame(len(STREAM), RLE, window=0x69),
        "a dictionary": raw_frame(len(STREAM), RLE, descriptor=0b11000101),
        "a reserved bit": raw_frame(len(STREAM), RLE, descriptor=0b11001100),
        "an unused bit": raw_frame(len(STREAM), RLE, descriptor=0b11010100),
        "an unused bit in a good frame": REST[:4] + bytes([REST[4] | 0b10000]) + REST[5:],
        "too little content": raw_frame(len(STREAM), block(1, 0, b"x", last=True) + bytes(4)),
    }.items(),
    ids=lambda case: case[0],
)
def test_frames_that_are_not_of_the_format(tmp_path: Path, rest: tuple[str, bytes]) -> None:
    refused(first_frame() + rest[1], tmp_path / "into", ArchiveFormatError, "frame 1 of the archive")


class Endless(io.BytesIO):
    """A first part, then empty blocks without end; a reader that goes on and on fails the test."""

    def read(self, size: int | None = -1) -> bytes:
        assert self.tell() < 2 * CONTENT, "the reader does not stop"
        data = super().read(size)
        if not data:
            self.write(data := block(0, 0, b"") * 100_000)
        return data


def test_a_frame_without_end(tmp_path: Path) -> None:
    source = Endless(first_frame() + raw_frame(len(STREAM), b""))
    with pytest.raises(ArchiveFormatError, match="is longer than the"):
        unpack(source, tmp_path, limits=Limits())


def test_a_claim_is_judged_before_anything_is_decoded(tmp_path: Path) -> None:
    for claimed in (0, len(STREAM) - 1, len(STREAM) + 1, 2**62):
        with pytest.raises(ArchiveFormatError, match=f"frame 1 .* claims {claimed} bytes"):
            unpacked(first_frame() + raw_frame(claimed, b""), tmp_path / f"{claimed}")


@pytest.mark.parametrize("claimed", [MAX_MANIFEST + 513, 2**40, 2**64 - 1])
def test_a_first_frame_that_claims_too_much(tmp_path: Path, claimed: int) -> None:
    for archive in (raw_frame(claimed, RLE), raw_frame(claimed, RLE * 1000)):
        refused(archive, tmp_path / "into", LimitExceededError, r"manifest\.json claims \d+ bytes")
        with pytest.raises(LimitExceededError):
            read_manifest(io.BytesIO(archive), limits=Limits())


def test_a_first_frame_needs_a_small_window(tmp_path: Path) -> None:
    refused(
        raw_frame(2**24, RLE, descriptor=0b11100100, window=None),
        tmp_path / "into",
        ArchiveFormatError,
        "window",
    )


@pytest.mark.parametrize("window_log", [10, 22, 23])
def test_windows_up_to_the_limit_are_read(tmp_path: Path, window_log: int) -> None:
    data = random.Random(3).randbytes(CONTENT)
    stream = entry("a", data) + tar.END
    options = zstandard.ZstdCompressionParameters.from_level(3, window_log=window_log, write_checksum=True)
    other = zstandard.ZstdCompressor(compression_params=options)
    parts = [other.compress(stream[place : place + CONTENT]) for place in (0, CONTENT)]
    unpacked(first_frame(manifest_of({"a": data}).raw) + b"".join(parts), tmp_path / "into")
    assert (tmp_path / "into/a").read_bytes() == data


def test_a_bomb_meets_the_limit_of_a_member(tmp_path: Path) -> None:
    huge = manifest_of({"bomb": b""}).document()
    huge["members"][0]["size"] = 4 * 2**30
    refused(
        first_frame(jsonio.canonical(huge)) + frame(bytes(CONTENT)) * 512,
        tmp_path / "into",
        LimitExceededError,
        "member bomb has 4294967296 bytes",
    )
    assert tree(tmp_path / "into") == {}


# --- the tar stream -----------------------------------------------------------------------------------------


def python_header(kind: bytes = tarfile.REGTYPE, *, name: str = "checkpoint.json", **fields: object) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.type = len(FILES["checkpoint.json"]), HEAD.mtime, kind
    for field, value in fields.items():
        setattr(info, field, value)
    return info.tobuf(tarfile.PAX_FORMAT)


BODY = FILES["checkpoint.json"] + tar.padding(len(FILES["checkpoint.json"]))


@pytest.mark.parametrize(
    "header",
    [
        python_header(kind, linkname="/etc/passwd")
        for kind in (b"\0", b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"g", b"L", b"K", b"S", b"V", b"x")
    ]
    + [
        python_header(name="../escape"),
        python_header(name="/etc/passwd"),
        python_header(name="checkpoint.json\0x"),
        python_header(mode=0o4755),
        python_header(uid=1),
        python_header(uname="root"),
        python_header(mtime=HEAD.mtime + 1),
        python_header(pax_headers={"size": "7"}),
        python_header(pax_headers={"path": "../escape"}),
        python_header(pax_headers={"path": "checkpoint.json"}),
        python_header(pax_headers={"comment": "x"}),
        python_header(pax_headers={"GNU.sparse.major": "1", "GNU.sparse.name": "../escape"}),
        python_header(size=2**40),
    ],
)
def test_headers_other_than_the_one_that_belongs(tmp_path: Path, header: bytes) -> None:
    archive = archive_of([header + BODY, *entries()[1:], tar.END])
    refused(archive, tmp_path / "into", ArchiveFormatError)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["into"]
    assert not (tmp_path / "into").is_symlink()


ONE, TWO, THREE = entries()


@pytest.mark.parametrize(
    "parts",
    [
        [TWO, ONE, THREE, tar.END],
        [ONE, TWO, tar.END],
        [ONE, TWO, THREE, entry("more", b""), tar.END],
        [ONE, ONE, TWO, THREE, tar.END],
        [ONE, TWO, THREE],
        [ONE, TWO, THREE, bytes(512)],
        [ONE, TWO, THREE, tar.END, bytes(512)],
        [ONE, TWO, THREE, tar.END, b"\0"],
        [ONE, TWO, THREE, bytes(1023) + b"x"],
        [ONE[:-1] + b"x", TWO, THREE, tar.END],
        [tar.END, ONE, TWO, THREE],
        [],
    ],
)
def test_streams_other_than_the_one_that_was_announced(tmp_path: Path, parts: list[bytes]) -> None:
    refused(archive_of(parts), tmp_path / "into", ArchiveFormatError)


def test_content_other_than_what_was_announced(tmp_path: Path) -> None:
    changed = entry("checkpoint.json", FILES["checkpoint.json"].swapcase())
    refused(
        archive_of([changed, TWO, THREE, tar.END]), tmp_path / "into", DigestMismatchError, "checkpoint.json"
    )


# --- the manifest -------------------------------------------------------------------------------------------


def changed_manifest(change: Callable[[dict[str, object]], object]) -> bytes:
    document = manifest_of(FILES).document()
    change(document)
    return jsonio.canonical(document)


def first_member(**fields: object) -> bytes:
    def change(document: dict[str, object]) -> None:
        members = document["members"]
        assert isinstance(members, list)
        members[0].update(fields)

    return changed_manifest(change)


GOOD = manifest_of(FILES).raw


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"null",
        b"[" * 100_000,
        GOOD + b" ",
        GOOD.replace(b'"format":1', b'"format": 1'),
        GOOD.replace(b'"format":1', b'"format":1,"format":1'),
        GOOD.replace(b'"seq":7', b'"seq":7.0'),
        GOOD.replace(b'"seq":7', b'"seq":"7"'),
        GOOD.replace(b'"seq":7', b'"seq":true'),
        GOOD.replace(b'"seq":7', b'"seq":1e400'),
        GOOD.replace(b'"run":"run"', b'"run":"r\\u0075n"'),
        changed_manifest(lambda document: document.update(more=1)),
        changed_manifest(lambda document: document.update(format=0)),
        changed_manifest(lambda document: document.update(seq=0)),
        changed_manifest(lambda document: document.update(redaction_key="!")),
        changed_manifest(lambda document: document.update(redaction_key="YR==")),
        changed_manifest(lambda document: document.pop("run")),
        changed_manifest(lambda document: document.update(members={})),
        first_member(path="../escape"),
        first_member(path="/etc/passwd"),
        first_member(path="empty"),
        first_member(path="empty/below"),
        first_member(path="manifest.json"),
        first_member(path="a\0"),
        first_member(size=-1),
        first_member(size=None),
        first_member(mode=0o1777),
        first_member(sha256="0" * 63),
        first_member(sha256="F" * 64),
        first_member(bundle="../x"),
        first_member(bundle=""),
        first_member(bundle="bundles/run/00000006-0123456789abcdef.tar.zst.age"),
        first_member(link="/etc/passwd"),
    ],
)  # fmt: skip
def test_manifests_that_are_malformed(tmp_path: Path, raw: bytes) -> None:
    refused(archive_of([STREAM], raw), tmp_path / "into", ArchiveFormatError)
    assert tree(tmp_path / "into") == {}


def test_a_newer_archive_names_the_version(tmp_path: Path) -> None:
    raw = changed_manifest(lambda document: document.update(format=4, new="field"))
    refused(archive_of([STREAM], raw), tmp_path / "into", UnsupportedSchemaError, "format 4")


@pytest.mark.parametrize(
    "place",
    [slice(0, 1), slice(100, 101), slice(124, 136), slice(136, 148), slice(156, 157), slice(500, 501)],
)
@pytest.mark.parametrize("filler", [b"\0", b"7", b" ", b"_", b"-", b"\xff"])
def test_the_manifests_header_has_one_form(tmp_path: Path, place: slice, filler: bytes) -> None:
    content = bytearray(tar.manifest_entry(GOOD, HEAD.mtime))
    before = bytes(content)
    content[place] = filler * (place.stop - place.start)
    if content == before:
        return
    refused(frame(bytes(content)) + REST, tmp_path / "into", ArchiveFormatError, "first frame")
    fixed = bytearray(content)
    fixed[148:156] = b" " * 8
    fixed[148:156] = b"%06o\0 " % sum(fixed[:512])
    refused(frame(bytes(fixed)) + REST, tmp_path / "into", ArchiveFormatError)


# --- the folder ---------------------------------------------------------------------------------------------


def test_nothing_is_overwritten_or_followed(tmp_path: Path) -> None:
    into, outside = tmp_path / "into", tmp_path / "outside"
    into.mkdir()
    outside.mkdir()
    (into / "checkpoint.json").symlink_to(outside / "file")
    refused(packed(), into, AlreadyExistsError, "checkpoint.json exists already")
    (into / "checkpoint.json").unlink()
    (into / "transcript").symlink_to(outside)
    refused(packed(), into, InputNotFoundError, "transcript")
    assert list(outside.iterdir()) == []
    (into / "checkpoint.json").unlink()
    (into / "transcript").unlink()
    (into / "transcript").write_text("a file")
    refused(packed(), into, InputNotFoundError, "transcript")


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InputNotFoundError, match="gone") as caught:
        unpack(io.BytesIO(packed()), tmp_path / "gone", limits=Limits())
    assert caught.value.remedy


def test_a_full_disk_is_a_typed_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StoreFullError, match="No space left") as caught:
        unpacked(packed(), tmp_path / "into")
    assert str(tmp_path / "into") in (caught.value.remedy or "")


def test_many_folders_leave_nothing_open(tmp_path: Path) -> None:
    files = {f"{a}/{b}/{c}/file": b"x" for a in "ab" for b in "abc" for c in "abcdefgh"} | {
        "a.b/c": b"",
        "z": b"",
    }
    handles = Path("/proc/self/fd")
    if not handles.exists():
        pytest.skip("needs /proc to count open files")
    before = len(list(handles.iterdir()))
    unpacked(packed(files), tmp_path / "into")
    refused(packed(files)[:-30], tmp_path / "again", ArchiveFormatError)
    assert len(list(handles.iterdir())) == before
    assert tree(tmp_path / "into") == files


def test_an_error_of_the_source_comes_through(tmp_path: Path) -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise DigestMismatchError("the container is not authentic")

    with pytest.raises(DigestMismatchError, match="not authentic"):
        unpack(Failing(), tmp_path, limits=Limits())


def test_a_source_may_give_little_at_a_time(tmp_path: Path) -> None:
    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(min(7, size or 0))

    unpack(Slow(packed()), tmp_path, limits=Limits())
    assert tree(tmp_path) == FILES


def table(paths: Iterable[str]) -> bytes:
    """A manifest of empty members, made without the checks of the model."""
    empty = manifest_of({"empty": b""}).document()["members"][0]
    return changed_manifest(lambda document: document.update(members=[empty | {"path": p} for p in paths]))


def test_a_table_of_deep_paths_costs_little(tmp_path: Path) -> None:
    raw = table(f"{number:05d}" + "/a" * 500 for number in range(500))
    refused(archive_of([], raw), tmp_path / "into", ArchiveFormatError, "at most 16 components")
    assert list((tmp_path / "into").iterdir()) == []


def test_folders_count_like_members(tmp_path: Path) -> None:
    raw = table([f"{number}" + "/a" * 14 + "/b" for number in range(4)] + ["0/a/c", "0/d/e"])
    into = tmp_path / "into"
    with pytest.raises(LimitExceededError, match=f"{4 * 15 + 1} folders, the limit is 60"):
        unpacked(archive_of([], raw), into, Limits(members=60))
    with pytest.raises(ArchiveFormatError, match="frame 1"):  # the table itself is good
        unpacked(archive_of([], raw), into, Limits(members=61))
    assert list(into.iterdir()) == []


@pytest.mark.parametrize("filler", [b"{}", b"0", b"[]", b'""'])
def test_a_table_of_tiny_values_is_refused_unparsed(filler: bytes) -> None:
    raw = GOOD.replace(b'"members":[', b'"members":[' + b",".join([filler] * 700_000) + b",")
    with pytest.raises(ArchiveFormatError, match="more values than"):
        Manifest.parse(raw)


def test_a_large_table_may_have_paths_full_of_marks() -> None:
    files = {f"{number:05d}" + "{,[" * 80 + '"': b"" for number in range(3000)}
    raw = manifest_of(files).raw
    assert len(raw) > 2**20
    assert Manifest.parse(raw).raw == raw
