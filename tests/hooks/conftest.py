"""A home of its own, with the session of the sample run in it."""

from __future__ import annotations

from pathlib import Path

import inside
import pytest
from cli.conftest import home as home

from hooks.sessions import Session, put_session


@pytest.fixture
def session(home: Path) -> Session:
    """A store, keys, and one session of Claude Code."""
    done = inside.command("init")
    assert done.code == 0, done.err
    return put_session(home)
