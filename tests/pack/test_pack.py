"""What goes in comes out, by this program and by `zstd -d | tar x`."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.errors import (
    ArchiveFormatError,
    DigestMismatchError,
    InputNotFoundError,
    InvalidNameError,
    LimitExceededError,
)
from archiver.model import Member, Receipt
from archiver.model.limits import MAX_MANIFEST, Limits
from archiver.model.manifest import MANIFEST, Manifest, ManifestHead
from archiver.pack import pack, read_manifest, tar, writer
from archiver.pack.frames import CONTENT
from archiver.redacted import vouch

from .archives import FILES, HEAD, contents, member, packed, redacted, tree, unpacked

_PART = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=40
).filter(lambda part: part not in {".", ".."} and not set(part) & set("/\\") and len(part.encode()) <= 255)
_PATHS = (
    st.lists(_PART, min_size=1, max_size=6)
    .map("/".join)
    .filter(lambda path: path.split("/")[0] != MANIFEST and len(path.encode()) <= 1024)
)


@st.composite
def file_sets(draw: st.DrawFn) -> dict[str, bytes]:
    """Files whose paths are not each other's folders."""
    files: dict[str, bytes] = {}
    for path in draw(st.lists(_PATHS, max_size=8, unique=True)):
        if not any(
            f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/") for other in files
        ):
            files[path] = draw(st.binary(max_size=1500))
    return files


@settings(max_examples=40, deadline=None)
@given(file_sets(), st.integers(0, 8**11 - 1))
def test_files_come_back_as_they_were(files: dict[str, bytes], mtime: int) -> None:
    archive = packed(files, head=HEAD.model_copy(update={"mtime": mtime}))
    with tempfile.TemporaryDirectory() as folder:
        manifest = unpacked(archive, Path(folder))
        assert tree(Path(folder)) == files
    assert [entry.path for entry in manifest.members] == list(files)
    assert read_manifest(io.BytesIO(archive), limits=Limits()) == manifest


@settings(max_examples=40, deadline=None)
@given(file_sets(), st.integers(0, 8**11 - 1))
def test_other_tools_read_the_same(files: dict[str, bytes], mtime: int) -> None:
    stream = b"".join(contents(packed(files, head=HEAD.model_copy(update={"mtime": mtime}))))
    with tarfile.open(fileobj=io.BytesIO(stream)) as reader:
        found = {info.name: reader.extractfile(info) for info in reader}
        read = {name: file.read() for name, file in found.items() if file is not None}
        assert all((i.isreg(), i.mode, i.mtime, i.uid, i.gid, i.uname, i.gname) == (
            True, 0o644, mtime, 0, 0, "", "") for i in reader.getmembers())  # fmt: skip
    assert list(read) == [MANIFEST, *files]
    assert Manifest.parse(read.pop(MANIFEST)).run == "run"
    assert read == files


@pytest.mark.skipif(not (shutil.which("zstd") and shutil.which("tar")), reason="zstd or tar is not installed")
def test_the_command_line_reads_it(tmp_path: Path) -> None:
    files = {
        **FILES,
        "ä" * 90: b"x",
        ("long" * 10 + "/") * 5 + "file": b"y" * 600,
        "large": os.urandom(CONTENT),
    }
    (tmp_path / "archive.tar.zst").write_bytes(packed(files))
    done = subprocess.run(
        ["sh", "-c", "zstd -dc archive.tar.zst | tar x"], cwd=tmp_path, capture_output=True, check=True
    )
    assert done.stderr == b""
    found = tree(tmp_path)
    assert found.pop(MANIFEST)
    assert found.pop("archive.tar.zst")
    assert found == files


def test_frames_are_those_of_the_format() -> None:
    files = {"large": os.urandom(2 * CONTENT), "small": b"x"}
    archive = packed(files)
    first, *rest = contents(archive)
    manifest = Manifest.parse(first[512:].rstrip(b"\0"))
    assert first == tar.manifest_entry(manifest.raw, HEAD.mtime)
    assert [len(content) for content in rest] == [CONTENT, CONTENT, 512 + 512 + 512 + 1024]
    assert rest[-1].endswith(bytes(1024 + 511))
    place = 0
    for content in (first, *rest):
        known = zstandard.get_frame_parameters(archive[place:])
        assert (known.content_size, known.has_checksum, known.dict_id) == (len(content), True, 0)
        decoder = zstandard.ZstdDecompressor().decompressobj()
        decoder.decompress(archive[place:])
        place = len(archive) - len(decoder.unused_data)


