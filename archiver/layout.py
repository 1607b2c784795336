"""The only place that makes and parses object names, and the small public object that names a store.

    store.json                                              names the store
    records/<run>/<seq>.age                                 the commit points of a run
    bundles/<run>/<seq>-<random>.tar.zst.age                sealed checkpoints
    effects/<run>/<keyed id>.age                            intent and outcome of one effect
    notes/<run>/<inverted time>-<random>.age                what an administrator signed about a run
    audit/<run>/<inverted time>-<random>.age                who opened or restored a run, signed by them
    index/<inverted time>-<run>-<seq>                       empty; a hint for `list`, newest first

`<run>` is the run id as `encode_run` writes it, `<seq>` a number from 1 in 8 digits, `<random>` 16 and
`<keyed id>` 32 lower-case hex digits, `<inverted time>` 9999999999999 minus the milliseconds since 1970 in 13
digits. What `parse` accepts, the makers make again byte for byte. Errors: `InvalidNameError`, unless said.

Run ids that differ only in case have names that differ only in case. A folder store on a file system that
folds case refuses the second of them, so two runs never share a folder.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, Literal

from archiver import jsonio
from archiver.errors import DamagedError, InvalidNameError, UnsupportedSchemaError

STORE: Final = "store.json"
RECORDS: Final = "records/"
BUNDLES: Final = "bundles/"
EFFECTS: Final = "effects/"
NOTES: Final = "notes/"
AUDIT: Final = "audit/"
INDEX: Final = "index/"
MAX_SEQ: Final = 99_999_999
MAX_RUN: Final = 200
"""Bytes of an encoded run id."""
EXPORT: Final = "EXPORT.json"
"""What lies beside the objects of an exported run, and is none of them."""
STORE_FORMAT: Final = 1
INIT_PROBES: Final = "archiver-init"
DOCTOR_PROBES: Final = "archiver-doctor"
"""Runs that nobody has: their effects are probes of `init` and `doctor`, and hold anything."""

SEVERAL_RUNS: Final = "archiver-several"
"""The run that nobody has, under which the audit of what concerns several runs lies."""

Kind = Literal["store", "record", "bundle", "effect", "note", "audit", "index"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MILLISECOND = 10**13 - 1
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_RUN = r"(?P<run>[A-Za-z0-9._~-]+)"
_SEQ = r"(?P<seq>[0-9]{8})"
_RANDOM = re.compile(r"[0-9a-f]{16}")
_EFFECT_ID = re.compile(r"[0-9a-f]{32}")
_STORE_ID = re.compile(r"[0-9a-f]{32}")
_NAMES: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("record", re.compile(rf"records/{_RUN}/{_SEQ}\.age")),
    ("bundle", re.compile(rf"bundles/{_RUN}/{_SEQ}-(?P<random>[0-9a-f]{{16}})\.tar\.zst\.age")),
    ("effect", re.compile(rf"effects/{_RUN}/(?P<effect>[0-9a-f]{{32}})\.age")),
    ("note", re.compile(rf"notes/{_RUN}/(?P<time>[0-9]{{13}})-(?P<random>[0-9a-f]{{16}})\.age")),
    ("audit", re.compile(rf"audit/{_RUN}/(?P<time>[0-9]{{13}})-(?P<random>[0-9a-f]{{16}})\.age")),
    ("index", re.compile(rf"index/(?P<time>[0-9]{{13}})-{_RUN}-{_SEQ}")),
)


@dataclass(frozen=True, slots=True)
class ParsedName:
    """What an object name says; fields that its kind does not have are None."""

    kind: Kind
    run: str | None = None
    seq: int | None = None
    random: str | None = None
    effect: str | None = None
    at: datetime | None = None
    """Of a note, an audit object or an index entry: the moment, to the millisecond, in UTC."""


@lru_cache(maxsize=256)  # a save names a dozen objects of one run
def encode_run(run: str) -> str:
    """A run id as one component of a name: a byte outside `[A-Za-z0-9._-]` becomes `~XX`.

    The bytes are UTF-8, XX is upper-case hex; a leading `.` or `-` is written so as well. Empty ids, control
    characters, text that is not Unicode and more than 200 bytes are refused.
    """
    if not run:
        raise InvalidNameError("a run id must not be empty", remedy="give the run an id")
    if any(unicodedata.category(character) in {"Cc", "Cs"} for character in run):
        raise InvalidNameError(
            f"run id {run!r} holds a control character or half a surrogate pair",
            remedy="use printable characters only",
        )
    raw = run.encode()
    encoded = "".join(
        chr(byte) if byte in _PLAIN and (place or byte not in b".-") else f"~{byte:02X}"
        for place, byte in enumerate(raw)
    )
    if len(encoded) > MAX_RUN:
        raise InvalidNameError(
            f"run id {run[:40]!r}… takes {len(encoded)} bytes in an object name, the limit is {MAX_RUN}",
            remedy="use a shorter run id, or one of ASCII letters, digits, '.', '_' and '-'",
        )
    return encoded


@lru_cache(maxsize=256)  # the names of one run follow each other in every list
def decode_run(encoded: str) -> str:
    """The run id that `encode_run` wrote so; anything it does not write is refused."""
    try:
        raw = re.sub(rb"~([0-9A-F]{2})", lambda match: bytes.fromhex(match[1].decode()), encoded.encode())
        run = raw.decode()
        if encode_run(run) == encoded:
            return run
    except (UnicodeError, InvalidNameError):
        pass
    raise InvalidNameError(f"{encoded!r} is not a run id as object names write it")


def record_name(run: str, seq: int) -> str:
    """`records/<run>/<seq>.age`."""
    return f"{records_prefix(run)}{_digits(seq)}.age"


def bundle_name(run: str, seq: int, random: str) -> str:
    """`bundles/<run>/<seq>-<random>.tar.zst.age`; `random` is 16 lower-case hex digits."""
    if not _RANDOM.fullmatch(random):
        raise InvalidNameError(f"{random!r} is not 16 lower-case hex digits, as a bundle name needs")
    return f"{bundles_prefix(run)}{_digits(seq)}-{random}.tar.zst.age"


def effect_name(run: str, effect: str) -> str:
    """`effects/<run>/<keyed id>.age`; `effect` is 32 lower-case hex digits, made with a key."""
    if not _EFFECT_ID.fullmatch(effect):
        raise InvalidNameError(f"{effect!r} is not 32 lower-case hex digits, as an effect name needs")
    return f"{effects_prefix(run)}{effect}.age"


def note_name(at: datetime, run: str, random: str) -> str:
    """`notes/<run>/<inverted time>-<random>.age`: the newest comes first; `random` as in a bundle's name."""
    if not _RANDOM.fullmatch(random):
        raise InvalidNameError(f"{random!r} is not 16 lower-case hex digits, as a note name needs")
    return f"{notes_prefix(run)}{_inverted(at)}-{random}.age"


