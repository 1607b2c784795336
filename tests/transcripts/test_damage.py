"""JSONL as it lies on disk: glued lines, torn and padded tails, garbage in the middle, keys given twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver import jsonio
from archiver.errors import ArchiverError, LimitExceededError, MalformedTranscriptError, RefusedError
from archiver.transcripts import get_dialect, jsontext, source
from archiver.transcripts.jsonl import JsonLines
from archiver.transcripts.reader import Dropped, pairs, read
from archiver.transcripts.source import FileSource
from archiver.transcripts.survey import survey
from transcripts.samples import claude_session, line_of

SESSION = [line_of(item) for item in claude_session(2, seed=7)]


def lines_of(path: Path, data: bytes, **options: Any) -> tuple[list[bytes], list[Dropped]]:
    path.write_bytes(data)
    reading = read([path], **options)
    found = [(line, value) for line, value in pairs(reading.transcript.parts[0].items)]
    for line, value in found:
        assert jsonio.loads(line) == value
    return [line for line, _ in found], reading.dropped


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def test_sound_lines_come_back_byte_for_byte(path: Path) -> None:
    data = b"\n".join(SESSION) + b"\n"
    assert lines_of(path, data) == (SESSION, [])
    assert lines_of(path, data[:-1]) == (SESSION, [])


def test_objects_on_one_line_are_both_read(path: Path) -> None:
    data = b"\n".join([SESSION[0] + SESSION[1] + b"  " + SESSION[2], *SESSION[3:]]) + b"\n"
    assert lines_of(path, data) == (SESSION, [])


def test_a_torn_tail_is_dropped_and_counted(path: Path) -> None:
    for cut in (1, 10, len(SESSION[-1]) - 1):
        data = b"\n".join(SESSION)[: -len(SESSION[-1]) + cut]
        found, dropped = lines_of(path, data)
        assert found == SESSION[:-1]
        assert [(one.place, one.bytes, one.line) for one in dropped] == [("tail", cut, len(SESSION))]
        assert dropped[0].part == "session.jsonl"


def test_a_torn_object_behind_a_whole_one(path: Path) -> None:
    data = b"\n".join(SESSION[:4]) + SESSION[4][:20]
    found, dropped = lines_of(path, data)
    assert found == SESSION[:4]
    assert [(one.place, one.bytes) for one in dropped] == [("tail", 20)]


@pytest.mark.parametrize("before", [b"", b"\n", b'{"type":"us'])
def test_a_padded_tail_is_dropped_and_counted(path: Path, before: bytes) -> None:
    padding = b"\0" * 4000 + b"\n" + b"\0" * 96
    found, dropped = lines_of(
        path, b"\n".join(SESSION) + b"\n" * (before == b'{"type":"us') + before + padding
    )
    assert found == SESSION
    assert [one.place for one in dropped] == ["tail"]
    assert dropped[0].bytes == len(padding) + len(before.strip())


def test_blank_lines_are_nothing(path: Path) -> None:
    assert lines_of(path, b"\n\n".join(SESSION) + b"\n \n\r\n") == (SESSION, [])


def test_carriage_returns_stay(path: Path) -> None:
    found, dropped = lines_of(path, b"\r\n".join(SESSION) + b"\r\n")
    assert found == [line + b"\r" for line in SESSION]
    assert dropped == []


@pytest.mark.parametrize(
    ("damage", "column"),
    [
        (b"\0" * 50, 1),
        (b"garbage", 1),
        (SESSION[2][:30], 30),
        (b'{"a":"\xff"}', 7),
        (b'{"a":"\x01"}', 7),
        (b'{"a":NaN}', 1),
        (SESSION[2] + b"}", len(SESSION[2].decode()) + 1),
    ],
)
def test_damage_before_the_end_names_line_and_column(path: Path, damage: bytes, column: int) -> None:
    path.write_bytes(b"\n".join([*SESSION[:2], damage, *SESSION[3:]]))
    items = read([path]).transcript.parts[0].items
    seen = 0
    with pytest.raises(MalformedTranscriptError) as caught:
        for _ in pairs(items):
            seen += 1
    assert seen == 2 + damage.startswith(SESSION[2])  # whole objects ahead of the damage are read
    assert caught.value.line == 3
    if not damage.startswith(SESSION[2][:30]) or damage.endswith(b"}"):
        assert caught.value.column == column
    assert "session.jsonl" in str(caught.value)
    assert "--salvage" in str(caught.value.remedy)


def salvaged(path: Path, damage: bytes) -> tuple[list[bytes], int]:
    found, dropped = lines_of(path, b"\n".join([*SESSION[:2], damage, *SESSION[3:]]), salvage=True)
    assert found[:2] == SESSION[:2]
    assert found[-(len(SESSION) - 3) :] == SESSION[3:]
    assert [(one.place, one.line) for one in dropped] == [("middle", 3)]
    return found[2 : -(len(SESSION) - 3)], dropped[0].bytes


def test_salvage_drops_what_cannot_be_read(path: Path) -> None:
    line = SESSION[2]
    assert salvaged(path, b"garbage") == ([], 7)
    assert salvaged(path, line[:30]) == ([], 30)
    assert salvaged(path, b"\0" * 50 + line) == ([line], 50)
    assert salvaged(path, line + b"garbage") == ([line], 7)
    assert salvaged(path, b"garbage" + line) == ([line], 7)
    assert salvaged(path, line.replace(b'"external"', b'"ext\xffernal"')) == ([line], 1)


@pytest.mark.parametrize("cut", range(1, len(SESSION[4]), 37))
def test_salvage_finds_the_line_glued_to_a_torn_one(path: Path, cut: int) -> None:
    found, lost = salvaged(path, SESSION[4][:cut] + SESSION[2])
    # A tear right behind a colon makes the next line look like its value; then both are lost.
    assert (found, lost) in (([SESSION[2]], cut), ([], cut + len(SESSION[2])))


def test_salvage_takes_no_inner_piece_for_an_item(path: Path) -> None:
    whole = b'{"type":"user","message":{"role":"user","content":"x"},"uuid":"u"}'
    assert salvaged(path, whole[: whole.index(b',"uuid"')])[0] == []
    assert salvaged(path, whole[20:])[0] == []


@pytest.mark.parametrize("damage", [b'{"' * 200_000, b'{"a":1}{"' * 100_000, b'[{"a":1' * 100_000])
def test_salvage_gives_up_a_line_that_starts_again_and_again(path: Path, damage: bytes) -> None:
    found, lost = salvaged(path, damage)
    assert sum(map(len, found)) + lost == len(damage)
    assert lost > len(damage) - 100


def test_objects_on_one_line_are_read_one_by_one(path: Path) -> None:
    path.write_bytes(b'{"type":"user"}' * 3 + b"{")
    found = iter(JsonLines(FileSource.of(path), "f", 1 << 20).pairs())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsontext, "checked", lambda line, value: line)
        assert next(found)[0] == b'{"type":"user"}'
        patch.setattr(jsontext, "checked", lambda line, value: b"later")
        assert [line for line, _ in found] == [b"later"] * 2


def test_sound_lines_are_no_damage(path: Path) -> None:
    head = b'{"type":"user","sessionId":"s","message":{"role":"user","content":"x"},"x":'
    odd = [head + b"7" * 5000 + b"}", head + b"[" * 1100 + b"]" * 1100 + b"}", head + b"1e999}"]
    for line in odd:
        path.write_bytes(b"\n".join([*SESSION, line]))
        reading = read([path])
        assert list(reading.transcript.parts[0].items.lines()) == [*SESSION, line]
        assert reading.dropped == []
        path.write_bytes(b"\n".join([*SESSION, SESSION[1] + line]))
        assert list(read([path]).transcript.parts[0].items.lines())[-1] == line


def test_a_file_that_grows_or_shrinks_meanwhile(path: Path) -> None:
    path.write_bytes(b"\n".join(SESSION[:5]) + b"\n")
    reading = read([path])
    items = reading.transcript.parts[0].items
    with path.open("ab") as file:
        file.write(SESSION[5] + b"\n")
    assert list(items.lines()) == SESSION[:5]
    path.write_bytes(b"\n".join(SESSION[:3])[:-5])
    assert list(items.lines()) == SESSION[:2]
    assert [one.place for one in reading.dropped] == ["tail"]
    other = path.with_name("other")
    other.write_bytes(b"\n".join(SESSION[:5]) + b"\n")
    other.replace(path)
    with pytest.raises(RefusedError, match="replaced"):
        list(items.lines())


def test_every_pass_reports_its_own_losses_once(path: Path) -> None:
    path.write_bytes(b"\n".join(SESSION)[:-5])
    reading = read([path])
    for _ in range(3):
        list(reading.transcript.parts[0].items.blocks())
    assert len(reading.dropped) == 1


def test_a_line_over_the_limit_is_named(path: Path) -> None:
    path.write_bytes(b"\n".join([*SESSION[:2], line_of({"type": "system", "x": "y" * 5000}), *SESSION[2:]]))
    items = read([path], max_item=4000).transcript.parts[0].items
    with pytest.raises(LimitExceededError, match=r"line 3 of session\.jsonl"):
        list(items.lines())


def test_the_limit_of_a_line_holds_where_nothing_else_is_asked_for(path: Path) -> None:
    path.write_bytes(SESSION[0] + b"\n" + line_of({"type": "system", "x": "y" * (16 << 20)}))
    with pytest.raises(LimitExceededError, match="line 2 ") as caught:
        list(read([path]).transcript.parts[0].items.lines())
    assert "copy" in str(caught.value.remedy)


def test_lone_surrogates_and_long_numbers_stay(path: Path) -> None:
    odd = rb'{"type":"user","uuid":"\ud800","n":123456789012345678901234567890,"sessionId":"s"}'
    found, dropped = lines_of(path, b"\n".join([SESSION[0], odd, *SESSION[1:]]))
    assert found[1] == odd
    assert dropped == []


TEXTS = st.text(max_size=20) | st.sampled_from(['":', '\\":', "\\", '"', "a", '\\"', '": ', '","'])
NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(JSON, st.booleans(), st.sampled_from([None, (",", ":"), (" , ", " : ")]))
@settings(max_examples=300, deadline=None)
def test_texts_without_doubled_keys_stay_byte_for_byte(value: Any, ascii_only: bool, separators: Any) -> None:
    line = json.dumps(value, ensure_ascii=ascii_only, separators=separators).encode("utf-8", "surrogatepass")
    try:
        parsed = json.loads(line)
    except UnicodeDecodeError:  # a lone surrogate that was not escaped
        return
    assert jsontext.checked(line, parsed) == line
    assert (
        jsontext.compact(line, parsed)
        == json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":")).encode()
    )


@given(st.lists(st.binary(max_size=40) | st.sampled_from(SESSION[:3]), max_size=12), st.integers(1, 50))
@settings(max_examples=150, deadline=None)
def test_no_bytes_raise_anything_but_typed_errors(
    tmp_path_factory: Any, parts: list[bytes], chunk: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz"
    path.write_bytes(b"\n".join(parts))
    for salvage in (False, True):
        lines = JsonLines(FileSource.of(path), "f", 1 << 20, salvage)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(source, "CHUNK", chunk)
            try:
                found = list(lines.pairs())
            except MalformedTranscriptError:
                assert not salvage
                continue
        kept = sum(len(line) for line, _ in found)
        lost = sum(one.bytes for one in lines.dropped)
        assert kept + lost <= path.stat().st_size + 1
    try:
        for part in read([path], salvage=True).transcript.parts:
            list(part.items.lines())
    except ArchiverError:
        pytest.fail("salvage reads everything")


@pytest.mark.parametrize("depth", [200, 400, 990, 1100, 5000, 100_000])
def test_lines_nested_deeply_are_read(path: Path, depth: int) -> None:
    nested = b"[" * depth + b"]" * depth
    deep = b'{"type":"user","message":{"role":"user","content":' + nested + b'},"uuid":"u"}'
    path.write_bytes(b"\n".join([*SESSION[:3], deep, *SESSION[3:]]))
    reading = read([path])
    dialect = get_dialect(reading.transcript.dialect)
    found = survey(reading.transcript.parts[0].items, dialect)
    assert found.items == len(SESSION) + 1
    dialect.problems(reading.transcript.parts[0].items.values())


@pytest.mark.parametrize("chunk", [1, 7, 100, 4096])
def test_block_borders_do_not_matter(path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"\n".join([SESSION[0] + SESSION[1], *SESSION[2:]]))
    monkeypatch.setattr(source, "CHUNK", chunk)
    lines = JsonLines(FileSource.of(path), "f", 1 << 20)
    assert [line for line, _ in lines.pairs()] == SESSION
