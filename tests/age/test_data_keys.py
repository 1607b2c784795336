"""Data keys in memory: how many calls are made, when a key goes, and who shares one."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from local_kms import ARN, BUNDLE, SECOND, LocalKms, identities, recipient

from archiver import age
from archiver.age import DataKeys, data_keys
from archiver.errors import KmsUnreachableError

HERE = Path(__file__).parent


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service() -> LocalKms:
    return LocalKms()


def sealing(keys: DataKeys, count: int, context: age.Context = BUNDLE) -> list[bytes]:
    files = []
    for _ in range(count):
        pieces: list[bytes] = []
        age.seal([recipient(keys, context=context)], pieces.append).close()
        files.append(b"".join(pieces))
    return files


def opening(keys: DataKeys, files: list[bytes], context: age.Context = BUNDLE) -> None:
    for data in files:
        with age.unseal(identities(keys, context=context), BytesIO(data)) as opened:
            opened.read()


def test_one_call_serves_the_files_of_one_window(service: LocalKms, clock: Clock) -> None:
    files = sealing(DataKeys(service, clock=clock), data_keys.FILES_PER_KEY)
    assert service.calls == {"generate": 1}
    opening(DataKeys(service, clock=clock), files)
    assert service.calls == {"generate": 1, "decrypt": 1}
    assert len({data.split(b"\n--- ")[0] for data in files}) == len(files)  # each with a salt of its own


def test_a_key_seals_and_opens_a_bounded_number_of_files(service: LocalKms, clock: Clock) -> None:
    files = sealing(DataKeys(service, files=3, clock=clock), 7)
    assert service.calls == {"generate": 3}
    opening(DataKeys(service, files=100, clock=clock), files)
    assert service.calls["decrypt"] == 3  # the blobs of three windows
    opening(DataKeys(service, files=2, clock=clock), files)
    assert service.calls["decrypt"] == 3 + 2 + 2 + 1


def test_a_key_lives_for_a_bounded_time(service: LocalKms, clock: Clock) -> None:
    keys = DataKeys(service, clock=clock)
    files = sealing(keys, 2)
    clock.now += data_keys.SECONDS_PER_KEY - 1
    files += sealing(keys, 2)
    assert service.calls["generate"] == 1
    clock.now += 1
    files += sealing(keys, 2)
    assert service.calls["generate"] == 2
    reader = DataKeys(service, clock=clock)
    opening(reader, files)
    assert service.calls["decrypt"] == 2
    clock.now += data_keys.SECONDS_PER_KEY
    opening(reader, files)
    assert service.calls["decrypt"] == 4


def test_a_key_serves_one_context_of_one_arn(service: LocalKms) -> None:
    keys = DataKeys(service)
    contexts = [BUNDLE, replace(BUNDLE, object="record"), replace(BUNDLE, run="r"), replace(BUNDLE, task="t")]
    for context in contexts:
        opening(keys, sealing(keys, 2, context), context)
    assert service.calls == {"generate": 4, "decrypt": 4}
    assert len({keys.to_seal(arn, context).plaintext for arn in (ARN, SECOND) for context in contexts}) == 8


def test_what_seals_does_not_open(service: LocalKms) -> None:
    """Otherwise a proof that a configuration works would hide that Decrypt is not allowed."""
    keys = DataKeys(service)
    files = sealing(keys, 1)
    service.fail[ARN.text] = KmsUnreachableError("down")
    with pytest.raises(KmsUnreachableError):
        opening(keys, files)


def test_a_failure_is_not_kept(service: LocalKms) -> None:
    keys = DataKeys(service)
    service.fail[ARN.text] = KmsUnreachableError("down")
    for _ in range(2):
        with pytest.raises(KmsUnreachableError):
            sealing(keys, 1)
    service.fail.clear()
    sealing(keys, 2)
    assert service.calls["generate"] == 3


def test_only_so_many_keys_are_held(service: LocalKms) -> None:
    keys = DataKeys(service, held=2)
    one, two, three = (replace(BUNDLE, run=name) for name in ("1", "2", "3"))
    for context in (one, two, one, three):  # the second was not used for longest
        keys.to_seal(ARN, context)
    assert service.calls["generate"] == 3
    keys.to_seal(ARN, one)
    assert service.calls["generate"] == 3
    keys.to_seal(ARN, two)
    assert service.calls["generate"] == 4


def test_threads_that_want_the_same_key_make_one_call(service: LocalKms) -> None:
    files = sealing(DataKeys(service), 64)
    keys = DataKeys(service)
    service.before = lambda: time.sleep(0.05)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda data: opening(keys, [data]), files))
    assert service.calls["decrypt"] == 1


def test_threads_that_want_other_keys_do_not_wait_for_each_other(service: LocalKms) -> None:
    keys, meet = DataKeys(service), threading.Barrier(4, timeout=30)
    service.before = meet.wait
    contexts = [replace(BUNDLE, run=str(number)) for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda context: keys.to_seal(ARN, context), contexts))
    assert len({key.plaintext for key in made}) == 4


def forked(work: Callable[[], bytes]) -> bytes:
    """What `work` returns in a forked child."""
    out, into = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: it is what is tested
        pid = os.fork()
    if pid == 0:
        try:
            os.write(into, work())
        finally:
            os._exit(0)
    os.close(into)
    with os.fdopen(out, "rb") as answer:
        said = answer.read()
    os.waitpid(pid, 0)
    return said


def test_a_forked_process_has_a_key_of_its_own(service: LocalKms) -> None:
    keys = DataKeys(service)
    before = keys.to_seal(ARN, BUNDLE).plaintext
    theirs = forked(lambda: keys.to_seal(ARN, BUNDLE).plaintext)
    assert len(theirs) == len(before) == 32
    assert theirs != before
    assert keys.to_seal(ARN, BUNDLE).plaintext == before


def test_a_fork_drops_keys_at_once(service: LocalKms) -> None:
    keys = DataKeys(service)
    keys.to_seal(ARN, BUNDLE)
    assert forked(lambda: str(len(keys._held)).encode()) == b"0"


def test_a_fork_while_a_thread_waits_for_kms(service: LocalKms) -> None:
    """The lock of that place is held by a thread that the child does not have."""
    keys, asked, go = DataKeys(service), threading.Event(), threading.Event()

    def wait() -> None:
        asked.set()
        go.wait(30)

    service.before = wait
    thread = threading.Thread(target=lambda: keys.to_seal(ARN, BUNDLE))
    thread.start()
    assert asked.wait(120)

    def work() -> bytes:
        service.before = lambda: None
        service._lock = threading.Lock()
        return keys.to_seal(ARN, BUNDLE).plaintext

    assert len(forked(work)) == 32
    go.set()
    thread.join()


def test_a_key_that_nobody_uses_goes_on_time(service: LocalKms) -> None:
    keys = DataKeys(service, seconds=0.2)
    keys.to_seal(ARN, BUNDLE)
    time.sleep(0.1)
    keys.to_seal(ARN, replace(BUNDLE, run="later"))
    assert len(keys._held) == 2
    end = time.monotonic() + 10
    while keys._held and time.monotonic() < end:
        time.sleep(0.01)
    assert not keys._held
    keys.to_seal(ARN, BUNDLE)
    assert service.calls["generate"] == 3


def test_a_process_that_ends_still_seals(service: LocalKms) -> None:
    """From Python 3.12 on nothing that runs at exit can start a thread; a save must not fail by it."""
    code = (
        "import atexit, local_kms\n"
        "keys = local_kms.DataKeys(local_kms.LocalKms())\n"
        "atexit.register(lambda: print(len(keys.to_seal(local_kms.ARN, local_kms.BUNDLE).plaintext)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("32\n", "", 0)


def test_where_no_thread_can_be_started(service: LocalKms, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    keys = DataKeys(service)
    assert keys.to_seal(ARN, BUNDLE) == keys.to_seal(ARN, BUNDLE)


def test_a_forgotten_cache_is_not_kept_alive_by_its_clock(service: LocalKms) -> None:
    keys = DataKeys(service)
    keys.to_seal(ARN, BUNDLE)
    gone = weakref.ref(keys)
    del keys
    gc.collect()
    assert gone() is None
