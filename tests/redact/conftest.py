from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from archiver.redact import cache, rules
from archiver.redact.exact import ExactMatcher
from archiver.redact.finder import Finder
from archiver.redact.ledger import Ledger
from archiver.redact.scrub import Scrubber
from archiver.scratch import Scratch

KEY = b"k" * 32


@pytest.fixture(scope="session", autouse=True)
def cache_folder(shared_cache: Path) -> Iterator[Path]:
    """Compiled databases of the tests are kept apart from the user's, and all: many rules are tried here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "_MOST", 1_000)
        patch.setenv("XDG_CACHE_HOME", str(shared_cache))
        yield shared_cache


@pytest.fixture(scope="session")
def finder(cache_folder: Path) -> Finder:
    return Finder(rules.load())


@pytest.fixture
def scrubber(finder: Finder) -> Scrubber:
    return Scrubber(finder, ExactMatcher(()), Ledger(KEY))


@pytest.fixture
def knowing(finder: Finder) -> Callable[..., Scrubber]:
    """A scrubber that knows the given values."""
    return lambda *values: Scrubber(finder, ExactMatcher(values), Ledger(KEY))


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Scratch]:
    with Scratch(tmp_path) as scratch:
        yield scratch
