"""Leaving out the block of a `with`: every case, and none of them in a test framework's own tracing."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from .skipping_cases import CASES


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_left_out(case: Callable[[], None]) -> None:
    before = sys.gettrace()
    sys.settrace(None)
    try:
        case()
        assert sys.gettrace() is None
    finally:
        sys.settrace(before)
