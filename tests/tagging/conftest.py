"""The stores and configurations of `tests/e2e`, and runs of several checkpoints in them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import many
import pytest
from e2e.conftest import cache, config, home, make_s3_config, setup

from archiver import layout
from archiver.setup import Setup

__all__ = ["cache", "config", "home", "make_s3_config", "setup"]


@pytest.fixture
def run(setup: Setup) -> str:
    """A run of eight checkpoints that has succeeded; those before the last were created `live`."""
    many.fill(setup, range(1, 2), 8)
    return many.name_of(1)


def tags(setup: Setup, prefix: str) -> list[str | None]:
    """The classes of all objects under a prefix, in the order of names."""
    return [setup.store.class_of(info.name) for info in setup.store.list(prefix)]


def bundle_tags(setup: Setup, run: str) -> list[str | None]:
    return tags(setup, layout.bundles_prefix(run))


def older(folder: Path, name: str, seconds: float) -> None:
    """Make an object of a folder store look that old."""
    at = time.time() - seconds
    os.utime(folder / name, (at, at))
