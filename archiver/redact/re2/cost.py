"""Which expressions would take a backtracking engine too long, said before they are used.

RE2 reads any text in one pass, and Python's `re` does not: it tries again what can be divided in many ways.
Two things make that grow without bound: a repetition around another whose end is not certain, and several
long repetitions in a row that take the same characters.
"""

from __future__ import annotations

from typing import Final

from archiver.redact.re2.tree import (
    Alt,
    Cat,
    Chars,
    Edge,
    Group,
    Node,
    Repeat,
    alphabet,
    first,
    shortest,
    walk,
)

_LONG: Final = 100
"""Times that count as without end."""
_FEW: Final = 4
_SHORT: Final = 16
_MOST_IN_A_ROW: Final = 2


def why_costly(node: Node) -> str | None:
    """Why the expression is refused, or None."""
    for one in walk(node):
        if isinstance(one, Repeat) and not _is_few(one) and _divides(one):
            return "a repetition repeats another, and where one ends is not certain: it can take for ever"
    if _in_a_row(node) > _MOST_IN_A_ROW:
        return f"more than {_MOST_IN_A_ROW} long repetitions in a row take the same characters"
    return None


def _is_few(node: Repeat) -> bool:
    """True for so few repetitions of something short that all ways to divide it are soon tried."""
    if node.high is None or node.high > _FEW:
        return False
    inner = [one.high for one in walk(node.node) if isinstance(one, Repeat)]
    return node.high <= 1 or all(high is not None and high <= _SHORT for high in inner)


def _divides(node: Repeat) -> bool:
    """True when one text can be divided into repetitions of the body in several ways."""
    body = _bare(node.node)
    if isinstance(body, Chars):
        return False
    if not shortest(body):
        return True
    return _uncertain(body, first(body))


def _bare(node: Node) -> Node:
    while isinstance(node, Group):
        node = node.node
    return node


def _uncertain(node: Node, after: Chars) -> bool:
    """True when a variable part of the node can go on into what follows it."""
    node = _bare(node)
    if isinstance(node, Alt):
        return _overlaps(node) or any(_uncertain(option, after) for option in node.options)
    if isinstance(node, Repeat):
        varies = node.high is None or node.high > node.low
        return (varies and alphabet(node.node).meets(after)) or _uncertain(node.node, after)
    if not isinstance(node, Cat):
        return False
    following = after
    for part in reversed(node.parts):
        if _uncertain(part, following):
            return True
        if not isinstance(part, Edge):
            begins = first(part)
            following = begins if shortest(part) else Chars.of((*begins.ranges, *following.ranges))
    return False


def _overlaps(node: Alt) -> bool:
    """True when two options may match one text; of fixed texts none begins another."""
    texts = [_text(option) for option in node.options]
    for at, one in enumerate(node.options):
        for other_at, other in enumerate(node.options[:at]):
            text, other_text = texts[at], texts[other_at]
            if text is not None and other_text is not None:
                if all(mine.meets(theirs) for mine, theirs in zip(text, other_text, strict=False)):
                    return True
            elif first(one).meets(first(other)):
                return True
    return False


def _text(node: Node) -> tuple[Chars, ...] | None:
    node = _bare(node)
    if isinstance(node, Chars):
        return (node,)
    if isinstance(node, Cat) and all(isinstance(part, Chars) for part in node.parts):
        return tuple(part for part in node.parts if isinstance(part, Chars))
    return None


def _in_a_row(node: Node) -> int:
    """The most long repetitions in a row that share characters."""
    runs: list[Chars] = []
    most = 0
    for one in _flat(node):
        if isinstance(one, Repeat) and (one.high is None or one.high >= _LONG):
            taken = alphabet(one.node)
            runs = [run for run in runs if run.meets(taken)] + [taken]
            most = max(most, len(runs))
        elif shortest(one):
            passed = alphabet(one)
            runs = [run for run in runs if run.meets(passed)]
    return most


def _flat(node: Node) -> list[Node]:
    """The parts of an expression as they follow each other; of options the worst one."""
    node = _bare(node)
    if isinstance(node, Cat):
        return [one for part in node.parts for one in _flat(part)]
    if isinstance(node, Alt):
        return max(
            (_flat(option) for option in node.options),
            key=lambda parts: sum(isinstance(x, Repeat) for x in parts),
        )
    if isinstance(node, Repeat) and not isinstance(_bare(node.node), Chars) and node.high == 1:
        return _flat(node.node)
    return [node]
