"""A home without a trace of the developer's, commands in this process, and buckets of an imitation."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import inside
import pytest
from inside import Outcome
from moto import mock_aws

from archiver.aws.door import client
from archiver.aws.options import AwsOptions

Command = Callable[..., Outcome]
REGION = "eu-central-1"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared_cache: Path) -> Path:
    for name in [name for name in os.environ if name.startswith(("ARCHIVER_", "XDG_", "CLAUDE_", "CODEX_"))]:
        monkeypatch.delenv(name)
    folder = tmp_path / "home"
    (folder / "work").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared_cache))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.chdir(folder / "work")
    return folder


@pytest.fixture
def command(home: Path) -> Command:
    """Run `archiver …` in this process."""
    return inside.command


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch, no_aws: None) -> Iterator[Any]:
    """An imitation with an empty bucket `bucket`: fast, and what it answers is what S3 does, mostly."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "anything")
    with mock_aws():
        made = client("s3", AwsOptions(region=REGION))
        made.create_bucket(Bucket="bucket", CreateBucketConfiguration={"LocationConstraint": REGION})
        yield made
