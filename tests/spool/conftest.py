"""A store, keys and a spool of its own for every test, in a scratch home."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from e2e.conftest import cache, config, home, reopen, s3_config, s3_template, setup

from archiver.setup import Setup

from .making import Hand

__all__ = ["cache", "config", "hand", "home", "reopen", "s3_config", "s3_template", "setup"]


@pytest.fixture
def hand(setup: Setup) -> Callable[..., Hand]:
    """Makes a writer of run `r`, or of another run or setup."""

    def make(run: str = "r", by: Setup | None = None) -> Hand:
        return Hand.of(by or setup, run)

    return make
