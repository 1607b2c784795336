"""The names that the package gives to programs, and what they cost."""

from __future__ import annotations

import subprocess
import sys

import pytest

import archiver


def test_every_public_name_is_there() -> None:
    for name in archiver.__all__:
        assert getattr(archiver, name) is not None
    assert archiver.Restored.__module__ == "archiver.restored"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = archiver.nothing


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    code = "import sys, archiver; print(sorted(n for n in sys.modules if n.startswith('archiver.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
