"""The generator of `benchmarks/many_runs.py`, for tests that need chains of records in a moment."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from many_runs import START, Maker, fill, name_of

__all__ = ["START", "Maker", "fill", "name_of"]
