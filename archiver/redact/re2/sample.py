"""Texts that an expression matches, made from a seed: for tests, and to see what it costs."""

from __future__ import annotations

import random
from typing import Final

from archiver.redact.re2.tree import Alt, Cat, Chars, Edge, Group, Node, Repeat

_FEW: Final = 8


def sample(node: Node, rng: random.Random, times: int = 0) -> str:
    """A text that matches; a repetition has up to 8 more than it needs, or `times` where it may."""
    if isinstance(node, Chars):
        return _char(node, rng)
    if isinstance(node, Edge):
        return ""
    if isinstance(node, Cat):
        return "".join(sample(part, rng, times) for part in node.parts)
    if isinstance(node, Alt):
        return sample(rng.choice(node.options), rng, times)
    if isinstance(node, Group):
        return sample(node.node, rng, times)
    return "".join(sample(node.node, rng, times) for _ in range(_count(node, rng, times)))


def _count(node: Repeat, rng: random.Random, times: int) -> int:
    most = node.low + _FEW if node.high is None else node.high
    if times:
        return max(node.low, min(times, times if node.high is None else node.high))
    return rng.randint(node.low, min(most, node.low + _FEW))


def _char(node: Chars, rng: random.Random) -> str:
    """A letter or digit where there is one, else anything of the set."""
    spans = [
        (max(low, begin), min(high, end))
        for low, high in node.ranges
        for begin, end in ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A))
        if max(low, begin) <= min(high, end)
    ]
    spans = spans or [
        (max(low, 0x20), min(high, 0x7E)) for low, high in node.ranges if max(low, 0x20) <= min(high, 0x7E)
    ]
    low, high = rng.choice(spans or list(node.ranges[:1]))
    return chr(rng.randint(low, high))
