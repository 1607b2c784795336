"""Many runs on a real S3 server: the same answers as anywhere, in few requests."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
from many import fill, name_of
from servers.proxy import Fault, FaultProxy
from servers.seaweed import Seaweed
from servers.sent import counted

from archiver import layout, newest
from archiver.catalog import Catalog
from archiver.config import load
from archiver.errors import BundleMissingError, DigestMismatchError
from archiver.newest import place
from archiver.restore import plan, restore
from archiver.setup import Setup, open_setup
from archiver.store import open_store
from archiver.verify import verify

RUNS = 80


@pytest.fixture
def s3(s3_config: Path) -> Setup:
    return open_setup(load(s3_config), need="write")


def test_lists_of_a_few_hundred_runs(s3: Setup) -> None:
    fill(s3, range(RUNS), 2, all_bundles=False)
    heads = list(Catalog(s3).heads())
    assert [head.run for head in heads] == sorted(name_of(number) for number in range(RUNS))
    assert {(head.seq, head.error) for head in heads} == {(2, None)}
    with counted() as sent:
        found = newest.newest(s3, 20)
    assert list(found.heads) == sorted(heads, key=place)[:20]
    # A list and a GET for each run, also for those that were begun before the last one was found.
    assert len(sent) <= 1 + 2 * (20 + 2 * Catalog(s3).workers)
    assert not [thread for thread in threading.enumerate() if thread.name == "archiver-parallel"]


def test_a_plan_takes_few_requests(s3: Setup, s3_config: Path) -> None:
    fill(s3, range(1), 10)
    with counted() as sent:
        report = plan(name_of(0), open_setup(load(s3_config), need="read"))
    assert (report.seq, report.newest) == (10, 10)
    assert len(sent) < 20, sent


def test_verify_and_restore_many(s3: Setup, tmp_path: Path) -> None:
    fill(s3, range(12), 3)
    findings = list(verify(s3, deep=True))
    assert [finding for finding in findings if not finding.ok or finding.note.startswith("no")] == []
    runs = [finding.run for finding in findings]
    assert runs == sorted(runs, key=str)
    assert len(runs) == 12 * 3 * 2
    restored = restore(name_of(7), s3, into=tmp_path / "out", accept=("age",))
    assert restored.checkpoint.note == "step 3: 31 of 40 tests pass"
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".checkpoint")) == []


def test_a_bundle_that_nobody_signed_is_not_opened(s3: Setup, tmp_path: Path) -> None:
    """Of the right length but for its header, too long, or gone: each is named, and nothing is left over."""
    fill(s3, range(2), 2)
    record = Catalog(s3).read(name_of(0), 2).record
    other = Catalog(s3).read(name_of(1), 2).record
    assert record.bundle is not None
    assert other.bundle is not None
    name = record.bundle.name
    stranger = s3.store.read(other.bundle.name, limit=1 << 20)
    whole = s3.store.read(name, limit=1 << 20)
    long = whole + random.Random(1).randbytes(2 << 20)
    for body in (stranger, whole[:-1], whole[:-1] + b"x", long):
        s3.store.delete(name)
        s3.store.create(name, [body], retention="live")
        with pytest.raises(DigestMismatchError, match="is not the bundle that record 2"):
            restore(name_of(0), s3, into=tmp_path / "out", accept=("age",))
    s3.store.delete(name)
    with pytest.raises(BundleMissingError, match=layout.BUNDLES):
        restore(name_of(0), s3, into=tmp_path / "out", accept=("age",))
    assert not (tmp_path / "out").exists()
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".checkpoint")] == []


def test_an_interrupted_list_ends_at_once(
    s3: Setup, s3_config: Path, seaweed: Seaweed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while every record hangs, each for as long as all attempts take."""
    fill(s3, range(30), 1)
    with FaultProxy(seaweed.port) as proxy:
        proxy.script(Fault("hang", path="/records/.*age$", times=None))
        monkeypatch.setenv("ARCHIVER_STORE__ENDPOINT_URL", proxy.endpoint)
        monkeypatch.setenv("ARCHIVER_STORE__TIMEOUT", "600s")  # longer than this test waits
        words = [sys.executable, "-c", "from archiver.cli import main; main()", "list", "--config", s3_config]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            try:
                until = time.monotonic() + 120
                while sum(request.fault == "hang" for request in proxy.requests) < Catalog(s3).workers:
                    assert time.monotonic() < until, "the records were never asked for"
                    time.sleep(0.05)
                child.send_signal(signal.SIGINT)
                out, errors = child.communicate(timeout=120)
                assert (child.returncode, out, errors) == (130, "", "")
            finally:
                child.kill()


def test_memory_does_not_grow_with_the_runs(setup: Setup, tmp_path: Path) -> None:
    def peak(runs: range) -> int:
        store = open_store(str(tmp_path / f"store-{len(runs)}"), make=True)
        catalog = Catalog(replace(setup, store=store), workers=1)
        fill(replace(setup, store=store), runs, 1)
        assert next(catalog.heads()).error is None  # whatever is made once
        tracemalloc.start()
        try:
            assert sum(head.error is None for head in catalog.heads()) == len(runs)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    few, many = peak(range(50)), peak(range(250))
    assert many < few + 200 * 1000, "the records of as many more runs take ten times that"