def test_the_manifest_says_what_the_bundle_is() -> None:
    raw = contents(packed({"a": b"xy"}))[0][512:].rstrip(b"\0")
    digest = hashlib.sha256(b"xy").hexdigest()
    assert raw.decode() == (
        '{"format":1,"members":[{"bundle":null,"mode":420,"path":"a","sha256":"'
        + digest
        + '","size":2}],"redaction_key":"c2VjcmV0","run":"run","schema_version":2,"seq":7}'
    )


class Counted(io.BytesIO):
    """Counts what is read."""

    taken = 0

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self.taken += len(data)
        return data


def test_the_manifest_needs_the_first_frame_only() -> None:
    archive = packed({"large": os.urandom(CONTENT)})
    source = Counted(archive)
    manifest = read_manifest(source, limits=Limits())
    assert source.taken <= 2**16
    first = length_of_first(archive)
    assert first < 1000
    assert read_manifest(io.BytesIO(archive[:first]), limits=Limits()) == manifest
    with pytest.raises(ArchiveFormatError):
        read_manifest(io.BytesIO(archive[: first - 1]), limits=Limits())


def length_of_first(archive: bytes) -> int:
    decoder = zstandard.ZstdDecompressor().decompressobj()
    decoder.decompress(archive)
    return len(archive) - len(decoder.unused_data)


def test_threads_change_nothing_but_the_time(tmp_path: Path) -> None:
    files = {f"{number}": os.urandom(3_000_000) + bytes(2_000_000) for number in range(9)}
    one = packed(files, threads=1)
    assert packed(files, threads=2) == one
    assert packed(files, threads=5) == one
    unpacked(one, tmp_path / "into")
    assert tree(tmp_path / "into") == files


@pytest.mark.parametrize("into_frame", [512, 1024, 1536])
def test_a_header_may_lie_in_two_frames(tmp_path: Path, into_frame: int) -> None:
    files = {
        "a": os.urandom(CONTENT - 512 - into_frame),
        ("long" * 10 + "/") * 4 + "b": os.urandom(2 * CONTENT),
    }
    unpacked(packed(files), tmp_path / "into")
    assert tree(tmp_path / "into") == files


def test_only_so_many_frames_wait_to_be_compressed(monkeypatch: pytest.MonkeyPatch) -> None:
    real, steps, lead = compressed_by(zstandard.ZstdCompressor), Steps(), []
    written: list[bytes] = []

    def slow(content: bytes) -> bytes:
        time.sleep(0.02)
        lead.append(steps.done - (len(written) - 1) * CONTENT)
        return real(content)

    monkeypatch.setattr(zstandard, "ZstdCompressor", lambda **options: Faulty(slow))
    members = redacted({str(number): bytes(CONTENT) for number in range(12)})
    pack(members, HEAD, written.append, limits=Limits(), threads=2, progress=steps)
    assert CONTENT < max(lead) <= 5 * CONTENT


def test_members_may_lie_in_files(tmp_path: Path) -> None:
    data = os.urandom(CONTENT + 12_345)
    (tmp_path / "spool").write_bytes(data)
    lying = Member("a/b", tmp_path / "spool", len(data), hashlib.sha256(data).hexdigest(), mode=0o755)
    out = io.BytesIO()
    steps = Steps()
    result = pack(vouch((lying,), Receipt()), HEAD, out.write, limits=Limits(), progress=steps)
    assert steps.done == len(data)
    assert (result.unpacked, result.packed) == (len(data), len(out.getvalue()))
    manifest = unpacked(out.getvalue(), tmp_path / "into")
    assert (manifest.sha256, manifest.members[0].mode) == (result.manifest_sha256, 0o755)
    assert (tmp_path / "into/a/b").read_bytes() == data
    assert stat.S_IMODE((tmp_path / "into/a/b").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "into/a").stat().st_mode) == 0o700