def audit_name(at: datetime, run: str, random: str) -> str:
    """`audit/<run>/<inverted time>-<random>.age`: the newest comes first; `random` as in a bundle's name."""
    if not _RANDOM.fullmatch(random):
        raise InvalidNameError(f"{random!r} is not 16 lower-case hex digits, as an audit name needs")
    return f"{audit_prefix(run)}{_inverted(at)}-{random}.age"


def index_name(at: datetime, run: str, seq: int) -> str:
    """`index/<inverted time>-<run>-<seq>`: in name order the newest comes first; `at` has a zone."""
    return f"{INDEX}{_inverted(at)}-{encode_run(run)}-{_digits(seq)}"


def records_prefix(run: str) -> str:
    """What the names of a run's records start with."""
    return f"{RECORDS}{encode_run(run)}/"


def bundles_prefix(run: str) -> str:
    """What the names of a run's bundles start with."""
    return f"{BUNDLES}{encode_run(run)}/"


def effects_prefix(run: str) -> str:
    """What the names of a run's effects start with."""
    return f"{EFFECTS}{encode_run(run)}/"


def notes_prefix(run: str) -> str:
    """What the names of the notes about a run start with."""
    return f"{NOTES}{encode_run(run)}/"


def audit_prefix(run: str) -> str:
    """What the names of the audit objects of a run start with."""
    return f"{AUDIT}{encode_run(run)}/"


