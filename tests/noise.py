"""Bytes that do not compress, the same in every run: chance may not make a finding of them now and then."""

from __future__ import annotations

import random


def noise(size: int, seed: int = 0) -> bytes:
    """So many bytes of no form and no text."""
    return b"\xff\0" + random.Random(f"{size} {seed}").randbytes(size - 2)
