"""The only place that prints: tables at a terminal, tab-separated lines in a pipe, JSON on request."""

from __future__ import annotations

import codecs
import errno
import io
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TextIO

import typer

from archiver.cli.text import safe_json, safe_lines, safe_text
from archiver.errors import StoreError, StoreFullError

if TYPE_CHECKING:
    from datetime import datetime

PIPE_CLOSED = 141
"""The exit code of a program that wrote into a closed pipe, as shells know it (128 + SIGPIPE)."""
_SLICE = 1 << 20
_hidden: Callable[[], AbstractContextManager[None]] = nullcontext
"""Takes the display of progress away while something is printed."""


@contextmanager
def beside(hidden: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """A display stands at the terminal meanwhile, and `hidden` takes it away while something is printed."""
    global _hidden  # noqa: PLW0603  # there is one terminal
    before, _hidden = _hidden, hidden
    try:
        yield
    finally:
        _hidden = before


def tty() -> bool:
    """Whether a person reads standard output."""
    return sys.stdout.isatty()


def line(text: object = "") -> None:
    """One line on standard output."""
    _write(sys.stdout, safe_text(text) + "\n")


def paragraph(text: object) -> None:
    """Text whose line ends are meant."""
    for one in safe_lines(text):
        line(one)


def note(text: object) -> None:
    """One line for the person beside the result, on standard error."""
    _write(sys.stderr, safe_text(text) + "\n")


def raw(blocks: Iterable[bytes]) -> None:
    """Bytes on standard output, as they are."""
    stream = sys.stdout
    binary = getattr(stream, "buffer", None)
    stream.flush()
    for block in blocks:
        if binary is None:
            _write(stream, block.decode("utf-8", "surrogateescape"))
            continue
        try:
            binary.write(block)
        except OSError as error:
            failed(stream, error)


def text(blocks: Iterable[bytes]) -> None:
    """UTF-8 text whose line ends are meant, and nothing else that would steer a terminal."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    held = ""
    for block in blocks:
        *lines, held = (held + decoder.decode(block)).split("\n")
        if lines:
            _write(sys.stdout, "\n".join((*map(safe_text, lines), "")))
        while len(held) > _SLICE:
            _write(sys.stdout, safe_text(held[:_SLICE]))
            held = held[_SLICE:]
    if held := held + decoder.decode(b"", final=True):
        line(held)


def document(value: Any) -> None:
    """A JSON document: indented at a terminal, one line in a pipe."""
    from archiver import jsonio

    data = jsonio.pretty(value) if tty() else jsonio.dumps(value) + b"\n"
    decoder = codecs.getincrementaldecoder("utf-8")()
    for at in range(0, len(data), _SLICE):  # as text a long document takes several times as much memory
        _write(sys.stdout, safe_json(decoder.decode(data[at : at + _SLICE])))


def row(cells: Sequence[object]) -> None:
    """One tab-separated line; a tab or line end inside a cell cannot be one, and an empty cell is `-`."""
    _write(sys.stdout, "\t".join(safe_text(cell) or "-" for cell in cells) + "\n")


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    cut: Collection[str] = (),
    fold: Collection[str] = (),
    middle: Collection[str] = (),
    spare: Collection[str] = (),
) -> None:
    """Rows as a table at a terminal, else tab-separated without a header.

    At a terminal, columns that are empty everywhere are left out. To fit, those in `cut` are cut and those in
    `fold` go over several lines; those in `middle`, ids that have to be copied whole, lose their middle only
    where nothing else helps. Those in `spare` are there only where there is room left for them.
    """
    if not tty():
        for cells in rows:
            row(cells)
        return
    texts = [[safe_text(cell) for cell in cells] for cells in rows]
    used = [at for at in range(len(columns)) if any(cells[at] for cells in texts)]
    if used:
        from archiver.cli.rich_table import show

        shown = [[cells[at] for at in used] for cells in texts]
        with _hidden():
            show([columns[at] for at in used], shown, cut, fold, middle, spare)


def facts(pairs: Sequence[tuple[str, object]]) -> None:
    """Names and values: aligned at a terminal, else tab-separated; empty values are left out."""
    shown = [(name, safe_text(value)) for name, value in pairs if value not in (None, "")]
    width = max((len(name) for name, _ in shown), default=0) + 2
    for name, value in shown:
        _write(sys.stdout, f"{name:<{width}}{value}\n" if tty() else f"{name}\t{value}\n")


def when(at: datetime) -> str:
    """A time: to the minute for people, exact in a pipe."""
    from archiver.cli.text import moment
    from archiver.model import utc_text

    return f"{moment(at)} UTC" if tty() else utc_text(at)


def heading(text: str) -> None:
    """A title between parts, at a terminal only."""
    if tty():
        _write(sys.stdout, f"\n{paint(text, '1', sys.stdout)}\n")


def paint(text: str, style: str, stream: TextIO) -> str:
    """The text in an ANSI style, where the stream is a terminal that wants colours."""
    plain = not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") in (None, "", "dumb")
    return text if plain else f"\x1b[{style}m{text}\x1b[0m"


def labelled(label: str, style: str, name: str, texts: Sequence[object]) -> None:
    """A coloured word and a name at a terminal, and beside them each text, folded."""
    beside = 28
    width = max(30, shutil.get_terminal_size().columns - beside)
    lines = [
        line
        for text in texts
        for line in textwrap.wrap(safe_text(text), width, break_on_hyphens=False, break_long_words=False)
    ]
    first = f"{paint(f'{label:<9}', style, sys.stdout)}{name:<{beside - 9}}"
    for line in lines or [""]:
        _write(sys.stdout, f"{first}{line}\n")
        first = " " * beside


def folded(before: str, text: object) -> None:
    """Text folded to the width of the terminal, behind a mark and below its own beginning."""
    width = max(30, shutil.get_terminal_size().columns - len(before))
    for one in textwrap.wrap(safe_text(text), width, break_on_hyphens=False, break_long_words=False):
        _write(sys.stdout, f"{before}{one}\n")
        before = " " * len(before)


def problem(kind: str, text: str, remedy: str | None, *, style: str = "1;31") -> None:
    """What went wrong and what to do next, on standard error."""
    first, *rest = safe_lines(text)
    _write(sys.stderr, f"{paint(f'{kind}:', style, sys.stderr)} {first}\n")
    for one in rest:
        _write(sys.stderr, f"  {one}\n")
    if remedy:
        first, *rest = safe_lines(remedy)
        _write(sys.stderr, f"{paint('next:', '1', sys.stderr)} {first}\n")
        for one in rest:
            _write(sys.stderr, f"{one}\n")


def flush() -> None:
    """Bring out what is buffered, so that a closed pipe is noticed while it can be handled."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            failed(stream, error)


def _write(stream: TextIO, text: str) -> None:
    try:
        with _hidden() if stream.isatty() else nullcontext():
            stream.write(text)
    except OSError as error:
        failed(stream, error)


def failed(stream: TextIO, error: OSError) -> None:
    """What follows when a stream takes no more; nothing is written to it again, not at the exit either.

    Nobody reads any more: `typer.Exit`, quietly. No room on standard output: `StoreFullError`. Messages that
    standard error does not take are lost, and the exit code says what they would have said.
    """
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
    if isinstance(error, BrokenPipeError):
        raise typer.Exit(PIPE_CLOSED)
    if stream is not sys.stderr:
        raise unwritable(error)


def unwritable(error: OSError) -> StoreError:
    """Standard output cannot be written, for another reason than that nobody reads it."""
    kind = StoreFullError if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else StoreError
    return kind(
        f"standard output cannot be written: {error.strerror}", remedy="free space, or write it elsewhere"
    )


class Closed(io.StringIO):
    """Standard output of a program that was started without one: as a pipe that nobody reads."""

    def write(self, _text: str) -> int:
        raise BrokenPipeError("standard output is closed")

    def fileno(self) -> int:
        return 1


def open_missing() -> None:
    """Fill the places of standard streams that were closed at the start.

    Files opened later would get their numbers, and messages would be written into them.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
        if name == "stdout":
            sys.stdout = Closed()
        else:
            mode = "r" if number == 0 else "w"
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
