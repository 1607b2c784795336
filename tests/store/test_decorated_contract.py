"""The contract of all stores, on a folder store within each decorator."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from archiver.store import ObjectStore
from archiver.store.local import LocalStore

from .contract import StoreContract, dictionary_test
from .contract_replace import ReplaceContract
from .test_decorated import WRAPS, Wrap


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
class TestDecorated(StoreContract, ReplaceContract):
    """Each alone, and all of them together."""

    test_it_behaves_like_a_dictionary = dictionary_test(5)

    @pytest.fixture
    def fresh(self, tmp_path: Path, wrap: Wrap) -> Callable[[], ObjectStore]:
        def make() -> ObjectStore:
            store = LocalStore(tmp_path / f"fresh-{next(numbers)}")
            store.make()
            return wrap(store)

        numbers = itertools.count()
        return make

    @pytest.fixture
    def store(self, fresh: Callable[[], ObjectStore]) -> ObjectStore:
        return fresh()
