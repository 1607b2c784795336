"""Incremental bundles: only what is new is packed, and the table is put together from the chain again."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.errors import (
    ArchiveFormatError,
    ArchiverError,
    DigestMismatchError,
    InvalidNameError,
    LimitExceededError,
)
from archiver.model.limits import MAX_CHAIN, Limits
from archiver.model.manifest import BaseRef, Manifest, ManifestHead, ManifestMember
from archiver.pack import (
    Base,
    Ends,
    Held,
    Kept,
    Whole,
    compressed,
    demand_chain,
    joined,
    pack,
    read_first,
    unpack,
    unpack_parts,
    whole,
)
from pack.archives import FILES, HEAD, redacted, tree


def name_of(seq: int) -> str:
    return f"bundles/run/{seq:08d}-0123456789abcdef.tar.zst.age"


@dataclass
class Line:
    """Bundles of one run, each based on the one before."""

    limits: Limits = field(default_factory=Limits)
    bundles: list[tuple[str, bytes]] = field(default_factory=list)
    manifests: list[Manifest] = field(default_factory=list)
    base: Base | None = None

    def save(self, files: dict[str, bytes], *, kept: frozenset[str] = frozenset()) -> Manifest:
        """`kept`: paths of the base that are kept without a member."""
        seq = len(self.bundles) + 1
        out = io.BytesIO()
        head = ManifestHead(run="run", seq=seq, schema_version=2, redaction_key="c2VjcmV0")
        made = pack(
            redacted(files),
            head,
            out.write,
            limits=self.limits,
            threads=1,
            base=self.base,
            kept=self.kept(kept),
            lending=True,
        )
        assert made.bases == (self.base.chain if self.base else ())
        self.bundles.append((name_of(seq), out.getvalue()))
        self.manifests.append(made.manifest)
        chain = (*made.bases, seq)
        before = self.base.table if self.base else {}
        table = {path: before[path] for path in kept} | held(files)
        self.base = Base(name_of(seq), made.manifest_sha256, chain, table, made.text)
        return made.manifest

    def kept(self, paths: frozenset[str]) -> Kept:
        table = self.base.table if self.base else {}
        return Kept(paths, sum(table[path][0] for path in paths if path in table))

    def named(self) -> list[tuple[str, Manifest]]:
        return [(name_of(number), one) for number, one in enumerate(self.manifests, start=1)]

    def restore(self, into: Path) -> dict[str, bytes]:
        """What all of them together give."""
        into.mkdir()
        table = whole(self.named(), self.limits)
        read = [number for number, paths in enumerate(table.taken) if paths]
        texts: dict[tuple[int, str], bytes] = {}
        for number, (paths, needed) in enumerate(zip(table.taken, table.needs(read), strict=True)):
            if paths or needed:
                self.part(number, into, paths, needed, table, texts)
        assert {member.path for member in table.manifest.members} == set(tree(into))
        return tree(into)

    def part(
        self,
        number: int,
        into: Path,
        paths: frozenset[str],
        needed: frozenset[str],
        table: Whole,
        texts: dict[tuple[int, str], bytes],
    ) -> None:
        """Members of one bundle, with its dictionary from the texts of those that were unpacked before."""

        def lend(manifest: Manifest) -> bytes:
            return joined((texts[place] for place in table.lent[number]), manifest.dictionary or 0)

        def take(path: str, end: bytes) -> None:
            texts[number, path] = end

        ends = Ends(needed.__contains__, take)
        data = io.BytesIO(self.bundles[number][1])
        unpack(data, into, limits=self.limits, only=paths, lend=lend, ends=ends)


def held(files: dict[str, bytes]) -> dict[str, Held]:
    return {path: (len(data), hashlib.sha256(data).hexdigest(), 0o644) for path, data in files.items()}


def test_only_what_is_new_is_packed(tmp_path: Path) -> None:
    line = Line()
    assert line.save(FILES).format == 1
    changed = {"checkpoint.json": b"{}", "transcript/0001.jsonl": FILES["transcript/0001.jsonl"], "new": b"1"}
    manifest = line.save(changed)
    assert manifest.format == 3
    assert manifest.dictionary == len(FILES["transcript/0001.jsonl"]) + len(FILES["checkpoint.json"])
    assert [member.path for member in manifest.members] == ["checkpoint.json", "new"]
    assert manifest.dropped == ("empty",)
    assert manifest.base == BaseRef(bundle=name_of(1), sha256=line.manifests[0].sha256)
    assert line.restore(tmp_path / "into") == changed


def test_what_is_kept_of_a_base_needs_no_member(tmp_path: Path) -> None:
    line = Line()
    line.save({"a": b"1", "b/c": b"2", "d": b"3"})
    manifest = line.save({"e": b"4"}, kept=frozenset({"a", "b/c"}))
    assert [member.path for member in manifest.members] == ["e"]
    assert manifest.dropped == ("d",)
    assert line.restore(tmp_path / "into") == {"a": b"1", "b/c": b"2", "e": b"4"}


def test_what_is_kept_counts_for_limits() -> None:
    for limits in (Limits(members=3), Limits(bundle=8)):
        line = Line(limits)
        line.save({"a": b"1234", "b": b"12"})
        line.save({"c": b"12"}, kept=frozenset({"a", "b"}))
        with pytest.raises(LimitExceededError):
            line.save({"d": b"1"}, kept=frozenset({"a", "b", "c"}))


def test_only_what_lies_in_the_base_is_kept_and_nothing_in_its_place() -> None:
    line = Line()
    line.save({"a": b"1", "b/c": b"2"})
    with pytest.raises(ValueError, match="lies in the base"):
        line.save({}, kept=frozenset({"other"}))
    with pytest.raises(InvalidNameError):
        line.save({"b": b"1"}, kept=frozenset({"b/c"}))


def test_a_full_bundle_is_what_it_always_was() -> None:
    raw = Line().save(FILES).raw
    assert raw.startswith(b'{"format":1,"members":[{"bundle":null,')
    assert b"base" not in raw.replace(b"base64", b"")
    assert b"dropped" not in raw


def test_nothing_new_is_a_bundle_without_members(tmp_path: Path) -> None:
    line = Line()
    line.save(FILES)
    assert line.save(FILES).members == ()
    assert line.restore(tmp_path / "into") == FILES


def test_another_mode_is_new() -> None:
    line = Line()
    line.save(FILES)
    assert line.base is not None
    table = {**line.base.table, "empty": (0, hashlib.sha256(b"").hexdigest(), 0o600)}
    line.base = Base(line.base.bundle, line.base.manifest_sha256, (1,), table)
    assert [member.path for member in line.save(FILES).members] == ["empty"]


PATHS = st.sampled_from(
    ["a", "c/d", "checkpoint.json", *(f"transcript/000{number}.jsonl" for number in range(4))]
)
TABLES = st.dictionaries(PATHS, st.binary(max_size=3) | st.binary(max_size=40), max_size=7)


@settings(max_examples=60, deadline=None)
@given(tables=st.lists(TABLES, min_size=1, max_size=7))
def test_whatever_changes_comes_back(
    tables: list[dict[str, bytes]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    line = Line()
    for table in tables:
        line.save(table)
    assert line.restore(tmp_path_factory.mktemp("any") / "into") == tables[-1]


# --- limits -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limits", [Limits(bundle=70), Limits(members=2), Limits(member=39)], ids=["bundle", "members", "member"]
)
def test_the_whole_table_counts_on_write(limits: Limits) -> None:
    line = Line()
    line.save({"a": b"x" * 40, "b": b"y" * 20})
    line.limits = limits
    with pytest.raises(LimitExceededError):
        line.save({"a": b"x" * 40, "b": b"y" * 20, "c": b"z" * 11})


@pytest.mark.parametrize("limits", [Limits(bundle=70), Limits(members=2)], ids=["bundle", "members"])
def test_the_whole_table_counts_on_read(limits: Limits) -> None:
    line = Line()
    line.save({"a": b"x" * 40, "b": b"y" * 20})
    line.save({"a": b"x" * 40, "b": b"y" * 20, "c": b"z" * 11})
    for manifest in line.manifests:
        assert manifest.unpacked <= 60
    with pytest.raises(LimitExceededError):
        whole(line.named(), limits)


def test_a_chain_has_an_end() -> None:
    line = Line()
    line.save({"a": b"0"})
    assert line.base is not None
    line.base = Base(
        line.base.bundle, line.base.manifest_sha256, tuple(range(1, MAX_CHAIN + 1)), line.base.table
    )
    with pytest.raises(LimitExceededError, match="256"):
        line.save({"a": b"1"})


def test_a_chain_that_is_too_long_is_not_read() -> None:
    named = [(name_of(1), table(1))]
    while len(named) <= MAX_CHAIN:
        named.append((name_of(len(named) + 1), table(len(named) + 1, on=named[-1])))
    demand_chain(named[:-1], Limits())
    with pytest.raises(LimitExceededError, match="257"):
        demand_chain(named, Limits())


def test_as_many_members_as_are_allowed() -> None:
    line = Line(Limits(members=2))
    line.save({"a": b"0", "b": b"1"})
    line.save({"a": b"2", "b": b"3"})
    first = read_first(io.BytesIO(line.bundles[1][1]), limits=line.limits)
    assert len(first.manifest.members) == 2


def test_a_path_is_no_folder_of_one_in_the_base() -> None:
    line = Line()
    line.save({"a/b": b"0"})
    with pytest.raises(InvalidNameError, match="folder"):
        line.save({"a/b": b"0", "a": b"1"})


# --- what somebody else might write -------------------------------------------------------------------------


def member(path: str, data: bytes = b"x") -> ManifestMember:
    return ManifestMember(path=path, mode=0o644, size=len(data), sha256=hashlib.sha256(data).hexdigest())


def table(seq: int, *paths: str, on: tuple[str, Manifest] | None = None, **more: Any) -> Manifest:
    fields: dict[str, Any] = HEAD.model_dump(exclude={"mtime", "seq"}) | {"seq": seq}
    if on is not None:
        fields |= {"format": 2, "base": BaseRef(bundle=on[0], sha256=on[1].sha256)}
    return Manifest(**(fields | more), members=tuple(map(member, paths)))


FIRST = (name_of(1), table(1, "a", "b/c"))
REF = {"bundle": name_of(1), "sha256": FIRST[1].sha256}


@pytest.mark.parametrize(
    ("second", "error"),
    [
        (table(2, "d", on=FIRST, base=BaseRef(**{**REF, "bundle": name_of(7)})), ArchiveFormatError),
        (table(2, "d", on=FIRST, base=BaseRef(**{**REF, "sha256": "0" * 64})), DigestMismatchError),
        (table(2, "d", on=FIRST, dropped=("nothing",)), ArchiveFormatError),
        (table(2, "d", on=FIRST, run="another"), ArchiveFormatError),
        (table(1, "d", on=FIRST), ArchiveFormatError),
        (table(2, "a/b", on=FIRST), ArchiveFormatError),
        (table(2, "b", on=FIRST), ArchiveFormatError),
        (table(2, "d"), ArchiveFormatError),
    ],
    ids=["other base", "other digest", "drops nothing", "other run", "not later", "below", "above", "full"],
)
def test_tables_that_do_not_belong_together(second: Manifest, error: type[ArchiverError]) -> None:
    with pytest.raises(error):
        whole([FIRST, (name_of(2), second)], Limits())


def test_a_chain_begins_with_a_full_bundle() -> None:
    with pytest.raises(ArchiveFormatError, match="begins a chain"):
        whole([(name_of(2), table(2, "d", on=FIRST))], Limits())


@pytest.mark.parametrize(
    "fields",
    [
        {"format": 2},
        {"base": BaseRef(**REF)},
        {"dropped": ("a",)},
        {"format": 2, "base": BaseRef(**REF), "dropped": ("b", "a")},
        {"format": 2, "base": BaseRef(**REF), "dropped": ("a", "a")},
        {"format": 2, "base": BaseRef(**REF), "dropped": ("here",)},
        {"format": 2, "base": BaseRef(**REF), "dropped": ("../x",)},
        {"format": 2, "base": {"bundle": "../x", "sha256": "0" * 64}},
    ],
)
def test_manifests_that_no_writer_makes(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        table(2, "here", **fields)


def test_format_1_does_not_have_the_fields_of_format_2() -> None:
    raw = FIRST[1].raw.replace(b'{"format":1', b'{"base":null,"dropped":[],"format":1')
    with pytest.raises(ArchiveFormatError, match="one form"):
        Manifest.parse(raw)


# --- parts --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large() -> tuple[dict[str, bytes], bytes, tuple[int, ...]]:
    """An archive of four frames after the first."""
    files = {
        "checkpoint.json": b"{}",
        "a": bytes(range(256)) * 40_000,
        "b": hashlib.shake_128(b"b").digest(10 << 20),
        "c": b"at the end",
    }
    out = io.BytesIO()
    made = pack(redacted(files), HEAD, out.write, limits=Limits())
    assert len(made.frames) == 3
    return files, out.getvalue(), made.frames


@pytest.mark.parametrize(
    "only", [{"checkpoint.json"}, {"c"}, {"checkpoint.json", "c"}, {"b"}, {"a", "c"}, set()]
)
def test_only_the_frames_that_are_needed_are_read(
    large: tuple[dict[str, bytes], bytes, tuple[int, ...]], only: set[str], tmp_path: Path
) -> None:
    files, data, frames = large
    read = 0

    @contextmanager
    def open_at(offset: int) -> Iterator[BinaryIO]:
        nonlocal read
        source = io.BytesIO(data[offset:])
        yield source
        read += source.tell()

    first = read_first(io.BytesIO(data), limits=Limits())
    unpack_parts(first, frames, open_at, tmp_path, only=only)
    assert tree(tmp_path) == {path: files[path] for path in only}
    needed = compressed(first.manifest, frames, only)
    assert needed <= read + (1 << 17)
    assert read <= needed + (1 << 17), "only a little more is read than is needed"


def test_frames_that_are_not_there_are_refused(
    large: tuple[dict[str, bytes], bytes, tuple[int, ...]], tmp_path: Path
) -> None:
    _, data, frames = large
    first = read_first(io.BytesIO(data), limits=Limits())

    @contextmanager
    def open_at(offset: int) -> Iterator[BinaryIO]:
        yield io.BytesIO(data[offset:])

    for wrong in (frames[:-1], (*frames, 10), (frames[0] + 1, *frames[1:])):
        with pytest.raises(ArchiveFormatError):
            unpack_parts(first, wrong, open_at, tmp_path, only={"c"})


def test_some_members_of_a_stream(tmp_path: Path) -> None:
    line = Line()
    line.save(FILES)
    unpack(io.BytesIO(line.bundles[0][1]), tmp_path, limits=Limits(), only={"empty"})
    assert tree(tmp_path) == {"empty": b""}
