"""What the tests of several probes start from."""

from __future__ import annotations

from pathlib import Path

import pytest

from .repos import Repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with one commit."""
    made = Repo(tmp_path / "work tree")
    made.commit("one")
    return made