class Steps:
    """Adds up progress."""

    done = 0

    def stage(self, name: str, total: int | None = None) -> None:
        raise AssertionError("the caller names the stages")

    def advance(self, count: int) -> None:
        self.done += count


class Payload:
    payload_sha256 = "0" * 64
    payload_length = 99


def test_what_the_record_says_of_it() -> None:
    result = pack(redacted(FILES), HEAD, lambda data: None, limits=Limits())
    ref = result.ref("bundles/run/00000007-0123456789abcdef.tar.zst.age", Payload())
    assert (ref.members, ref.unpacked, ref.payload_length) == (3, sum(map(len, FILES.values())), 99)
    assert ref.manifest_sha256 == result.manifest.sha256
    assert hashlib.sha256(result.manifest.raw).hexdigest() == ref.manifest_sha256


def test_only_what_redaction_made_is_packed() -> None:
    with pytest.raises(TypeError, match="redaction"):
        pack((member("a", b"x"),), HEAD, lambda data: None, limits=Limits())  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize(
    "path",
    ["", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a\\b", "a\0", "a\nb", "\x7f", "\x9b", "\ud800",
     "x" * 256, "ä" * 128, "a/" * 512 + "a", "a/" * 16 + "a", MANIFEST, f"{MANIFEST}/x"],
)  # fmt: skip
def test_paths_that_are_refused(path: str) -> None:
    written: list[bytes] = []
    with pytest.raises(InvalidNameError):
        pack(redacted({path: b""}), HEAD, written.append, limits=Limits())
    assert written == []


@pytest.mark.parametrize("paths", [("a", "a"), ("a/b", "a"), ("a", "a/b/c")])
def test_paths_that_do_not_go_together(paths: tuple[str, ...]) -> None:
    members = vouch(tuple(member(path, b"") for path in paths), Receipt())
    with pytest.raises(InvalidNameError, match=r"'a'|same path"):
        pack(members, HEAD, lambda data: None, limits=Limits())


def test_a_mode_beyond_permissions_is_refused() -> None:
    with pytest.raises(InvalidNameError):
        pack(vouch((member("a", b"", 0o4755),), Receipt()), HEAD, lambda data: None, limits=Limits())


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (Limits(member=9), r"member big .* 10 bytes.* 9"),
        (Limits(bundle=14), r"member last .* 15 bytes.* 14"),
        (Limits(members=2), r"3 members.* 2"),
    ],
)
def test_limits_when_it_is_written_and_read(limits: Limits, said: str, tmp_path: Path) -> None:
    files = {"small": b"abc", "big": b"0123456789", "last": b"zz"}
    written: list[bytes] = []
    for call in (
        lambda: pack(redacted(files), HEAD, written.append, limits=limits),
        lambda: unpacked(packed(files), tmp_path / "into", limits),
        lambda: read_manifest(io.BytesIO(packed(files)), limits=limits),
    ):
        with pytest.raises(LimitExceededError, match=said) as caught:
            call()
        assert caught.value.remedy
    assert written == []
    assert list((tmp_path / "into").iterdir()) == []
    unpacked(packed(files), tmp_path / "exact", Limits(member=10, bundle=15, members=3))


def test_the_limit_of_a_run_is_the_callers() -> None:
    Limits(run=10).check_run("r", 10)
    with pytest.raises(LimitExceededError, match=r"run r would have 11 bytes.* 10"):
        Limits(run=10).check_run("r", 11)


def test_a_manifest_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "MAX_MANIFEST", 300)
    with pytest.raises(LimitExceededError, match=MANIFEST):
        pack(redacted({"a" * 200: b""}), HEAD, lambda data: None, limits=Limits())
    assert MAX_MANIFEST == 64 * 2**20


def test_a_member_that_is_not_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    digest = hashlib.sha256(b"12345").hexdigest()
    lying = [Member("m", path, 5, digest), Member("m", b"12346", 5, digest), Member("m", b"1234", 5, digest)]
    for content, source in [*((data, lying[0]) for data in (b"1234", b"123456", b"12346", b"")), *(
        (b"", wrong) for wrong in lying[1:]
    )]:  # fmt: skip
        path.write_bytes(content)
        with pytest.raises(DigestMismatchError, match="member m"):
            pack(vouch((source,), Receipt()), HEAD, lambda data: None, limits=Limits())
    path.unlink()
    with pytest.raises(InputNotFoundError, match="member m"):
        pack(vouch((lying[0],), Receipt()), HEAD, lambda data: None, limits=Limits())


