"""Text on its way to a terminal: nothing from a transcript, a note or a name may steer it."""

from __future__ import annotations

import re
import shlex
import unicodedata
from typing import TYPE_CHECKING

from archiver.safetext import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from archiver.model import Record

_MOST_BITS = 128
_NOT_ASCII = re.compile(r"[^\x20-\x7e]")


def safe_text(value: object) -> str:
    """The value as one line in which control, format and other steering characters are visible escapes."""
    return one_line(number(value) if isinstance(value, int) else str(value))


def number(value: int) -> str:
    """The integer in digits; one that nothing real can count is given by its size, in bounded time."""
    bits = value.bit_length()
    return str(value) if bits <= _MOST_BITS else f"{'-' if value < 0 else ''}2^{bits - 1} or more"


def safe_lines(value: object) -> list[str]:
    """The same for text whose line ends are meant."""
    return [safe_text(line) for line in str(value).split("\n")]


def safe_json(text: str) -> str:
    """JSON text in which steering characters are JSON escapes: it means the same and can be printed.

    In JSON text they can only stand inside strings; line ends outside of strings stay.
    """
    return _NOT_ASCII.sub(_json_escape, text)


def _json_escape(match: re.Match[str]) -> str:
    character = match[0]
    if character == "\n" or unicodedata.category(character)[0] not in "CZ":
        return character
    return "".join(f"\\u{unit:04x}" for unit in _utf16(character))


def _utf16(character: str) -> list[int]:
    data = character.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[at : at + 2]) for at in range(0, len(data), 2)]


def size(count: int) -> str:
    """Bytes for people: `1.2 MB`, with thousands as 1000."""
    if count < 1000 or count.bit_length() > _MOST_BITS:
        return f"{number(count)} B"
    value, unit = float(count), ""
    for unit in ("kB", "MB", "GB", "TB"):  # noqa: B007 - the last unit that was needed
        value /= 1000
        if value < 999.5:
            break
    return f"{value:.1f} {unit}" if value < 9.95 else f"{value:.0f} {unit}"


def counted(count: int, noun: str) -> str:
    """A number with its noun: `1 record`, `2 records`."""
    return f"{number(count)} {noun}{'' if count == 1 else 's'}"


def counts(findings: Mapping[str, int]) -> str:
    """How often each rule found something, the worst first: `rule (2), other (1)`."""
    from archiver.rotation import by_rank

    return ", ".join(f"{rule} ({number(count)})" for rule, count in by_rank(findings))


def swept(record: Record) -> str:
    """Where a checkpoint came from that a sweep made of a finished run on disk; else nothing."""
    return f"a sweep of {record.source.kind}" if record.source else ""


def command(program: str, run: str, *options: str) -> str:
    """A command about a run as it can be typed: whatever comes from the run is quoted for a shell."""
    if run.startswith("-"):
        return shlex.join([*program.split(), *options, "--", run])
    return shlex.join([*program.split(), run, *options])


def moment(at: datetime) -> str:
    """A time for people, in UTC to the minute."""
    from datetime import UTC

    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def since_when(text: str) -> datetime:
    """What `--since` means: a date, a time (without a zone: UTC), or a length of time before now."""
    from datetime import UTC, datetime

    from archiver.config.values import duration
    from archiver.errors import UsageError

    try:
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            return datetime.now(UTC) - duration(text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"--since {text!r} is neither a time nor a length of time",
            remedy="write it as 2026-03-01, 2026-03-01T12:00:00Z, 7d or 36h",
        ) from error
