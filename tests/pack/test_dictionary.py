"""What an increment is compressed behind: made of the tables alone, and refused where it is another."""

from __future__ import annotations

import hashlib
import io
import random
from pathlib import Path
from typing import Any

import pytest

from archiver.errors import ArchiveFormatError, ArchiverError
from archiver.model.limits import Limits
from archiver.model.manifest import MOST_DICTIONARY, Manifest
from archiver.model.member import Member
from archiver.pack import First, demand_chain, dictionary, tar, unpack, unpack_parts, whole
from archiver.pack.frames import CONTENT, Codec
from pack.test_increments import Line, name_of, table

WORDS = random.Random(3)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def turn(number: int) -> bytes:
    """A segment of a conversation, of a few kilobytes."""
    return b"".join(b'{"content":"%x %d"}\n' % (WORDS.getrandbits(400), number) for _ in range(30))


def grown(line: Line, count: int) -> dict[str, bytes]:
    """So many checkpoints of a run that grows."""
    files: dict[str, bytes] = {}
    for number in range(1, count + 1):
        files[f"transcript/{number:04d}.jsonl"] = turn(number)
        files["checkpoint.json"] = b'{"turn":%d}' % number
        line.save(files)
    return files


def test_what_the_base_says_is_not_said_again(tmp_path: Path) -> None:
    line = Line()
    files = {"transcript/0001.jsonl": turn(1), "checkpoint.json": b"{}"}
    line.save(files)
    line.save(files | {"transcript/0002.jsonl": files["transcript/0001.jsonl"][:-60] + b"\n"})
    assert len(line.bundles[1][1]) < 700
    assert line.manifests[1].format == 3
    assert len(line.restore(tmp_path / "into")) == 3


def test_a_chain_of_dictionaries_comes_back(tmp_path: Path) -> None:
    line = Line()
    files = grown(line, 9)
    assert [manifest.format for manifest in line.manifests] == [1] + [3] * 8
    assert line.restore(tmp_path / "into") == files


def test_texts_that_are_gone_are_still_needed(tmp_path: Path) -> None:
    line = Line()
    files = grown(line, 3)
    del files["transcript/0001.jsonl"]
    files["transcript/0002.jsonl"] = turn(7)
    line.save(files)
    assert line.restore(tmp_path / "into") == files


def test_the_order_is_that_of_the_paths_and_the_state_comes_last() -> None:
    names = ("checkpoint.json", "transcript/0002.jsonl", "receipt.json", "a", "transcript/0001.jsonl")
    members = [Member(name, name.encode(), len(name), sha256(name.encode())) for name in names]
    expected = b"transcript/0001.jsonltranscript/0002.jsonlreceipt.jsoncheckpoint.json"
    assert dictionary.of(members) == expected


def test_only_the_end_of_much_text(tmp_path: Path) -> None:
    line = Line()
    files = {
        f"transcript/{number:04d}.jsonl": random.Random(number).randbytes(300_000) for number in range(4)
    }
    line.save(files)
    line.save(files | {"new": files["transcript/0003.jsonl"][:200_000]})
    line.save(files | {"new": files["transcript/0000.jsonl"][:200_000]})
    assert [manifest.dictionary for manifest in line.manifests] == [None, MOST_DICTIONARY, MOST_DICTIONARY]
    assert len(line.bundles[1][1]) < 2_000
    assert len(line.bundles[2][1]) > 190_000
    assert line.restore(tmp_path / "into") == files | {"new": files["transcript/0000.jsonl"][:200_000]}


def test_text_that_begins_like_a_dictionary_of_zstd(tmp_path: Path) -> None:
    line = Line()
    files = {"checkpoint.json": b"\x37\xa4\x30\xec" + turn(1)}
    line.save(files)
    files = {**files, "new": turn(2)}
    line.save(files)
    assert line.manifests[1].format == 3
    assert line.restore(tmp_path / "into") == files


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"a": b"1"}, {"a": b"2"}),
        ({"transcript/1": b""}, {"transcript/1": b"", "a": b"2"}),
        ({"transcript/1": b"text"}, {"transcript/1": b"text"}),
        ({"transcript/1": b"text"}, {"transcript/1": b"text", "a": b""}),
        ({"transcript/1": b"text"}, {"transcript/1": b"text", "a": bytes(97)}),
        ({"transcript/1": bytes(CONTENT)}, {"transcript/1": bytes(CONTENT), "a": bytes(CONTENT)}),
    ],
    ids=["no text", "empty text", "nothing new", "an empty file", "much behind little", "more than a frame"],
)
def test_where_there_is_none(first: dict[str, bytes], second: dict[str, bytes], tmp_path: Path) -> None:
    line = Line()
    line.save(first)
    assert line.save(second).format == 2
    assert line.restore(tmp_path / "into") == second


