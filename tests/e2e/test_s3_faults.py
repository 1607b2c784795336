"""Networks and servers that fail in a save, a list or a restore: it works, and once, or says why not."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from servers.proxy import Fault, FaultProxy
from servers.seaweed import Seaweed

from archiver.catalog import Catalog
from archiver.errors import NoSuchRunError, StoreUnreachableError
from archiver.setup import Setup
from e2e.s3 import check_whole, keys, notes, opened, restored, save, uploads

TIMEOUT = timedelta(seconds=2)
BEFORE = ("refuse", "reset before", "hang")
BROKEN = (*BEFORE, "reset request", "reset response", "hang response", "drop", "duplicate")
BUNDLE, RECORD = "/bundles/", "/records/"


@pytest.fixture
def proxy(seaweed: Seaweed) -> Iterator[FaultProxy]:
    with FaultProxy(seaweed.port) as made:
        yield made


@pytest.fixture
def setup(s3_config: Path, proxy: FaultProxy) -> Setup:
    """The store behind the proxy, impatient."""
    return opened(s3_config, endpoint_url=proxy.endpoint, timeout=TIMEOUT, attempts=4)


def fault(kind: Any, **where: Any) -> Fault:
    """A reset or a stop in the middle of a body comes after a part of it."""
    middle = {"reset request": 300, "reset response": 100, "hang response": 100}
    return Fault(kind, after=middle.get(kind, 0), **where)


def saved_once(
    setup: Setup, proxy: FaultProxy, note: Path, url: str, seaweed: Seaweed, *faults: Fault
) -> None:
    """Two saves, the second with faults: both are there, once each, and nothing else is."""
    save(setup, note, "first")
    proxy.script(*faults)
    save(setup, note, "second")
    assert [request.fault for request in proxy.requests if request.fault], "no request fitted the fault"
    proxy.script()
    check_whole(setup, ["first", "second"])
    assert notes(setup) == ["first", "second"]
    assert len([key for key in keys(seaweed.client(), url) if BUNDLE in key]) == 2
    assert not uploads(seaweed.client(), url)


@pytest.mark.parametrize("path", [BUNDLE, RECORD])
@pytest.mark.parametrize("kind", ["refuse", "reset before", "reset request", "drop", "duplicate"])
def test_a_put_that_fails(
    kind: str, path: str, setup: Setup, proxy: FaultProxy, note: Path, s3_url: str, seaweed: Seaweed
) -> None:
    """Above all: when the answer to a put is lost, the save knows its own object again."""
    saved_once(setup, proxy, note, s3_url, seaweed, fault(kind, method="PUT", path=path))


def test_a_put_that_hangs(setup: Setup, proxy: FaultProxy, note: Path, s3_url: str, seaweed: Seaweed) -> None:
    saved_once(setup, proxy, note, s3_url, seaweed, fault("hang", method="PUT", path=RECORD))


def test_both_answers_are_lost(
    setup: Setup, proxy: FaultProxy, note: Path, s3_url: str, seaweed: Seaweed
) -> None:
    """And then the retries are lost too, and the reading that compares is refused once."""
    lost = [fault("drop", method="PUT", path=path, times=2) for path in (BUNDLE, RECORD)]
    refused = [fault("refuse", method="GET", path=path) for path in (f"{BUNDLE}.*-", f"{RECORD}r/00000002")]
    saved_once(setup, proxy, note, s3_url, seaweed, *lost, *refused)


def each_request_fails(
    kinds: tuple[str, ...], do: Callable[[Setup], Any], config: Path, seaweed: Seaweed, every: int = 1
) -> int:
    """Do it once for each of its requests and each kind of fault, several at a time; gives how often."""

    def once(kind: str, number: int) -> bool:
        with FaultProxy(seaweed.port) as proxy:
            setup = opened(config, endpoint_url=proxy.endpoint, timeout=TIMEOUT, attempts=4)
            proxy.script(fault(kind, at={number}))
            do(setup)
            return any(request.fault for request in proxy.requests)

    with FaultProxy(seaweed.port) as proxy:
        setup = opened(config, endpoint_url=proxy.endpoint)
        proxy.script()
        do(setup)
        count = len(proxy.requests)
    assert count
    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(once, kind, at) for kind in kinds for at in range(1, count + 1, every)]
        hits = [job.result() for job in jobs]
    print(f"{sum(hits)} faults in {do.__name__}")
    assert sum(hits) > len(hits) * 0.5, "too many faults found no request"
    return len(hits)


def look(setup: Setup) -> None:
    catalog = Catalog(setup)
    assert sorted(catalog.runs()) == ["other", "r"]
    assert [(head.run, head.seq, head.error) for head in catalog.heads()] == [
        ("other", 1, None),
        ("r", 2, None),
    ]


def bring_back(setup: Setup) -> None:
    assert restored(setup) == "second"


@pytest.fixture
def filled(s3_config: Path, note: Path) -> Path:
    setup = opened(s3_config)
    save(setup, note, "first")
    save(setup, note, "second")
    save(setup, note, "other", run="other")
    return s3_config


@pytest.mark.parametrize("do", [look, bring_back])
def test_a_read_that_fails(do: Callable[[Setup], None], filled: Path, seaweed: Seaweed) -> None:
    kinds = ("refuse", "reset response")
    assert each_request_fails(kinds, do, filled, seaweed, every=2) >= 4


@pytest.mark.soak
@pytest.mark.parametrize("do", [look, bring_back])
def test_every_read_fails_in_every_way(do: Callable[[Setup], None], filled: Path, seaweed: Seaweed) -> None:
    assert each_request_fails(BROKEN, do, filled, seaweed) >= 16


@pytest.mark.soak
def test_every_request_of_a_save_fails_in_every_way(
    s3_config: Path, note: Path, s3_url: str, seaweed: Seaweed
) -> None:
    runs = iter(range(10**6))

    def save_once(setup: Setup) -> None:
        run = f"run-{next(runs)}"
        save(setup, note, "only", run=run)
        check_whole(setup, ["only"], run)

    assert each_request_fails(BROKEN, save_once, s3_config, seaweed) >= 40
    setup = opened(s3_config)
    saved = list(Catalog(setup).runs())
    assert len([key for key in keys(seaweed.client(), s3_url) if BUNDLE in key]) == len(saved)
    assert not uploads(seaweed.client(), s3_url)


@pytest.mark.parametrize("kind", ["refuse", "reset before", "hang", "drop"])
def test_a_failure_for_ever_is_said_in_time(
    kind: str, s3_config: Path, note: Path, proxy: FaultProxy, seaweed: Seaweed, s3_url: str
) -> None:
    setup = opened(s3_config, endpoint_url=proxy.endpoint, timeout=timedelta(seconds=1), attempts=2)
    save(setup, note, "first")
    doings: list[Callable[[], Any]] = [
        lambda: save(setup, note, "second"),
        lambda: list(Catalog(setup).runs()),
        lambda: restored(setup),
    ]
    for do in doings:
        proxy.script(fault(kind, times=None))
        start = time.monotonic()
        with pytest.raises(StoreUnreachableError) as caught:
            do()
        assert time.monotonic() - start < 20
        assert caught.value.remedy
        assert proxy.endpoint.split("//")[1] in str(caught.value) or s3_url in str(caught.value)
    proxy.script()
    assert notes(setup) == ["first"]
    save(setup, note, "second")
    check_whole(setup, ["first", "second"])


@pytest.mark.parametrize("path", [BUNDLE, RECORD])
def test_a_save_that_cannot_be_finished_has_saved_nothing(
    path: str, s3_config: Path, note: Path, proxy: FaultProxy, seaweed: Seaweed, s3_url: str
) -> None:
    setup = opened(s3_config, endpoint_url=proxy.endpoint, timeout=timedelta(seconds=1), attempts=2)
    proxy.script(fault("reset request", method="PUT", path=path, times=None))
    with pytest.raises(StoreUnreachableError):
        save(setup, note, "never")
    proxy.script()
    with pytest.raises(NoSuchRunError):
        notes(setup)
    save(setup, note, "then")
    check_whole(setup, ["then"])
    assert not uploads(seaweed.client(), s3_url)


@pytest.mark.soak
def test_a_large_run_over_a_bad_network(
    s3_config: Path, tmp_path: Path, proxy: FaultProxy, seaweed: Seaweed, s3_url: str
) -> None:
    """Up in parts and down in ranges, while every third request fails in one way or another."""
    words = random.Random(7).randbytes(14_000_000).hex(" ", 3)
    large = tmp_path / "large.txt"
    large.write_text("\n".join(words[at : at + 70] for at in range(0, len(words), 70)), encoding="utf-8")
    setup = opened(
        s3_config, endpoint_url=proxy.endpoint, timeout=timedelta(seconds=5), attempts=6, part_size=5 << 20
    )
    kinds: list[Any] = ["reset request", "drop", "reset before", "reset response", "refuse"]
    proxy.script(
        *(
            Fault(kind, at=set(range(3 + 3 * turn, 300, 15)), times=None, after=1000)
            for turn, kind in enumerate(kinds)
        )
    )
    record = save(setup, large, "large").record
    assert record.sizes.stored > 12_000_000
    assert restored(setup) == "large"
    hit = [request.fault for request in proxy.requests if request.fault]
    print(f"{len(hit)} of {len(proxy.requests)} requests failed: {sorted(set(hit))}")
    assert len(set(hit)) >= 4
    proxy.script()
    check_whole(setup, ["large"])
    assert not uploads(seaweed.client(), s3_url)


def test_nobody_listens(s3_config: Path, note: Path, seaweed: Seaweed) -> None:
    with FaultProxy(seaweed.port) as proxy:
        setup = opened(s3_config, endpoint_url=proxy.endpoint, attempts=2)
    with pytest.raises(StoreUnreachableError):
        save(setup, note)


def test_a_slow_link_with_latency(s3_config: Path, note: Path, proxy: FaultProxy) -> None:
    """Long transfers are no timeouts: only silence is."""
    setup = opened(s3_config, endpoint_url=proxy.endpoint, timeout=timedelta(seconds=1.5), attempts=1)
    proxy.script(Fault("pass", times=None, wait=0.05, slow=1_500_000))
    start = time.monotonic()
    save(setup, note, "slow")
    assert restored(setup) == "slow"
    body = random.Random(7).randbytes(4_000_000)  # The last megabyte or so waits in buffers of the kernel.
    setup.store.create("effects/r/large.age", [body], retention="live")
    with setup.store.open("effects/r/large.age") as stream:
        assert stream.read() == body
    assert time.monotonic() - start > 4
