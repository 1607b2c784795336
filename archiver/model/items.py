"""The items of one transcript file: many JSON values (or raw chunks) that need not fit in memory."""

from __future__ import annotations

import base64
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from archiver import jsonio

BLOCK = 1 << 20

BlockSource = Callable[[], Iterator[bytes]]
"""Starts a new pass over the items: blocks of whole lines, each line ending in `\\n` (raw: any chunks)."""

PairSource = Callable[[], Iterator[tuple[bytes, Any]]]
"""Starts a new pass over the items: each as its JSON text and its value, parsed once."""


class Places:
    """A file of lines, and the bytes at which some of them begin."""

    __slots__ = ("_at", "_numbers", "path")

    def __init__(self, path: Path, known: Sequence[tuple[int, int]] = ()) -> None:
        """`known`: numbers of lines, from 0, with the bytes where they begin, in order."""
        self.path = path
        self._numbers = [number for number, _ in known]
        self._at = [at for _, at in known]

    def before(self, number: int) -> tuple[int, int]:
        """The last known place at or before a line: how many lines lie between, and its byte."""
        found = bisect_right(self._numbers, number) - 1
        return (number - self._numbers[found], self._at[found]) if found >= 0 else (number, 0)

    def blocks(self, start: int, stop: int) -> Iterator[bytes]:
        """The bytes between two places, in blocks of whole lines."""
        with self.path.open("rb") as file:
            file.seek(start)
            while start < stop and (block := file.read(min(BLOCK, stop - start))):
                if not block.endswith(b"\n"):
                    block += file.readline()
                start += len(block)
                yield block


class Growing(Protocol):
    """The text of items that grows from save to save, so that what is new of it can be read alone."""

    def begins_like(self, other: Growing, stop: int) -> bool:
        """Whether it has the first `stop` bytes of the other one, byte for byte."""

    def pieces(self, start: int = 0) -> Iterator[tuple[int, list[tuple[bytes, Any]]]]:
        """Pairs of the items from byte `start` on, where a piece ended, and where each piece ends."""


