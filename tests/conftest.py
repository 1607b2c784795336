"""What tests of every kind share: real servers, and an environment without anybody's credentials."""

from __future__ import annotations

import fcntl
import gc
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from servers import ministack as ministacks
from servers import seaweed as seaweedfs
from servers.ministack import Caller, Ministack
from servers.seaweed import Seaweed

from archiver.redact import Redactor, new_key

pytest.register_assert_rewrite("workspace.git_saving")  # its assertions are explained as those of tests are


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that other processes go on meanwhile."""
    items.sort(key=lambda item: not _is_of_one_application(item.nodeid))


def pytest_collection_finish() -> None:
    """What collecting has made stays: each full collection of garbage would go through all of it again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadfile`: a file in one process, and all that share one application of Terraform too.

    The groups of `--dist loadgroup` would say the same, but xdist 3.8 tells pytest 9.2 of none.
    """
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Dealing(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "terraform" if _is_of_one_application(nodeid) else super()._split_scope(nodeid)

    return Dealing(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One process more than there are processors: much of what is tested waits, Terraform most of all."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1


def _is_of_one_application(nodeid: str) -> bool:
    return nodeid.startswith("tests/terraform/") and "/test_module.py" not in nodeid


@pytest.fixture(scope="session", autouse=True)
def state_of_the_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What fixtures of whole modules remember of runs stays out of the developer's home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))
        yield


@pytest.fixture(autouse=True)
def state_of_its_own(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered of runs and written down about them stays out of the developer's home."""
    monkeypatch.setenv(
        "XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / f"state-{secrets.token_hex(8)}")
    )


@pytest.fixture(scope="session")
def compiled_rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the compiled rules of the package alone, made once for all test processes in seconds."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "compiled-rules"
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch, (folder / "lock").open("w") as lock:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        fcntl.flock(lock, fcntl.LOCK_EX)
        Redactor.load(new_key())
    return folder


@pytest.fixture(scope="session")
def shared_cache(compiled_rules: Path) -> Path:
    """One cache for all tests and their processes, which has the rules of the package from the start."""
    folder = compiled_rules.with_name("shared-cache")
    with (compiled_rules / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            shutil.copytree(compiled_rules, folder, ignore=shutil.ignore_patterns(".new-*"))
    return folder


@pytest.fixture(scope="session")
def seaweed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seaweed]:
    """The S3 server of this test process; tests that kill or fill a server take `own_seaweed`."""
    _need_weed()
    server = Seaweed(tmp_path_factory.mktemp("seaweed"))
    try:
        yield server.start()
    finally:
        server.kill()


@pytest.fixture
def own_seaweed(
    tmp_path: Path, aws_environment: Callable[[Seaweed, str], None]
) -> Iterator[Callable[..., Seaweed]]:
    """Starts a server for this test alone: `own_seaweed()`, or `own_seaweed(data_dir, volume_mb=1)`."""
    _need_weed()
    started: list[Seaweed] = []

    def start(data_dir: Path | None = None, **settings: int) -> Seaweed:
        server = Seaweed(data_dir or tmp_path / f"own-seaweed-{len(started)}", **settings)
        started.append(server)
        aws_environment(server.start(), "admin")
        return server

    yield start
    for server in started:
        server.kill()


@pytest.fixture(scope="session")
def bucket(seaweed: Seaweed) -> str:
    """A bucket of the shared server, for all tests of this process."""
    return seaweed.make_bucket()


@pytest.fixture
def s3_url(seaweed: Seaweed, bucket: str, aws_environment: Callable[[Seaweed, str], None]) -> str:
    """A place of its own for this test in `bucket`; the environment has the administrator's keys for it."""
    aws_environment(seaweed, "admin")
    return f"s3://{bucket}/{secrets.token_hex(6)}/store"


@pytest.fixture
def aws_environment(monkeypatch: pytest.MonkeyPatch) -> Callable[[Seaweed, str], None]:
    """Makes this process, for this test, one identity of that server and nobody else."""

    def become(server: Seaweed, identity: str = "admin") -> None:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            monkeypatch.delenv(name)
        for name, value in server.environment(identity).items():
            monkeypatch.setenv(name, value)

    return become


@pytest.fixture
def no_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without a trace of anybody's AWS configuration."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(scope="session")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ministack]:
    """The KMS of this test process; a test makes the keys and users that it changes."""
    _need_ministack()
    server = Ministack(tmp_path_factory.mktemp("ministack"))
    try:
        yield server.start()
    finally:
        server.kill()


@pytest.fixture
def kms_caller(ministack: Ministack, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes this process, for this test, that caller of KMS and nobody else; the root at first."""

    def become(caller: Caller | None = None) -> None:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            monkeypatch.delenv(name)
        for name, value in ministack.environment(caller).items():
            monkeypatch.setenv(name, value)

    become()
    return become


def _need_ministack() -> None:
    if ministacks.binary() is None:
        if os.environ.get("CI"):
            pytest.fail("ministack is not installed: `make .ministack/.installed`")
        pytest.skip("ministack is not installed: `make .ministack/.installed`")


def _need_weed() -> None:
    if seaweedfs.binary() is None:
        if os.environ.get("CI"):
            pytest.fail("SeaweedFS (weed) is not installed; it belongs to the dev dependencies")
        pytest.skip("SeaweedFS (weed) is not installed")
