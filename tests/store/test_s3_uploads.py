"""Uploads in parts that are disturbed at each step: the object is there once and whole, or not at all."""

from __future__ import annotations

import hashlib
import itertools
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from e2e.s3 import keys, uploads
from servers.proxy import Fault, FaultProxy
from servers.seaweed import Seaweed

from archiver.aws.options import AwsOptions
from archiver.errors import AlreadyExistsError, ArchiverError, ObjectNotFoundError, StoreUnreachableError
from archiver.store import ObjectStore, S3Options, open_store
from archiver.store.s3 import S3Store

NAME = "bundles/r/00000001-0123456789abcdef.tar.zst.age"
PART = 5 << 20
BODY = random.Random(7).randbytes(PART + 77)
START, SEND, FINISH = "uploads", "partNumber=1", r"uploadId=[^&]*$"
STEPS = {"start": ("POST", START), "part": ("PUT", SEND), "finish": ("POST", FINISH)}


def blocks(body: bytes = BODY) -> Iterator[bytes]:
    return (body[start : start + (1 << 20)] for start in range(0, len(body), 1 << 20))


def at(url: str, endpoint: str, *, timeout: float = 3, attempts: int = 4) -> ObjectStore:
    aws = AwsOptions(endpoint_url=endpoint, timeout=timeout, attempts=attempts)
    return open_store(url, options=S3Options(aws, part_size=PART))


@pytest.fixture
def proxy(seaweed: Seaweed) -> Iterator[FaultProxy]:
    with FaultProxy(seaweed.port) as made:
        yield made


def content(store: ObjectStore, name: str = NAME) -> str:
    with store.open(name) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]


DIGEST = hashlib.sha256(BODY).hexdigest()


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    "kind",
    [
        "drop",
        *(pytest.param(kind, marks=pytest.mark.soak) for kind in ("refuse", "reset before", "duplicate")),
    ],
)
def test_a_step_that_fails_once(
    kind: Any, step: str, s3_url: str, proxy: FaultProxy, seaweed: Seaweed
) -> None:
    """When the last answer is lost, the upload is gone and the object is there: that is success."""
    method, path = STEPS[step]
    store = at(s3_url, proxy.endpoint)
    proxy.script(Fault(kind, method=method, path=path))
    info = store.create(NAME, blocks(), retention="live")
    assert [request for request in proxy.requests if request.fault], "no request fitted the fault"
    assert info.size == len(BODY)
    assert content(store) == DIGEST
    assert store.head(NAME).retention == "live"
    assert len(keys(seaweed.client(), s3_url)) == 1
    if kind == "duplicate" and step == "start":  # Nobody can know of the first one; it is tidied by its age.
        tidy(s3_url, seaweed)
    assert not uploads(seaweed.client(), s3_url)


def tidy(url: str, seaweed: Seaweed) -> None:
    """The clean-up of what nobody will finish, without waiting until it is old."""
    store = S3Store.at(url, S3Options(AwsOptions(endpoint_url=seaweed.endpoint)))
    for upload in store.abandoned_uploads(timedelta()):
        assert store.abort_upload(upload)


