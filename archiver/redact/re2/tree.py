"""What an expression is made of. Flags are resolved: a letter of a caseless part is a set of two letters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

LAST: Final = 0x10FFFF


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set: ranges of code points, ascending, apart from each other."""

    ranges: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, ranges: Iterable[tuple[int, int]]) -> Chars:
        merged: list[tuple[int, int]] = []
        for low, high in sorted(ranges):
            if merged and low <= merged[-1][1] + 1:
                merged[-1] = merged[-1][0], max(high, merged[-1][1])
            else:
                merged.append((low, high))
        return cls(tuple(merged))

    def complement(self) -> Chars:
        out: list[tuple[int, int]] = []
        at = 0
        for low, high in self.ranges:
            if low > at:
                out.append((at, low - 1))
            at = high + 1
        if at <= LAST:
            out.append((at, LAST))
        return Chars(tuple(out))

    def holds(self, code: int) -> bool:
        return any(low <= code <= high for low, high in self.ranges)

    def meets(self, other: Chars) -> bool:
        """True when one character is in both."""
        return any(low <= high_ and low_ <= high for low, high in self.ranges for low_, high_ in other.ranges)

    @property
    def size(self) -> int:
        return sum(high - low + 1 for low, high in self.ranges)


@dataclass(frozen=True, slots=True)
class Cat:
    """One after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alt:
    """One of several."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`low` to `high` times (None: without end), `lazy` as few as possible."""

    node: Node
    low: int
    high: int | None
    lazy: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """A part that is captured; numbers count from 1."""

    node: Node
    number: int
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """A place between characters."""

    kind: Literal["begin", "end", "word", "no-word"]


Node = Chars | Cat | Alt | Repeat | Group | Edge


def children(node: Node) -> tuple[Node, ...]:
    """The parts of a node."""
    if isinstance(node, Cat):
        return node.parts
    if isinstance(node, Alt):
        return node.options
    return (node.node,) if isinstance(node, Repeat | Group) else ()


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    yield node
    for child in children(node):
        yield from walk(child)


def groups(node: Node) -> dict[int, str | None]:
    """Numbers and names of the groups."""
    return {one.number: one.name for one in walk(node) if isinstance(one, Group)}


def shortest(node: Node) -> int:
    """The least number of characters that match."""
    if isinstance(node, Chars):
        return 1
    if isinstance(node, Repeat):
        return node.low * shortest(node.node)
    sizes = [shortest(child) for child in children(node)]
    return min(sizes, default=0) if isinstance(node, Alt) else sum(sizes)


def alphabet(node: Node) -> Chars:
    """All characters that may be part of a match."""
    return Chars.of(span for one in walk(node) if isinstance(one, Chars) for span in one.ranges)


def first(node: Node) -> Chars:
    """The characters that a match may begin with."""
    if isinstance(node, Chars):
        return node
    if isinstance(node, Cat):
        found: list[tuple[int, int]] = []
        for part in node.parts:
            found.extend(first(part).ranges)
            if shortest(part):
                break
        return Chars.of(found)
    return Chars.of(span for child in children(node) for span in first(child).ranges)


def literal(node: Node) -> int:
    """The length of the longest text that is part of every match, whatever its case."""
    if isinstance(node, Alt):
        return min((literal(option) for option in node.options), default=0)
    if isinstance(node, Group):
        return literal(node.node)
    if isinstance(node, Repeat):
        return literal(node.node) if node.low else 0
    if not isinstance(node, Cat):
        return int(isinstance(node, Chars) and node.size <= 2)
    best = run = 0
    for part in node.parts:
        fixed = isinstance(part, Chars) and part.size <= 2
        run = run + 1 if fixed else 0
        best = max(best, run, 0 if fixed else literal(part))
    return best


def telling(node: Node) -> float:
    """How much a match says, in bits: of each character that must be there, how few of 128 it may be."""
    if isinstance(node, Chars):
        return max(0.0, 7 - math.log2(node.size))
    if isinstance(node, Repeat):
        return node.low * telling(node.node)
    said = [telling(child) for child in children(node)]
    return min(said, default=0.0) if isinstance(node, Alt) else sum(said)
