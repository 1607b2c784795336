"""Class tags on a folder, on moto and on SeaweedFS, through every decorator; and removal under their lock."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws
from servers.seaweed import REGION, Seaweed

from archiver.aws.door import client
from archiver.aws.options import AwsOptions
from archiver.store import Guarded, ObjectStore, S3Options, Versioned
from archiver.store.local import LocalStore
from archiver.store.s3 import S3Store
from archiver.store.tag import hold, write

from .conftest import files
from .contract import NAME
from .contract_classes import ClassesContract, VersionClassesContract
from .test_decorated import WRAPS, Far, Wrap
from .test_s3_versions import WRAPS as S3_WRAPS

NOT_HELD = ("live", "success", "record", None)


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
class TestFolder(ClassesContract):
    """A folder, in each decorator."""

    @pytest.fixture
    def store(self, tmp_path: Path, wrap: Wrap) -> ObjectStore:
        made = LocalStore(tmp_path / "folder")
        made.make()
        return wrap(made)


@pytest.fixture
def moto(no_aws: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], S3Store]]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "A")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "S")
    numbers = itertools.count()
    with mock_aws():
        raw = client("s3", AwsOptions(region=REGION))
        raw.create_bucket(Bucket="bucket")
        raw.put_bucket_versioning(Bucket="bucket", VersioningConfiguration={"Status": "Enabled"})
        yield lambda: S3Store.at(f"s3://bucket/p{next(numbers)}", S3Options(AwsOptions(region=REGION)))


@pytest.mark.parametrize("wrap", S3_WRAPS.values(), ids=S3_WRAPS)
class TestMoto(ClassesContract, VersionClassesContract):
    """A bucket with versions in this process, in each decorator."""

    @pytest.fixture
    def store(self, moto: Callable[[], S3Store], wrap: Callable[[S3Store], ObjectStore]) -> ObjectStore:
        return wrap(moto())

    @pytest.fixture
    def kept(self, store: ObjectStore) -> ObjectStore:
        assert isinstance(store, Versioned)
        return store


@pytest.fixture(scope="module")
def versioned_bucket(seaweed: Seaweed) -> str:
    bucket = seaweed.make_bucket()
    seaweed.client().put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    return bucket


class TestSeaweed(ClassesContract, VersionClassesContract):
    """A real server that keeps versions, with all decorators."""

    numbers = itertools.count()

    @pytest.fixture
    def store(
        self, seaweed: Seaweed, versioned_bucket: str, aws_environment: Callable[[Seaweed, str], None]
    ) -> ObjectStore:
        aws_environment(seaweed, "admin")
        options = S3Options(AwsOptions(endpoint_url=seaweed.endpoint))
        return S3_WRAPS["all"](S3Store.at(f"s3://{versioned_bucket}/p{next(self.numbers)}", options))

    @pytest.fixture
    def kept(self, store: ObjectStore) -> ObjectStore:
        return store


class TestSeaweedWithoutVersions(ClassesContract):
    """The same server, in a bucket that keeps none: there the one version has an id too."""

    @pytest.fixture
    def store(self, seaweed: Seaweed, s3_url: str) -> ObjectStore:
        return S3_WRAPS["all"](S3Store.at(s3_url, S3Options(AwsOptions(endpoint_url=seaweed.endpoint))))

    def test_its_one_version_has_the_class_and_can_be_removed(self, store: Any) -> None:
        store.create(NAME, [b"x"], retention="live")
        (one,) = store.versions(NAME)
        assert one.latest
        assert not one.deleted
        store.delete_version(NAME, one.version)
        assert list(store.versions(NAME)) == []


def test_the_class_is_asked_for_again_where_the_store_could_not_be_reached(tmp_path: Path) -> None:
    far = Far(tmp_path)
    far.create(NAME, [b"x"], retention="live")
    far.fails = ["head"]
    assert WRAPS["retrying"](far).class_of(NAME) == "live"


def test_what_is_on_hold_is_not_removed(store: LocalStore, root: Path) -> None:
    assert isinstance(store, Guarded)
    store.create(NAME, [b"x"], retention="hold")
    assert not store.delete_if(NAME, NOT_HELD)
    assert store.read(NAME, limit=9) == b"x"
    store.retag(NAME, "live")
    assert not store.delete_if(NAME, ("success",))
    assert store.delete_if(NAME, ("live",))
    assert files(root) == []
    assert store.delete_if(NAME, NOT_HELD)
    assert files(root) == [], "of what is not there no tag is made"


def test_an_object_without_a_tag_goes_where_that_is_allowed(store: LocalStore, root: Path) -> None:
    store.create(NAME, [b"x"], retention="live")
    tag = next(path for path in root.rglob(".*.class"))
    tag.unlink()
    assert not store.delete_if(NAME, ("live",))
    assert store.delete_if(NAME, NOT_HELD)
    assert files(root) == []


def test_who_waits_for_a_retag_sees_the_new_class(store: LocalStore, root: Path) -> None:
    """The tag is asked for under the lock that `retag` holds, not before."""

    store.create(NAME, [b"x"], retention="live")
    folder = os.open(root / "records" / "run", os.O_RDONLY)
    answers: list[bool] = []
    try:
        with hold(folder, "00000001.age") as held:
            waiting = threading.Thread(target=lambda: answers.append(store.delete_if(NAME, ("live",))))
            waiting.start()
            waiting.join(0.2)
            assert answers == []
            write(held, "hold")
        waiting.join()
    finally:
        os.close(folder)
    assert answers == [False]
    assert store.class_of(NAME) == "hold"