class Items:
    """A re-iterable sequence of JSON texts, one an item, held in memory, in a file or made by a reader.

    As blocks they are lines ending in `\\n`. With `raw=True` the items are chunks of a file that is not one
    JSON value a line: their concatenation is the file, byte for byte.
    """

    __slots__ = ("_pairs", "_places", "_source", "count", "growing", "raw", "size")

    def __init__(
        self,
        source: BlockSource,
        *,
        count: int | None,
        size: int,
        raw: bool = False,
        pairs: PairSource | None = None,
        growing: Growing | None = None,
        places: Places | None = None,
    ) -> None:
        self._source = source
        self._pairs = pairs
        self._places = places
        self.growing = growing
        """Their text, where it is one that grows."""
        self.count = count
        """Number of items; None while a reader has not been through them."""
        self.size = size
        """Bytes of all blocks (of the file as found, for a reader)."""
        self.raw = raw

    @classmethod
    def of(cls, values: Iterable[Any]) -> Items:
        """Items from JSON values; raises `NotSerialisableError` for a value that is none."""
        return cls.of_lines(jsonio.dumps(value) for value in values)

    @classmethod
    def of_lines(cls, lines: Iterable[bytes]) -> Items:
        """Items from JSON texts in memory, each without a line end."""
        held = tuple(lines)
        blocks = tuple(line + b"\n" for line in held)
        return cls(lambda: iter(blocks), count=len(held), size=sum(map(len, blocks)))

    @classmethod
    def of_chunks(cls, chunks: Iterable[bytes]) -> Items:
        """Raw items in memory."""
        held = tuple(chunks)
        return cls(lambda: iter(held), count=len(held), size=sum(map(len, held)), raw=True)

    @classmethod
    def of_pairs(cls, pairs: PairSource, *, size: int) -> Items:
        """Items that a reader parses on its way through a file of `size` bytes."""
        return cls(lambda: _pair_blocks(pairs()), count=None, size=size, pairs=pairs)

    @classmethod
    def of_growing(cls, growing: Growing, *, size: int) -> Items:
        """Items of a text that grows, `size` bytes as lines."""

        def pairs() -> Iterator[tuple[bytes, Any]]:
            return (pair for _, piece in growing.pieces() for pair in piece)

        return cls(lambda: _pair_blocks(pairs()), count=None, size=size, pairs=pairs, growing=growing)

    @classmethod
    def in_file(cls, path: Path, *, count: int | None, size: int, raw: bool = False) -> Items:
        """Items that lie in a file of `size` bytes: lines ending in `\\n`, or raw chunks."""
        return cls(lambda: _file_blocks(path, raw), count=count, size=size, raw=raw)

    @classmethod
    def in_files(cls, paths: tuple[Path, ...], *, count: int | None, size: int, raw: bool = False) -> Items:
        """Items that lie in several files, one after the other."""
        return cls(
            lambda: (block for path in paths for block in _file_blocks(path, raw)),
            count=count,
            size=size,
            raw=raw,
        )

    @classmethod
    def in_tape(cls, places: Places, *, count: int, size: int) -> Items:
        """Items that lie in the first `size` bytes of a file in which some of their places are known."""
        return cls(lambda: places.blocks(0, size), count=count, size=size, places=places)

    def blocks_from(self, first: int) -> Iterator[bytes]:
        """As `blocks`, without the first so many items (not for raw ones)."""
        if self._places is not None:
            skip, start = self._places.before(first)
            blocks = self._places.blocks(start, self.size)
        else:
            skip, blocks = first, self._source()
        for block in blocks:
            count = block.count(b"\n") if skip else 0
            if skip >= count > 0:
                skip -= count
                continue
            at = 0
            for _ in range(skip):
                at = block.index(b"\n", at) + 1
            skip = 0
            yield block[at:] if at else block

    def blocks(self) -> Iterator[bytes]:
        """The items as blocks of roughly a megabyte; not raw, each block is whole lines ending in `\\n`."""
        return self._source()

    def lines(self) -> Iterator[bytes]:
        """Each item as its JSON text without the line end (raw: each chunk)."""
        if self.raw:
            yield from self._source()
            return
        if self._pairs is not None:
            for line, _ in self._pairs():
                yield line
            return
        for block in self._source():
            yield from block[:-1].split(b"\n")

    def pairs(self) -> Iterator[tuple[bytes, Any]]:
        """Each item as its JSON text and its value, parsed once; raw items have none (`TypeError`)."""
        if self.raw:
            raise TypeError("raw items are chunks, not JSON values")
        if self._pairs is not None:
            yield from self._pairs()
            return
        for line in self.lines():
            yield line, jsonio.loads(line)

    def values(self) -> Iterator[Any]:
        """Each item parsed; raw chunks as text, or as `{"base64": …}` where they are not UTF-8."""
        if self._pairs is not None:
            for _, value in self._pairs():
                yield value
            return
        for line in self.lines():
            yield _chunk_value(line) if self.raw else jsonio.loads(line)

    def __iter__(self) -> Iterator[Any]:
        return self.values()

    def __len__(self) -> int:
        return sum(1 for _ in self.lines()) if self.count is None else self.count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Items) and list(self.lines()) == list(other.lines())

    __hash__ = None  # type: ignore[assignment]  # equality compares contents that may lie in a file

    def __repr__(self) -> str:
        return f"Items(count={self.count}, size={self.size}, raw={self.raw})"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validate,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda items: list(items.values())
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "array", "items": {}}

    @classmethod
    def _validate(cls, value: Any) -> Items:
        if isinstance(value, cls):
            return value
        if isinstance(value, list | tuple):
            return cls.of(value)
        raise ValueError("items are a list of JSON values")


def _file_blocks(path: Path, raw: bool) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            if not raw and not block.endswith(b"\n"):
                block += file.readline()
            yield block


def _pair_blocks(pairs: Iterator[tuple[bytes, Any]]) -> Iterator[bytes]:
    lines: list[bytes] = []
    size = 0
    for line, _ in pairs:
        lines.append(line)
        size += len(line)
        if size >= BLOCK:
            yield b"\n".join((*lines, b""))
            lines.clear()
            size = 0
    if lines:
        yield b"\n".join((*lines, b""))


def _chunk_value(chunk: bytes) -> Any:
    try:
        return chunk.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(chunk).decode()}
