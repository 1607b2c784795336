"""Networks and servers that fail in a save, a list or a restore: it works, and once, or says why not."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import product
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
PUTS = ("refuse", "reset before", "hang", "reset request", "drop", "duplicate")
"""What can become of a put; its answer has no body that could break off."""
BROKEN = (*PUTS, "reset response", "hang response")
BUNDLE, RECORD = "/bundles/", "/records/"


@pytest.fixture
def proxy(seaweed: Seaweed) -> Iterator[FaultProxy]:
    with FaultProxy(seaweed.port) as made:
        yield made


def fault(kind: Any, **where: Any) -> Fault:
    """A reset or a stop in the middle of a body comes after a part of it."""
    middle = {"reset request": 300, "reset response": 100, "hang response": 100}
    return Fault(kind, after=middle.get(kind, 0), **where)


def at_once(work: Callable[..., None], cases: dict[str, tuple[Any, ...]]) -> None:
    """Each case in a thread of its own, since they mostly wait; all that fail are told."""
    with ThreadPoolExecutor(len(cases)) as pool:
        jobs = {name: pool.submit(work, *case) for name, case in cases.items()}
    failed = []
    for name, job in jobs.items():
        if (error := job.exception()) is not None:
            error.add_note(f"in the case: {name}")
            failed.append(error)
    if failed:
        raise BaseExceptionGroup("cases that failed", failed)


def test_a_put_that_fails(s3_config: Path, note: Path, s3_url: str, seaweed: Seaweed) -> None:
    """Above all: when the answer to a put is lost, the save knows its own object again."""

    def saved_once(run: str, *faults: Fault) -> None:
        with FaultProxy(seaweed.port) as proxy:
            setup = opened(s3_config, endpoint_url=proxy.endpoint, timeout=TIMEOUT, attempts=4)
            save(setup, note, "first", run)
            proxy.script(*faults)
            save(setup, note, "second", run)
            assert [request.fault for request in proxy.requests if request.fault], "no request fitted"
            proxy.script()
            check_whole(setup, ["first", "second"], run)
            assert notes(setup, run) == ["first", "second"]
            assert len([key for key in keys(seaweed.client(), s3_url) if f"{BUNDLE}{run}/" in key]) == 2

    cases: dict[str, tuple[Any, ...]] = {
        f"{kind} at {path}": (f"run-{number}", fault(kind, method="PUT", path=path))
        for number, (kind, path) in enumerate(product(PUTS, (BUNDLE, RECORD)))
    }
    # Both answers, then those of the retries, and the reading that compares is refused once.
    lost = [fault("drop", method="PUT", path=path, times=2) for path in (BUNDLE, RECORD)]
    refused = [fault("refuse", method="GET", path=path) for path in (f"{BUNDLE}.*-", "/00000002")]
    at_once(saved_once, {**cases, "both answers are lost": ("both", *lost, *refused)})
    assert not uploads(seaweed.client(), s3_url)


def each_request_fails(
    kinds: tuple[str, ...],
    doings: tuple[Callable[[Setup], Any], ...],
    config: Path,
    seaweed: Seaweed,
    every: int = 1,
) -> int:
    """Do each once for each of its requests and each kind of fault, several at a time; gives how often."""

    def once(do: Callable[[Setup], Any], kind: str, number: int) -> bool:
        with FaultProxy(seaweed.port) as proxy:
            setup = opened(config, endpoint_url=proxy.endpoint, timeout=TIMEOUT, attempts=4)
            proxy.script(fault(kind, at={number}))
            do(setup)
            return any(request.fault for request in proxy.requests)

    with ThreadPoolExecutor(8) as pool:
        jobs = [
            pool.submit(once, do, kind, number)
            for do in doings
            for number in range(1, requests_of(do, config, seaweed) + 1, every)
            for kind in kinds
        ]
    hits = [job.result() for job in jobs]
    print(f"{sum(hits)} faults in {[do.__name__ for do in doings]}")
    assert sum(hits) > len(hits) * 0.5, "too many faults found no request"
    return len(hits)


def requests_of(do: Callable[[Setup], Any], config: Path, seaweed: Seaweed) -> int:
    """How many it makes when nothing fails."""
    with FaultProxy(seaweed.port) as proxy:
        setup = opened(config, endpoint_url=proxy.endpoint)
        proxy.script()
        do(setup)
        return len(proxy.requests)


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


def test_a_read_that_fails(filled: Path, seaweed: Seaweed) -> None:
    kinds = ("refuse", "reset response")
    assert each_request_fails(kinds, (look, bring_back), filled, seaweed, every=2) >= 8


@pytest.mark.soak
def test_every_read_fails_in_every_way(filled: Path, seaweed: Seaweed) -> None:
    assert each_request_fails(BROKEN, (look, bring_back), filled, seaweed) >= 64


@pytest.mark.soak
def test_every_request_of_a_save_fails_in_every_way(
    s3_config: Path, note: Path, s3_url: str, seaweed: Seaweed
) -> None:
    runs = iter(range(10**6))

    def save_once(setup: Setup) -> None:
        run = f"run-{next(runs)}"
        save(setup, note, "only", run=run)
        check_whole(setup, ["only"], run)

    assert each_request_fails(BROKEN, (save_once,), s3_config, seaweed) >= 80
    setup = opened(s3_config)
    saved = list(Catalog(setup).runs())
    assert len([key for key in keys(seaweed.client(), s3_url) if BUNDLE in key]) == len(saved)
    assert not uploads(seaweed.client(), s3_url)


def test_a_failure_for_ever_is_said_in_time(
    s3_config: Path, note: Path, seaweed: Seaweed, s3_url: str
) -> None:
    def said(kind: str, what: str) -> None:
        run = f"{kind} {what}".replace(" ", "-")
        with FaultProxy(seaweed.port) as proxy:
            setup = opened(s3_config, endpoint_url=proxy.endpoint, timeout=timedelta(seconds=1), attempts=2)
            save(setup, note, "first", run)
            doings: dict[str, Callable[[], Any]] = {
                "save": lambda: save(setup, note, "second", run),
                "list": lambda: list(Catalog(setup).runs()),
                "restore": lambda: restored(setup, run),
            }
            proxy.script(fault(kind, times=None))
            start = time.monotonic()
            with pytest.raises(StoreUnreachableError) as caught:
                doings[what]()
            assert time.monotonic() - start < 30
            assert caught.value.remedy
            assert proxy.endpoint.removeprefix("http://") in str(caught.value) or s3_url in str(caught.value)
            proxy.script()
            assert notes(setup, run) == ["first"]

    kinds = ("refuse", "reset before", "hang", "drop")
    at_once(
        said, {f"{kind} at {what}": (kind, what) for kind in kinds for what in ("save", "list", "restore")}
    )


def test_a_save_that_cannot_be_finished_has_saved_nothing(
    s3_config: Path, note: Path, seaweed: Seaweed, s3_url: str
) -> None:
    def given_up(run: str, path: str) -> None:
        with FaultProxy(seaweed.port) as proxy:
            setup = opened(s3_config, endpoint_url=proxy.endpoint, timeout=TIMEOUT, attempts=2)
            proxy.script(fault("reset request", method="PUT", path=path, times=None))
            with pytest.raises(StoreUnreachableError):
                save(setup, note, "never", run)
            proxy.script()
            with pytest.raises(NoSuchRunError):
                notes(setup, run)
            save(setup, note, "then", run)
            check_whole(setup, ["then"], run)

    at_once(given_up, {"bundle": ("a", BUNDLE), "record": ("b", RECORD)})
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
    setup = opened(s3_config, endpoint_url=proxy.endpoint, timeout=timedelta(seconds=1.2), attempts=1)
    proxy.script(Fault("pass", times=None, wait=0.05, slow=1_300_000))
    start = time.monotonic()
    save(setup, note, "slow")
    assert restored(setup) == "slow"
    body = random.Random(7).randbytes(2_400_000)  # The last megabyte or so waits in buffers of the kernel.
    setup.store.create("effects/r/large.age", [body], retention="live")
    with setup.store.open("effects/r/large.age") as stream:
        assert stream.read() == body
    assert time.monotonic() - start > 3
