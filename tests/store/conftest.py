"""Stores in folders, on small disks, and calls that must not hang."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from archiver.store import ObjectStore, open_store
from archiver.store.local import LocalStore


def files(root: Path) -> list[str]:
    """Every file below the store's folder, hidden ones too."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "store"
    made.mkdir()
    return made


@pytest.fixture
def store(root: Path) -> LocalStore:
    return LocalStore(root)


@pytest.fixture
def fresh(tmp_path: Path) -> Callable[[], ObjectStore]:
    numbers = iter(range(10**6))
    return lambda: open_store(tmp_path / f"fresh-{next(numbers)}", make=True)


@pytest.fixture
def alarm() -> Iterator[None]:
    """A call that hangs is a failure, not a hung test run."""
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it hangs"))
    signal.alarm(10)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small tmpfs cannot be mounted here")
    yield place
    subprocess.run(["umount", place], check=True)
