"""Whether letters look written by people: words and names use few of the 676 pairs of letters, and often."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Final

# The 220 commonest pairs in the identifiers of Python's standard library, counted for this table; they make
# up nine tenths of all pairs there, and a third of those in random letters. Each group is a first letter and
# all that follow it.
_GROUPS: Final = (
    "abcdgilmnprstuvy baeilou cacehiklortuy dadeiorsu eacdefgilmnpqrstvwxy faefiloru gaeirsu haeiot "
    "iabcdefglmnoprstvz ke ladeilostuy mabeiopsu nacdefginostuv oabcdgilmnoprstuvw paehiloprstu qu "
    "racdegikmnorstuvy sacehiopstu tacehioprstuy uabceilmnprst vaei waeio xept yps ze "
)
_COMMON: Final = frozenset((ord(group[0]), ord(second)) for group in _GROUPS.split() for second in group[1:])
_ALL: Final = frozenset(product(range(ord("a"), ord("z") + 1), repeat=2))
_ENOUGH = 80


def pairs(value: bytes) -> tuple[int, int]:
    """How many pairs of adjacent letters are common ones, and how many there are, whatever their case.

    The first 80 bytes tell enough.
    """
    found = list(pairwise(value[:_ENOUGH].lower()))
    return sum(map(_COMMON.__contains__, found)), sum(map(_ALL.__contains__, found))
