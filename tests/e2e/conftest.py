"""A store, keys and configuration of its own for every test, in a home without a trace of the developer's."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from servers.seaweed import Seaweed

from archiver.config import load
from archiver.setup import Setup, initialise, open_setup


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Path:
    for name in [name for name in os.environ if name.startswith(("ARCHIVER_", "XDG_"))]:
        if name != "ARCHIVER_SHARED":
            monkeypatch.delenv(name)
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="session")
def cache(shared_cache: Path) -> Path:
    """The cache of all tests, for those that borrow this fixture."""
    return shared_cache


@pytest.fixture
def config(tmp_path: Path, home: Path) -> Path:
    """The configuration of a new store."""
    path = tmp_path / "archiver.toml"
    initialise(str(tmp_path / "store"), path, settings=load(), now=datetime.now(UTC))
    return path


@pytest.fixture
def setup(config: Path) -> Setup:
    return open_setup(load(config), need="write")


@pytest.fixture
def reopen(config: Path) -> Callable[[], Setup]:
    """Opens the store again, as another process would."""
    return lambda: open_setup(load(config), need="write")


@pytest.fixture
def note(tmp_path: Path) -> Path:
    """The smallest transcript: one line of text."""
    path = tmp_path / "note.txt"
    path.write_text("hello\n", encoding="utf-8")
    return path


@pytest.fixture
def make_s3_config(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Seaweed, str], Path]:
    """Makes a new store at an address of a server; gives its configuration."""

    def make(server: Seaweed, url: str) -> Path:
        path = tmp_path / "s3.toml"
        monkeypatch.setenv("ARCHIVER_STORE__ENDPOINT_URL", server.endpoint)
        initialise(url, path, settings=load(), now=datetime.now(UTC))
        return path

    return make


@pytest.fixture(scope="session")
def s3_template(seaweed: Seaweed, bucket: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configuration of a store that others are copied from: making one anew takes 40 requests."""
    folder = tmp_path_factory.mktemp("s3-template")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**seaweed.environment(), "HOME": str(folder)}.items():
            patch.setenv(name, value)
        patch.setenv("ARCHIVER_STORE__ENDPOINT_URL", seaweed.endpoint)
        # Of a name of its own: rooms that take this fixture over make one each.
        initialise(f"s3://{bucket}/{folder.name}", folder / "s3.toml", settings=load(), now=datetime.now(UTC))
    return folder / "s3.toml"


@pytest.fixture
def s3_config(s3_template: Path, seaweed: Seaweed, s3_url: str, bucket: str, tmp_path: Path) -> Path:
    """The configuration of a new store on the shared S3 server."""
    path = tmp_path / "s3.toml"
    before = s3_template.read_text(encoding="utf-8")
    text = before.replace(f"s3://{bucket}/{s3_template.parent.name}", s3_url)
    assert text != before
    path.write_text(text, encoding="utf-8")
    key = s3_url.split("/", 3)[3]
    seaweed.client().copy_object(
        Bucket=bucket, Key=f"{key}/store.json", CopySource=f"{bucket}/{s3_template.parent.name}/store.json"
    )
    return path
