"""From the text of an expression to its tree. The syntax: https://github.com/google/re2/wiki/Syntax."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from archiver.redact.re2 import classes
from archiver.redact.re2.tree import LAST, Alt, Cat, Chars, Edge, Group, Node, Repeat

_LONGEST: Final = 16_000
_DEEPEST: Final = 60
_MOST_TIMES: Final = 1000
_COUNT = re.compile(r"\{(\d{1,6})(,(\d{0,6}))?\}")
_NAMED = re.compile(r"\(\?P?<([A-Za-z_]\w*)>")
_FLAGS = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
_NEWLINE = Chars(((10, 10),))


class ExpressionError(ValueError):
    """An expression that cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class _Flags:
    i: bool = False
    m: bool = False
    s: bool = False
    U: bool = False


def parse(text: str) -> Node:
    """The tree of an expression; raises `ExpressionError`."""
    if len(text) > _LONGEST:
        raise ExpressionError(f"it is longer than {_LONGEST} characters")
    parser = _Parser(text)
    node = parser.alternation(0)
    if parser.at < len(text):
        raise ExpressionError(f"a ')' without its '(' at {parser.at}")
    return node


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.flags = _Flags()
        self.groups = 0
        self.names: set[str] = set()

    def alternation(self, depth: int) -> Node:
        """Up to the `)` that ends it, or the end; flags set inside end with it."""
        if depth > _DEEPEST:
            raise ExpressionError(f"it is nested deeper than {_DEEPEST} levels")
        kept = self.flags
        options = [self._sequence(depth)]
        while self._peek() == "|":
            self.at += 1
            options.append(self._sequence(depth))
        self.flags = kept
        return options[0] if len(options) == 1 else Alt(tuple(options))

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while (char := self._peek()) and char not in "|)":
            if char in "*+?":
                raise ExpressionError(f"nothing to repeat at {self.at}")
            quoted = self._quoted()
            if quoted is not None:
                parts.extend(quoted[:-1])
                node: Node | None = quoted[-1] if quoted else None
            else:
                node = self._atom(depth)
            if node is not None:
                parts.append(self._repeated(node))
        return parts[0] if len(parts) == 1 else Cat(tuple(parts))

    def _quoted(self) -> list[Node] | None:
        if not self.text.startswith("\\Q", self.at):
            return None
        end = self.text.find("\\E", self.at + 2)
        end = len(self.text) if end < 0 else end
        inside = self.text[self.at + 2 : end]
        self.at = end + 2
        return [self._one(ord(char)) for char in inside]

    def _one(self, code: int) -> Chars:
        return classes.folded(Chars(((code, code),))) if self.flags.i else Chars(((code, code),))

    def _atom(self, depth: int) -> Node | None:
        char = self._peek()
        if char == "(":
            return self._group(depth)
        if char == "[":
            return self._class()
        if char == "\\":
            return self._escape()
        self.at += 1
        if char == ".":
            return Chars(((0, LAST),)) if self.flags.s else _NEWLINE.complement()
        if char in "^$":
            return Edge("begin" if char == "^" else "end")
        return self._one(ord(char))

    def _repeated(self, node: Node) -> Node:
        low, high, width = self._count()
        if not width:
            return node
        if isinstance(node, Edge):
            raise ExpressionError(f"a place is repeated at {self.at}")
        self.at += width
        lazy = self._peek() == "?"
        self.at += lazy
        if self._count()[2]:
            raise ExpressionError(f"a repetition is repeated, or possessive, at {self.at}")
        return Repeat(node, low, high, lazy != self.flags.U)

    def _count(self) -> tuple[int, int | None, int]:
        """Least and most times, and the width of the sign; 0 where there is none."""
        simple = {"*": (0, None, 1), "+": (1, None, 1), "?": (0, 1, 1)}.get(self._peek())
        if simple is not None:
            return simple
        match = _COUNT.match(self.text, self.at)
        if match is None:
            return 1, 1, 0
        low = int(match[1])
        high = low if match[2] is None else int(match[3]) if match[3] else None
        if max(low, high or 0) > _MOST_TIMES or (high is not None and high < low):
            raise ExpressionError(f"{match[0]} at {self.at}: a repetition has 0 to {_MOST_TIMES} times")
        return low, high, len(match[0])

    def _group(self, depth: int) -> Node | None:
        named = _NAMED.match(self.text, self.at)
        flags = None if named else _FLAGS.match(self.text, self.at)
        if flags is not None and flags[0] != "(?)":
            return self._flagged(flags, depth)
        if named is None and self.text.startswith("(?", self.at):
            shown = self.text[self.at : self.at + 4]
            raise ExpressionError(
                f"{shown!r} at {self.at}: RE2 has no such group (lookaround, atomic, comment)"
            )
        name = named[1] if named else None
        if name is not None and name in self.names:
            raise ExpressionError(f"a second group {name!r}")
        self.names.update(() if name is None else (name,))
        self.at += len(named[0]) if named else 1
        self.groups += 1
        number = self.groups
        return Group(self._closed(depth), number, name)

    def _flagged(self, match: re.Match[str], depth: int) -> Node | None:
        """`(?i)` holds to the end of the group around it, `(?i:…)` inside."""
        kept = self.flags
        on = dict.fromkeys(match[1], True) | dict.fromkeys(match[2] or "", False)
        self.flags = replace(self.flags, **on)
        self.at += len(match[0])
        if match[3] == ")":
            return None
        node = self._closed(depth)
        self.flags = kept
        return node

    def _closed(self, depth: int) -> Node:
        node = self.alternation(depth + 1)
        if self._peek() != ")":
            raise ExpressionError("a '(' without its ')'")
        self.at += 1
        return node

    def _escape(self) -> Node:
        pair = self.text[self.at : self.at + 2]
        edge = {"\\A": "begin", "\\z": "end", "\\b": "word", "\\B": "no-word"}.get(pair)
        if edge is not None:
            self.at += 2
            return Edge(edge)  # type: ignore[arg-type]  # the four words above
        made = self._escaped()
        return classes.folded(made) if self.flags.i else made

    def _escaped(self) -> Chars:
        """One escape, also inside a class."""
        try:
            made, self.at = classes.escape(self.text, self.at)
        except ValueError as error:
            raise ExpressionError(f"{error} at {self.at}") from error
        return made

    def _class(self) -> Node:
        begin = self.at
        negative = self.text.startswith("[^", self.at)
        self.at += 2 if negative else 1
        ranges: list[tuple[int, int]] = []
        fresh = True
        while fresh or self._peek() != "]":
            if not self._peek():
                raise ExpressionError(f"a '[' without its ']' at {begin}")
            ranges.extend(self._class_part())
            fresh = False
        self.at += 1
        made = Chars.of(ranges)
        made = classes.folded(made) if self.flags.i else made
        made = made.complement() if negative else made
        if not made.ranges:
            raise ExpressionError(f"a class at {begin} holds no character")
        return made

    def _class_part(self) -> tuple[tuple[int, int], ...]:
        named = classes.posix(self.text, self.at)
        if named is not None:
            self.at += named[1]
            return named[0].ranges
        low = self._class_char()
        if not self.text.startswith("-", self.at) or self.text.startswith("-]", self.at) or low.size != 1:
            return low.ranges
        self.at += 1
        high = self._class_char()
        bounds = low.ranges[0][0], high.ranges[0][0]
        if high.size != 1 or bounds[0] > bounds[1]:
            raise ExpressionError(f"a range that cannot be at {self.at}")
        return (bounds,)

    def _class_char(self) -> Chars:
        if self._peek() == "\\":
            return self._escaped()
        code = ord(self._peek() or "]")
        self.at += 1
        return Chars(((code, code),))