def parse(name: str) -> ParsedName:
    """What `name` says; `InvalidNameError` for every string that no maker of this module makes."""
    if name == STORE:
        return ParsedName("store")
    for kind, pattern in _NAMES:
        if match := pattern.fullmatch(name):
            return _parsed(kind, match)
    raise InvalidNameError(f"{name!r} is not the name of an archiver object")


def is_probe(name: str) -> bool:
    """Whether the object only tried the store out: it says nothing, and may stay or go."""
    return name.startswith((effects_prefix(INIT_PROBES), effects_prefix(DOCTOR_PROBES)))


def store_document(store: str) -> bytes:
    """The content of `store.json` for a store id of 32 lower-case hex digits (128 random bits)."""
    if not _STORE_ID.fullmatch(store):
        raise InvalidNameError(f"{store!r} is not 32 lower-case hex digits, as a store id needs")
    return jsonio.canonical({"format": STORE_FORMAT, "store": store}) + b"\n"


def parse_store_document(data: bytes) -> str:
    """The store id in `store.json`; `DamagedError`, or `UnsupportedSchemaError` for a newer format."""
    try:
        document = jsonio.loads(data)
    except ValueError as error:
        raise DamagedError(f"{STORE} is not JSON: {error}", remedy=_STORE_REMEDY) from error
    if isinstance(document, dict):
        _refuse_newer(document.get("format"))
        store = document.get("store")
        if isinstance(store, str) and _STORE_ID.fullmatch(store) and store_document(store) == data:
            return store
    raise DamagedError(f"{STORE} does not name a store as this format does", remedy=_STORE_REMEDY)


_STORE_REMEDY = "check that the address is that of a store, and restore the object from a copy"


def _refuse_newer(version: Any) -> None:
    if isinstance(version, int) and version > STORE_FORMAT:
        raise UnsupportedSchemaError(
            f"{STORE} has format {version}, this release knows {STORE_FORMAT}",
            remedy=f"use a release of checkpoint-archiver that knows store format {version}",
        )


def _inverted(at: datetime) -> str:
    if at.tzinfo is None:
        raise InvalidNameError(f"the time {at.isoformat()} of a name has no zone")
    milliseconds = (at - _EPOCH) // timedelta(milliseconds=1)
    if not 0 <= milliseconds <= _LAST_MILLISECOND:
        raise InvalidNameError(f"the time {at.isoformat()} of a name is outside the years 1970 to 2286")
    return f"{_LAST_MILLISECOND - milliseconds:013d}"


def _digits(seq: int) -> str:
    if isinstance(seq, bool) or not 1 <= seq <= MAX_SEQ:
        raise InvalidNameError(f"sequence number {seq} is not between 1 and {MAX_SEQ}")
    return f"{seq:08d}"


def _parsed(kind: Kind, match: re.Match[str]) -> ParsedName:
    found = match.groupdict()
    seq = None if "seq" not in found else int(found["seq"])
    if seq == 0:
        raise InvalidNameError(f"{match[0]!r} has sequence number 0; numbers start at 1")
    at = None
    if "time" in found:
        at = _EPOCH + timedelta(milliseconds=_LAST_MILLISECOND - int(found["time"]))
    return ParsedName(
        kind, decode_run(found["run"]), seq, random=found.get("random"), effect=found.get("effect"), at=at
    )