class Faulty:
    """A compressor whose frames are not what they should be."""

    def __init__(self, compress: Callable[[bytes], bytes]) -> None:
        self.compress = compress


def compressed_by(maker: type[zstandard.ZstdCompressor]) -> Callable[[bytes], bytes]:
    """A new compressor for every frame: one cannot serve two threads."""
    return lambda content: maker(write_checksum=True).compress(content)


def flipped(content: bytes) -> bytes:
    return bytes(content[:-1]) + bytes([content[-1] ^ 1])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("fault", ["other", "longer", "shorter", "nothing", "damaged"])
def test_a_frame_that_does_not_decode_to_its_content_is_never_written(
    monkeypatch: pytest.MonkeyPatch, threads: int, fault: str
) -> None:
    real = compressed_by(zstandard.ZstdCompressor)
    faults: dict[str, Callable[[bytes], bytes]] = {
        "other": lambda content: real(flipped(content)),
        "longer": lambda content: real(content + b"x"),
        "shorter": lambda content: real(content[:-1]),
        "nothing": lambda content: b"",
        "damaged": lambda content: flipped(real(content)),
    }
    monkeypatch.setattr(zstandard, "ZstdCompressor", lambda **options: Faulty(faults[fault]))
    written: list[bytes] = []
    with pytest.raises(ArchiveFormatError) as caught:
        pack(redacted(FILES), HEAD, written.append, limits=Limits(), threads=threads)
    assert caught.value.remedy
    assert written == []


@pytest.mark.parametrize("threads", [1, 2])
def test_no_frame_is_written_after_one_that_failed(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    real = compressed_by(zstandard.ZstdCompressor)

    def compress(content: bytes) -> bytes:
        return real(flipped(content) if content[0] == 2 else content)

    monkeypatch.setattr(zstandard, "ZstdCompressor", lambda **options: Faulty(compress))
    data = b"".join(bytes([number]) * CONTENT for number in range(6))
    written: list[bytes] = []
    with pytest.raises(ArchiveFormatError):
        pack(
            redacted({"data": data[512:]}), HEAD, written.append, limits=Limits(bundle=2**30), threads=threads
        )
    assert len(written) == 1 + 2


def test_an_error_of_the_receiver_comes_through() -> None:
    def full(data: bytes) -> None:
        raise InputNotFoundError("no room")

    with pytest.raises(InputNotFoundError, match="no room"):
        pack(redacted({"a": os.urandom(CONTENT * 3)}), HEAD, full, limits=Limits(), threads=2)


_MEMORY = """
import hashlib, os, resource, sys
from pathlib import Path
from archiver.model import Member, Receipt
from archiver.model.limits import Limits
from archiver.model.manifest import ManifestHead
from archiver.pack import pack, unpack
from archiver.redacted import vouch
folder, size = Path(sys.argv[1]), 60 << 20
block = os.urandom(1 << 20)
digest = hashlib.sha256(block * 60).hexdigest()
with (folder / "spool").open("wb") as spool:
    for _ in range(60):
        spool.write(block)
members = tuple(Member(str(n), folder / "spool", size, digest) for n in range(4))
head = ManifestHead(run="r", seq=1, schema_version=2, redaction_key="")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with (folder / "archive").open("wb") as archive:
    pack(vouch(members, Receipt()), head, archive.write, limits=Limits(), threads=2)
(folder / "into").mkdir()
with (folder / "archive").open("rb") as archive:
    unpack(archive, folder / "into", limits=Limits())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_does_not_grow_with_the_archive(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _MEMORY, tmp_path], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert int(done.stdout) < 100 << 10, "kilobytes above what the program itself takes"


def test_a_head_is_checked() -> None:
    for wrong in ({"run": ""}, {"seq": 0}, {"redaction_key": "not base64"}, {"mtime": -1}, {"run": "\ud800"}):
        with pytest.raises(ValueError, match="validation error"):
            ManifestHead(**{**HEAD.model_dump(), **wrong})
