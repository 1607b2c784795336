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
from archiver.setup import fencing

Command = Callable[..., Outcome]
REGION = "eu-central-1"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Iterator[Path]:
    """One for the tests of a module, which share the store that is made in it."""
    with pytest.MonkeyPatch.context() as patch:
        foreign = ("ARCHIVER_", "XDG_", "CLAUDE_", "CODEX_", "AWS_")
        for name in [name for name in os.environ if name.startswith(foreign)]:
            patch.delenv(name)
        folder = tmp_path_factory.mktemp("home")
        (folder / "work").mkdir()
        patch.setenv("HOME", str(folder))
        patch.setenv("XDG_CACHE_HOME", str(shared_cache))
        patch.setenv("TERM", "xterm")
        patch.setenv("AWS_CONFIG_FILE", os.devnull)
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.chdir(folder / "work")
        yield folder


@pytest.fixture(scope="module")
def command(home: Path) -> Command:
    """Run `archiver …` in this process."""
    return inside.command


@pytest.fixture(scope="module")
def s3(home: Path) -> Iterator[Any]:
    """An imitation: fast, and what it answers is what S3 does, mostly. It has no fencing worth a race."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "anything")
        patch.setattr(fencing, "RACERS", 1)
        with mock_aws():
            yield client("s3", AwsOptions(region=REGION))


def make_bucket(s3: Any, name: str) -> None:
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
