"""What all tests of the module share: a copy of it, and one application of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from servers import ministack as ministacks

from terraform.applied import Applied, once, shared
from terraform.plan import Plan
from terraform.tool import Terraform, copied, mirror, missing, program


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all test processes of this run have."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "terraform"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def applied(shared_folder: Path) -> Iterator[Applied]:
    """The complete example on an emulator, with a store that was set up; destroyed in the end."""
    program(), mirror()
    if ministacks.binary() is None:
        missing("ministack is not installed: `make .ministack/.installed`")
    with shared(shared_folder) as found:
        yield found


@pytest.fixture(scope="session")
def plan(applied: Applied, shared_folder: Path) -> Plan:
    """The plan for AWS itself: with the statements and conditions that the emulator was spared.

    It is made over what was applied, so that the ARNs of the keys are known.
    """

    def make() -> str:
        tool = applied.terraform
        tool.run("plan", "-input=false", "-refresh=false", "-lock=false", "-out=aws.plan")
        return tool.run("show", "-json", "aws.plan")

    return Plan(json.loads(once(shared_folder, "plan.json", make)), applied.outputs)


@pytest.fixture(scope="session")
def module(tmp_path_factory: pytest.TempPathFactory) -> Terraform:
    """The module by itself, with its provider."""
    program(), mirror()
    return Terraform(copied(tmp_path_factory.mktemp("module") / "terraform")).init()


@pytest.fixture
def become(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, shared_cache: Path
) -> Callable[[dict[str, str]], None]:
    """Makes this process, for this test, that caller and nobody else, in a home of its own."""
    for name in [name for name in os.environ if name.startswith(("ARCHIVER_", "XDG_"))]:
        monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared_cache))
    monkeypatch.chdir(home)

    def caller(environment: dict[str, str]) -> None:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            monkeypatch.delenv(name)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)

    return caller


@pytest.fixture(scope="session")
def sessions(applied: Applied) -> Callable[[str], dict[str, str]]:
    """The environment of one session of each role, for all tests."""
    return cache(applied.session)


@pytest.fixture
def s3(applied: Applied, sessions: Callable[[str], dict[str, str]]) -> Callable[[str], Any]:
    """The S3 client of a role."""
    return lambda role: applied.client("s3", sessions(role))


@pytest.fixture
def kms(applied: Applied, sessions: Callable[[str], dict[str, str]]) -> Callable[[str], Any]:
    """The KMS client of a role."""
    return lambda role: applied.client("kms", sessions(role))