def test_a_part_that_is_reset_in_its_middle(s3_url: str, proxy: FaultProxy, seaweed: Seaweed) -> None:
    store = at(s3_url, proxy.endpoint)
    proxy.script(Fault("reset request", method="PUT", path="partNumber", after=PART // 2, times=2))
    store.create(NAME, blocks(), retention="live")
    assert content(store) == DIGEST
    assert not uploads(seaweed.client(), s3_url)


def test_an_answer_that_is_lost_until_all_begins_anew(
    s3_url: str, proxy: FaultProxy, seaweed: Seaweed
) -> None:
    """The first upload is complete and nobody knows; the second finds the name taken, by the same bytes."""
    proxy.script(Fault("drop", method="POST", path=FINISH, times=2))
    store = at(s3_url, proxy.endpoint, attempts=2)
    info = store.create(NAME, list(blocks()), retention="live")
    assert (info.size, content(store)) == (len(BODY), DIGEST)
    assert not uploads(seaweed.client(), s3_url)


@pytest.mark.parametrize(
    "step", ["part", *(pytest.param(step, marks=pytest.mark.soak) for step in ("start", "finish"))]
)
def test_a_step_that_fails_for_ever(step: str, s3_url: str, proxy: FaultProxy, seaweed: Seaweed) -> None:
    method, path = STEPS[step]
    store = at(s3_url, proxy.endpoint, attempts=2)
    proxy.script(Fault("refuse", method=method, path=path, times=None))
    with pytest.raises(StoreUnreachableError):
        store.create(NAME, blocks(), retention="live")
    with pytest.raises(ObjectNotFoundError):
        store.head(NAME)
    assert not uploads(seaweed.client(), s3_url), "what cannot be finished is aborted"
    proxy.script()
    store.create(NAME, blocks(), retention="live")
    assert content(store) == DIGEST


def test_a_body_that_ends_in_an_error(s3_url: str, seaweed: Seaweed) -> None:
    store = at(s3_url, seaweed.endpoint)

    def broken() -> Iterator[bytes]:
        yield from blocks()
        raise OSError("the disk that it came from")

    with pytest.raises((OSError, ArchiverError)):
        store.create(NAME, broken(), retention="live")
    assert not keys(seaweed.client(), s3_url)
    assert not uploads(seaweed.client(), s3_url)


def test_a_name_that_is_taken(s3_url: str, seaweed: Seaweed) -> None:
    store = at(s3_url, seaweed.endpoint)
    store.create(NAME, [b"first"], retention="live")
    with pytest.raises(AlreadyExistsError):
        store.create(NAME, blocks(), retention="live")
    assert store.read(NAME, limit=100) == b"first"
    assert not uploads(seaweed.client(), s3_url)


CREATE = """
import random, sys
sys.path.insert(0, sys.argv[1])
from store.test_s3_uploads import NAME, at, blocks
at(sys.argv[2], sys.argv[3]).create(NAME, blocks(), retention="live")
"""
MOMENTS = [
    ("start", "reset before", 0),
    ("start", "drop", 0),
    ("part", "reset request", PART // 2),
    ("part", "drop", 0),
    ("finish", "reset before", 0),
    ("finish", "drop", 0),
]


def killed(step: str, kind: Any, after: int, url: str, proxy: FaultProxy) -> None:
    """A process puts the object, and gets SIGKILL at that moment."""
    method, path = STEPS[step]
    started: list[subprocess.Popen[bytes]] = []
    fault = Fault(kind, method=method, path=path, after=after, do=lambda _: started[0].kill())
    proxy.script(fault)
    started.append(
        subprocess.Popen([sys.executable, "-c", CREATE, Path(__file__).parents[1], url, proxy.endpoint])
    )
    assert started[0].wait(120) == -signal.SIGKILL


def check_killed(step: str, kind: Any, after: int, url: str, proxy: FaultProxy, server: Seaweed) -> None:
    killed(step, kind, after, url, proxy)
    store = at(url, server.endpoint)
    there = keys(server.client(), url)
    if (step, kind) == ("finish", "drop"):
        assert len(there) == 1
        assert content(store) == DIGEST
    else:
        assert not there, "of an object that was not finished nothing is seen"
        store.create(NAME, blocks(), retention="live")
    assert len(uploads(server.client(), url)) == ((step, kind) not in (MOMENTS[0][:2], MOMENTS[-1][:2]))
    tidy(url, server)
    assert not uploads(server.client(), url)
    assert content(store) == DIGEST


@pytest.mark.parametrize(("step", "kind", "after"), [MOMENTS[2], MOMENTS[5]])
def test_killed_in_an_upload(
    step: str, kind: str, after: int, s3_url: str, proxy: FaultProxy, seaweed: Seaweed
) -> None:
    check_killed(step, kind, after, s3_url, proxy, seaweed)


@pytest.mark.soak
@pytest.mark.parametrize(("step", "kind", "after"), MOMENTS)
def test_killed_at_each_step_of_an_upload(
    step: str, kind: str, after: int, s3_url: str, proxy: FaultProxy, seaweed: Seaweed
) -> None:
    check_killed(step, kind, after, s3_url, proxy, seaweed)


def kill_server_in_uploads(server: Seaweed, url: str, kills: int) -> None:
    """Writers put large objects while the server is killed; what was acknowledged is whole."""
    store = at(url, server.endpoint, attempts=2)
    acknowledged: list[str] = []
    ended = threading.Event()

    def write(me: int) -> None:
        for number in itertools.count():
            name = f"bundles/run-{me}/{number:08d}-0123456789abcdef.tar.zst.age"
            if ended.is_set():
                return
            with suppress(StoreUnreachableError):
                store.create(name, blocks(), retention="live")
                acknowledged.append(name)

    with ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(write, me) for me in range(2)]
        try:
            for kill in range(kills):
                enough = len(acknowledged) + 2
                while len(acknowledged) < enough and not any(writer.done() for writer in writers):
                    time.sleep(0.01)
                time.sleep(0.023 * (kill % 9))
                server.kill()
                server.restart()
        finally:
            ended.set()
        for writer in writers:
            writer.result()
    there = [info.name for info in store.list()]
    assert set(acknowledged) <= set(there)
    for name in there:
        assert content(store, name) == DIGEST, "what is seen is whole"
    tidy(url, server)
    assert not uploads(server.client(), url)
    print(f"server killed {kills} times, {len(acknowledged)} uploads acknowledged, {len(there)} there")


@pytest.mark.soak
def test_server_killed_in_uploads_many_times(own_seaweed: Callable[[], Seaweed]) -> None:
    server = own_seaweed()
    kill_server_in_uploads(server, f"s3://{server.make_bucket()}/store", kills=20)
