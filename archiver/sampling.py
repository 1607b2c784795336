"""A random sample of what goes by, as many or as large a share as asked; the same seed has the same."""

from __future__ import annotations

import hashlib
import math
import re
import secrets
from array import array
from fractions import Fraction
from heapq import nsmallest
from typing import Final

from archiver.errors import UsageError

MAX_SEED: Final = (1 << 32) - 1

_SHAPE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)%|(\d{1,9})", re.ASCII)


class Sample:
    """Takes in runs and numbers, and picks some of them.

    Each gets a place that follows from seed, run and number alone; those in front are picked. So what is
    added to a store between two looks changes little of the sample.
    """

    def __init__(self, size: str, seed: int | None = None) -> None:
        """`size` is `5%` or a number; `UsageError` for anything else, and for none at all."""
        match = _SHAPE.fullmatch(size)
        share = Fraction(match[1]) / 100 if match and match[1] else None
        count = int(match[2]) if match and match[2] else None
        if not (share or count) or (share or 0) > 1:
            raise UsageError(
                f"{size!r} is not the size of a sample",
                remedy="write a share of them all, as 5%, or how many, as 20",
            )
        self._share = share
        self._count = count or 0
        self.seed = secrets.randbelow(MAX_SEED + 1) if seed is None else seed
        """Give it again to have the same sample."""
        self._runs: list[str] = []
        self._places = array("Q")
        self._owners = array("L")
        self._numbers = array("L")

    @property
    def total(self) -> int:
        """How many were taken in."""
        return len(self._places)

    @property
    def size(self) -> int:
        """How many of them are picked: at least one, if there is one."""
        wanted = self._count if self._share is None else max(1, math.ceil(self._share * self.total))
        return min(wanted, self.total)

    def add(self, run: str, seq: int) -> None:
        """Take in a bundle; those of one run come one after the other."""
        if not self._runs or self._runs[-1] != run:
            self._runs.append(run)
        place = hashlib.blake2b(f"{self.seed}\0{run}\0{seq}".encode(), digest_size=8).digest()
        self._places.append(int.from_bytes(place, "big"))
        self._owners.append(len(self._runs) - 1)
        self._numbers.append(seq)

    def picked(self) -> dict[str, frozenset[int]]:
        """The picked numbers by run, in the order in which the runs came."""
        chosen: dict[int, set[int]] = {}
        for index in nsmallest(self.size, range(self.total), key=self._places.__getitem__):
            chosen.setdefault(self._owners[index], set()).add(self._numbers[index])
        return {self._runs[owner]: frozenset(chosen[owner]) for owner in sorted(chosen)}
