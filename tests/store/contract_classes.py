"""What every store must do with class tags, of objects and, where it keeps them, of versions."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from archiver.errors import ObjectNotFoundError
from archiver.model import RetentionClass
from archiver.store import ObjectStore

from .contract import NAME

OTHER = "records/run/00000002.age"


class ClassesContract:
    """Needs a fixture `store`."""

    def test_the_class_is_the_one_it_was_created_or_retagged_with(self, store: ObjectStore) -> None:
        store.create(NAME, [b"x"], retention="live")
        store.create(OTHER, [b"y"], retention="failure")
        assert store.class_of(NAME) == "live"
        for word in get_args(RetentionClass):
            store.retag(NAME, word)
            assert store.class_of(NAME) == store.head(NAME).retention == word
        assert store.class_of(OTHER) == "failure"

    def test_what_is_not_there_has_no_class(self, store: ObjectStore) -> None:
        with pytest.raises(ObjectNotFoundError):
            store.class_of(NAME)
        store.create(NAME, [b"x"], retention="live")
        store.delete(NAME)
        with pytest.raises(ObjectNotFoundError):
            store.class_of(NAME)


class VersionClassesContract:
    """Needs a fixture `kept`: a store that keeps versions, and can replace what is in it."""

    def put(self, store: Any, *classes: RetentionClass) -> list[str]:
        """Versions of one object, each with its class; their ids, the newest first."""
        body, *more = range(len(classes))
        self.created(store, body, classes[0])
        for size, word in zip(more, classes[1:], strict=True):
            self.replaced(store, size, word)
        return [one.version for one in store.versions(NAME)]

    def created(self, store: Any, size: int, word: RetentionClass) -> None:
        store.create(NAME, [b"x" * (size + 1)], retention=word)

    def replaced(self, store: Any, size: int, word: RetentionClass) -> None:
        store.replace(NAME, [b"x" * (size + 1)], was=store.head(NAME))
        store.retag(NAME, word)

    def test_each_version_has_its_own_class(self, kept: Any) -> None:
        newest, middle, first = self.put(kept, "live", "success", "failure")
        assert [kept.class_of_version(NAME, one) for one in (newest, middle, first)] == [
            "failure",
            "success",
            "live",
        ]
        kept.retag_version(NAME, middle, "hold")
        assert [kept.class_of_version(NAME, one) for one in (newest, middle, first)] == [
            "failure",
            "hold",
            "live",
        ]
        assert kept.class_of(NAME) == "failure"
        kept.retag(NAME, "record")
        assert kept.class_of_version(NAME, newest) == "record"
        assert kept.class_of_version(NAME, first) == "live"

    def test_a_version_is_removed_for_good_and_the_others_stay(self, kept: Any) -> None:
        newest, middle, first = self.put(kept, "live", "live", "live")
        kept.delete_version(NAME, middle)
        assert [one.version for one in kept.versions(NAME)] == [newest, first]
        kept.delete_version(NAME, middle)
        with pytest.raises(ObjectNotFoundError):
            kept.read_version(NAME, middle, limit=9)
        kept.delete_version(NAME, newest)
        assert kept.read(NAME, limit=9) == b"x"

    def test_a_hidden_version_has_its_class_and_its_marker_goes(self, kept: Any) -> None:
        (only,) = self.put(kept, "success")
        kept.delete(NAME)
        marker, below = kept.versions(NAME)
        assert (marker.deleted, below.version) == (True, only)
        assert kept.class_of_version(NAME, only) == "success"
        kept.retag_version(NAME, only, "hold")
        assert kept.class_of_version(NAME, only) == "hold"
        kept.delete_version(NAME, marker.version)
        assert kept.class_of(NAME) == "hold"

    def test_nothing_is_left_when_all_versions_are_removed(self, kept: Any) -> None:
        self.put(kept, "live", "live")
        kept.delete(NAME)
        for one in list(kept.versions(NAME)):
            kept.delete_version(NAME, one.version)
        assert list(kept.versions()) == []
        self.created(kept, 0, "live")
        assert len(list(kept.versions(NAME))) == 1
