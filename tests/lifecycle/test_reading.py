"""What is read of a bucket: when a version became an old one, and how much waits in memory meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from archiver.lifecycle.bucket import _batches
from archiver.store import ObjectVersion
from archiver.store.s3 import listing, versions
from archiver.store.s3.address import parse
from archiver.store.s3.client import S3

FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def version(name: str, day: int, *, latest: bool = False, deleted: bool = False) -> ObjectVersion:
    return ObjectVersion(name, f"{name}{day}", FIRST + timedelta(days=day), 1, None, deleted, latest)


def test_a_version_is_old_from_when_something_came_over_it() -> None:
    listed = [
        version("a", 9, latest=True, deleted=True),
        version("a", 5),
        version("a", 2),
        version("b", 1, latest=True),
        version("c", 7),  # a server that marks none as the newest: the first of them is
        version("c", 3),
    ]
    found = [one for batch in _batches(iter(listed), "team/") for _, one in batch]
    since = [(one.noncurrent_since - FIRST).days if one.noncurrent_since else None for one in found]
    assert since == [None, 9, 5, None, None, 7]
    assert [one.key for one in found] == [f"team/{one.name}" for one in listed]
    assert [one.marker for one in found] == [True, False, False, False, False, False]


class Pages:
    """A bucket in which every run has one bundle and one record, listed as S3 lists it."""

    def __init__(self, runs: int, *, delimits: bool = True) -> None:
        self.address = parse("s3://bucket/team")
        self._delimits = delimits
        self._keys = sorted(
            [
                "team/store.json",
                *(f"team/{kind}/r{run}/1" for kind in ("bundles", "records") for run in range(runs)),
            ]
        )

    def pages(self, operation: str, *, Prefix: str, Delimiter: str = "") -> Iterator[dict[str, Any]]:  # noqa: N803
        keys = [key for key in self._keys if key.startswith(Prefix)]
        if Delimiter and self._delimits:
            rest = {key: key[len(Prefix) :].partition("/") for key in keys}
            folders = sorted({f"{Prefix}{first}/" for first, slash, _ in rest.values() if slash})
            yield {"CommonPrefixes": [{"Prefix": folder} for folder in folders]}
            keys = [key for key in keys if not rest[key][1]]
        for start in range(0, len(keys), 100):
            yield {
                "Versions": [
                    {
                        "Key": key,
                        "VersionId": number,
                        "LastModified": FIRST,
                        "Size": 1,
                        "IsLatest": not number,
                    }
                    for key in keys[start : start + 100]
                    for number in range(2)
                ]
            }


@pytest.mark.parametrize("delimits", [True, False])
def test_all_versions_of_a_store_are_listed_folder_by_folder(delimits: bool) -> None:
    pages = Pages(300, delimits=delimits)
    found = list(versions.listed(cast("S3", pages), ""))
    assert [f"team/{one.name}" for one in found[::2]] == sorted(pages._keys)
    assert [one.version for one in found[:4]] == ["0", "1", "0", "1"]


def test_what_waits_does_not_grow_with_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MAX_WAITING", 50)
    assert len(list(versions.listed(cast("S3", Pages(300)), ""))) == 2 * 601