@pytest.mark.parametrize("size", [0, 1, MOST_DICTIONARY, MOST_DICTIONARY + 1, 5 * MOST_DICTIONARY // 2])
@pytest.mark.parametrize("piece", [70_000, 2 * MOST_DICTIONARY])
def test_the_end_of_a_text_that_comes_in_pieces(size: int, piece: int) -> None:
    text, end = random.Random(size).randbytes(size), dictionary.End()
    for place in range(0, size, piece):
        end.write(memoryview(text)[place : place + piece])
    assert end.data == text[-MOST_DICTIONARY:]


def test_a_text_that_cannot_be_read_any_more_is_done_without(tmp_path: Path) -> None:
    file = tmp_path / "segment"
    file.write_bytes(b"text")
    good = Member("transcript/0001.jsonl", file, 4, sha256(b"text"))
    assert dictionary.of([good]) == b"text"
    file.write_bytes(b"TEXT")
    assert dictionary.of([good]) == b""
    file.unlink()
    assert dictionary.of([good]) == b""


# --- what somebody else might write -------------------------------------------------------------------------


@pytest.fixture
def line() -> Line:
    made = Line()
    grown(made, 2)
    return made


@pytest.mark.parametrize("text", [b"", b"x", None], ids=["none", "shorter", "not asked for"])
def test_a_dictionary_of_another_length_is_refused(line: Line, text: bytes | None, tmp_path: Path) -> None:
    lend = None if text is None else lambda _: text
    with pytest.raises(ArchiveFormatError, match="needs a dictionary"):
        unpack(io.BytesIO(line.bundles[1][1]), tmp_path / "into", limits=Limits(), lend=lend)


def test_another_dictionary_of_that_length_gives_nothing(line: Line, tmp_path: Path) -> None:
    (tmp_path / "into").mkdir()
    with pytest.raises(ArchiverError):
        unpack(
            io.BytesIO(line.bundles[1][1]),
            tmp_path / "into",
            limits=Limits(),
            lend=lambda manifest: bytes(manifest.dictionary or 0),
        )


@pytest.mark.parametrize("size", [1, 11, MOST_DICTIONARY])
def test_a_length_that_the_base_does_not_give_is_refused(line: Line, size: int) -> None:
    lying = line.manifests[1].model_copy(update={"dictionary": size})
    chain = [line.named()[0], (name_of(2), lying)]
    for work in (whole, demand_chain):
        with pytest.raises(ArchiveFormatError, match="dictionary of"):
            work(chain, Limits())


def test_a_dictionary_before_more_than_one_frame_is_refused(tmp_path: Path) -> None:
    large = Line()
    large.save({"transcript/1": b"text"})
    fields = large.save({"transcript/1": b"text", "a": bytes(CONTENT)}).model_dump()
    manifest = Manifest.model_validate(fields | {"format": 3, "dictionary": 4})
    with pytest.raises(ArchiveFormatError, match="more than one frame"):
        unpack_parts(First(manifest, 0, 1), (1, 1), lambda _: io.BytesIO(), tmp_path, only={"a"})
    frame = Codec().encode(tar.manifest_entry(manifest.raw, 0))
    with pytest.raises(ArchiveFormatError, match="more than one frame"):
        unpack(io.BytesIO(frame), tmp_path, limits=Limits(), lend=lambda _: b"text")


BASE = {"bundle": name_of(1), "sha256": "0" * 64}


@pytest.mark.parametrize(
    "fields",
    [
        {"format": 3, "base": BASE},
        {"format": 3, "base": BASE, "dictionary": 0},
        {"format": 3, "base": BASE, "dictionary": MOST_DICTIONARY + 1},
        {"format": 2, "base": BASE, "dictionary": 4},
        {"format": 3, "dictionary": 4},
        {"format": 1, "dictionary": 4},
    ],
)
def test_manifests_that_no_writer_makes(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        table(2, "here", **fields)


def test_format_2_does_not_have_the_field() -> None:
    raw = table(2, "here", format=2, base=BASE).raw.replace(b'"dropped":', b'"dictionary":null,"dropped":')
    with pytest.raises(ArchiveFormatError, match="one form"):
        Manifest.parse(raw)
