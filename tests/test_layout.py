"""Names: what the makers make is parsed back exactly, and nothing else is parsed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver import layout
from archiver.errors import DamagedError, InvalidNameError, UnsupportedSchemaError
from archiver.layout import ParsedName

_LETTERS = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"))
_RUNS = st.text(_LETTERS, min_size=1, max_size=16)
_SEQS = st.integers(1, layout.MAX_SEQ)
_HEX16 = st.text("0123456789abcdef", min_size=16, max_size=16)
_HEX32 = st.text("0123456789abcdef", min_size=32, max_size=32)
_MOMENTS = st.integers(0, 10**13 - 1).map(
    lambda ms: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
)
_STORE = "0123456789abcdef" * 2

NAMES = st.one_of(
    st.just(layout.STORE),
    st.builds(layout.record_name, _RUNS, _SEQS),
    st.builds(layout.bundle_name, _RUNS, _SEQS, _HEX16),
    st.builds(layout.effect_name, _RUNS, _HEX32),
    st.builds(layout.note_name, _MOMENTS, _RUNS, _HEX16),
    st.builds(layout.audit_name, _MOMENTS, _RUNS, _HEX16),
    st.builds(layout.index_name, _MOMENTS, _RUNS, _SEQS),
)


def made_from(name: ParsedName) -> str:
    """The name that the makers make of what was parsed."""
    match name:
        case ParsedName(kind="record", run=str(run), seq=int(seq)):
            return layout.record_name(run, seq)
        case ParsedName(kind="bundle", run=str(run), seq=int(seq), random=str(random)):
            return layout.bundle_name(run, seq, random)
        case ParsedName(kind="effect", run=str(run), effect=str(effect)):
            return layout.effect_name(run, effect)
        case ParsedName(kind="note", run=str(run), random=str(random), at=datetime() as at):
            return layout.note_name(at, run, random)
        case ParsedName(kind="audit", run=str(run), random=str(random), at=datetime() as at):
            return layout.audit_name(at, run, random)
        case ParsedName(kind="index", run=str(run), seq=int(seq), at=datetime() as at):
            return layout.index_name(at, run, seq)
    return layout.STORE


@pytest.mark.parametrize(
    ("run", "encoded"),
    [
        ("run-7", "run-7"),
        ("Run_7.b", "Run_7.b"),
        (".", "~2E"),
        ("..", "~2E."),
        ("-x", "~2Dx"),
        ("a/b", "a~2Fb"),
        ("~41", "~7E41"),
        ("a b", "a~20b"),
        ("läuft", "l~C3~A4uft"),
        ("\U0001f680", "~F0~9F~9A~80"),
    ],
)
def test_a_run_id_is_one_component(run: str, encoded: str) -> None:
    assert layout.encode_run(run) == encoded
    assert layout.decode_run(encoded) == run


def test_names_are_those_of_the_format() -> None:
    at = datetime(2026, 1, 31, 14, 0, 0, 123_999, tzinfo=timezone(timedelta(hours=1)))
    assert layout.record_name("r", 7) == "records/r/00000007.age"
    assert layout.bundle_name("r", 7, "00ff" * 4) == "bundles/r/00000007-00ff00ff00ff00ff.tar.zst.age"
    assert layout.effect_name("r", "ab" * 16) == f"effects/r/{'ab' * 16}.age"
    assert layout.note_name(at, "r", "00ff" * 4) == "notes/r/8230135599876-00ff00ff00ff00ff.age"
    assert layout.audit_name(at, "r", "00ff" * 4) == "audit/r/8230135599876-00ff00ff00ff00ff.age"
    assert layout.index_name(at, "a-b", 7) == "index/8230135599876-a-b-00000007"
    assert layout.parse("index/8230135599876-a-b-00000007") == ParsedName(
        "index", "a-b", 7, at=datetime(2026, 1, 31, 13, 0, 0, 123_000, tzinfo=UTC)
    )


@given(_RUNS, _SEQS, _HEX16, _HEX32, _MOMENTS)
def test_parse_gives_back_what_was_made(run: str, seq: int, random: str, effect: str, at: datetime) -> None:
    assert layout.parse(layout.record_name(run, seq)) == ParsedName("record", run, seq)
    assert layout.parse(layout.bundle_name(run, seq, random)) == ParsedName("bundle", run, seq, random)
    assert layout.parse(layout.effect_name(run, effect)) == ParsedName("effect", run, effect=effect)
    assert layout.parse(layout.note_name(at, run, random)) == ParsedName("note", run, random=random, at=at)
    assert layout.parse(layout.audit_name(at, run, random)) == ParsedName("audit", run, random=random, at=at)
    assert layout.parse(layout.index_name(at, run, seq)) == ParsedName("index", run, seq, at=at)


@given(NAMES, st.data())
def test_a_changed_name_is_refused_or_made_so_itself(name: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(name)))
    end = data.draw(st.integers(place, min(len(name), place + 3)))
    changed = name[:place] + data.draw(st.text("~2Ff4a0/.-Ä\n", max_size=3)) + name[end:]
    try:
        parsed = layout.parse(changed)
    except InvalidNameError:
        assert changed != name
    else:
        assert made_from(parsed) == changed


@given(st.text(max_size=40))
def test_any_string_is_refused_or_made_so_itself(name: str) -> None:
    try:
        parsed = layout.parse(name)
    except InvalidNameError:
        return
    assert made_from(parsed) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "store.json\n",
        "records/r/00000000.age",
        "records/r/٠٠٠٠٠٠٠١.age",
        "records/~2F/00000001.age\n",
        "records/a~2f/00000001.age",
        "records/~41/00000001.age",
        "records/.a/00000001.age",
        "records/~C3/00000001.age",
        "records/~0A/00000001.age",
        "records/~/00000001.age",
        "records//00000001.age",
        "records/../00000001.age",
        "/records/r/00000001.age",
        "bundles/r/00000001-ABCDEFABCDEFABCD.tar.zst.age",
        "notes/8230135599876-00ff00ff00ff00ff.age",
        "notes/r/823013559987-00ff00ff00ff00ff.age",
        "notes/r/8230135599876-00FF00ff00ff00ff.age",
        "audit/8230135599876-00ff00ff00ff00ff.age",
        "audit/r/8230135599876-00FF00ff00ff00ff.age",
    ],
)
def test_other_strings_are_refused(name: str) -> None:
    with pytest.raises(InvalidNameError):
        layout.parse(name)


@pytest.mark.parametrize("run", ["", "a\nb", "a\0b", "\x7f", "\x85", "\ud800", "x" * 201, "ä" * 34])
def test_what_cannot_be_a_run_id(run: str) -> None:
    with pytest.raises(InvalidNameError) as caught:
        layout.record_name(run, 1)
    assert caught.value.remedy


def test_the_longest_run_id_fits_and_parses() -> None:
    for run in ("x" * 200, "ä" * 33):
        assert layout.parse(layout.record_name(run, 1)).run == run
    with pytest.raises(InvalidNameError):
        layout.parse(f"records/{'x' * 201}/00000001.age")


@pytest.mark.parametrize("seq", [0, -1, 100_000_000, True])
def test_numbers_outside_the_format(seq: int) -> None:
    with pytest.raises(InvalidNameError):
        layout.record_name("r", seq)


def test_other_wrong_parts_are_refused() -> None:
    for random in ("", "0" * 15, "0" * 17, "F" * 16, "0" * 15 + "\n"):
        with pytest.raises(InvalidNameError):
            layout.bundle_name("r", 1, random)
        with pytest.raises(InvalidNameError):
            layout.note_name(datetime(2026, 1, 1, tzinfo=UTC), "r", random)
        with pytest.raises(InvalidNameError):
            layout.audit_name(datetime(2026, 1, 1, tzinfo=UTC), "r", random)
    for effect in ("", "0" * 64, "G" * 32, "../x"):
        with pytest.raises(InvalidNameError):
            layout.effect_name("r", effect)
    for at in (datetime(2026, 1, 1), datetime(1969, 1, 1, tzinfo=UTC), datetime(2300, 1, 1, tzinfo=UTC)):  # noqa: DTZ001 - without a zone on purpose
        with pytest.raises(InvalidNameError):
            layout.index_name(at, "r", 1)
        with pytest.raises(InvalidNameError):
            layout.note_name(at, "r", "0" * 16)
        with pytest.raises(InvalidNameError):
            layout.audit_name(at, "r", "0" * 16)


@given(_RUNS, st.lists(_MOMENTS, min_size=2, max_size=5))
def test_the_newest_index_entry_and_note_sort_first(run: str, moments: list[datetime]) -> None:
    for names in (
        sorted(layout.index_name(at, run, 1) for at in moments),
        sorted(layout.note_name(at, run, "0" * 16) for at in moments),
    ):
        assert [layout.parse(name).at for name in names] == sorted(moments, reverse=True)


@given(_RUNS, _RUNS)
def test_a_prefix_holds_one_run_only(run: str, other: str) -> None:
    for name, prefix in (
        (layout.record_name(run, 1), layout.records_prefix(other)),
        (layout.bundle_name(run, 1, "0" * 16), layout.bundles_prefix(other)),
        (layout.effect_name(run, "0" * 32), layout.effects_prefix(other)),
        (layout.note_name(datetime(2026, 1, 1, tzinfo=UTC), run, "0" * 16), layout.notes_prefix(other)),
    ):
        assert name.startswith(prefix) == (run == other)


@given(_HEX32)
def test_the_store_document_names_the_store(store: str) -> None:
    data = layout.store_document(store)
    assert data == b'{"format":1,"store":"%s"}\n' % store.encode()
    assert layout.parse_store_document(data) == store


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b'{"format":1}',
        b'{"format":1,"store":"x"}\n',
        b'{"store":"%s","format":1}\n' % _STORE.encode(),
        b'{"format":1,"store":"%s"}' % _STORE.encode(),
        b'{"format":1,"store":"%s","more":0}\n' % _STORE.encode(),
    ],
)
def test_a_store_document_has_one_form(data: bytes) -> None:
    with pytest.raises(DamagedError):
        layout.parse_store_document(data)


def test_a_newer_store_document_names_the_version() -> None:
    with pytest.raises(UnsupportedSchemaError, match="format 2"):
        layout.parse_store_document(b'{"format":2,"store":"new"}')
    with pytest.raises(InvalidNameError):
        layout.store_document("My Store")


@pytest.mark.parametrize("run", [layout.INIT_PROBES, layout.DOCTOR_PROBES])
def test_probes_have_names_of_their_own(run: str) -> None:
    name = layout.effect_name(run, "ab" * 16)
    assert layout.is_probe(name)
    assert layout.parse(name).kind == "effect"
    assert not layout.is_probe(layout.effect_name(f"{run}-2", "ab" * 16))
    assert not layout.is_probe(layout.record_name(run, 1))
