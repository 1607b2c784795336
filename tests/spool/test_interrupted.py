"""Death, full disks, other processes and forks in the middle: what was kept is whole, and arrives once."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from archiver import layout
from archiver.catalog import Catalog
from archiver.errors import StoreFullError, StoreUnreachableError
from archiver.setup import Setup
from archiver.spool import disk, open_spool
from archiver.verify import verify

from .making import Failing, Hand, names, through

Make = Callable[..., Hand]
HERE = Path(__file__).parent


def killed(config: Path, every: int) -> list[dict[str, object]]:
    done = subprocess.run(
        [sys.executable, str(HERE / "killing.py"), str(config), str(every)],
        capture_output=True,
        text=True,
        timeout=1200,
        env={**os.environ, "TMPDIR": str(config.parent), "PYTHONPATH": str(HERE.parent)},
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(lines: list[dict[str, object]], least: int) -> None:
    assert len(lines) >= least
    assert lines[0]["kinds"] == []
    assert lines[-2]["kinds"] == ["skipped", "checkpoint", "checkpoint"]


def test_killed_at_steps(config: Path) -> None:
    check(killed(config, every=43), least=5)


@pytest.mark.soak
def test_killed_at_every_step(config: Path) -> None:
    check(killed(config, every=1), least=200)


DELIVER = """
import sys
from pathlib import Path
from archiver.config import load
from archiver.setup import open_setup
from archiver.spool import open_spool
setup = open_setup(load(Path(sys.argv[1])), need="write")
print("ready", flush=True)
sys.stdin.readline()
print(*open_spool(setup).of("r").deliver().delivered)
"""


def test_two_processes_deliver_at_once(config: Path, setup: Setup, hand: Make) -> None:
    writer = hand()
    for number in range(12):
        writer.save(f"save {number}")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", DELIVER, str(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    outs = [process.stdin for process in processes]
    for pipe in outs:
        assert pipe is not None
        pipe.write("go\n")
        pipe.flush()
    said = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sorted(int(word) for out in said for word in out.split()) == list(range(1, 13))
    assert len(names(setup, "bundles/")) == 12
    assert all(found.ok for found in verify(setup, "r", deep=True))


def test_adding_goes_on_while_a_store_hangs(setup: Setup, hand: Make) -> None:
    """A hanging upload holds up no save; and nobody else delivers meanwhile."""
    hangs, goes_on = threading.Event(), threading.Event()

    def hang(name: str) -> None:
        if layout.parse(name).kind == "bundle":
            hangs.set()
            assert goes_on.wait(120)

    writer = hand(by=through(setup, Failing(setup.store, before=hang)))
    writer.save("one")
    errors: list[BaseException] = []

    def deliver() -> None:
        try:
            writer.spool.deliver()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=deliver)
    thread.start()
    assert hangs.wait(120)
    writer.save("two")
    assert [entry.state for entry in writer.spool.entries()] == ["sent", "waiting"]
    path = open_spool(setup).folder / "r" / ".delivery"
    with pytest.raises(StoreUnreachableError, match="another process has held"):
        disk.hold(path, patience=0.05)
    goes_on.set()
    thread.join(120)
    assert not errors
    assert writer.spool.deliver().delivered == (2,)
    assert all(found.ok for found in verify(setup, "r", deep=True))


def test_a_forked_child_keeps_no_lock(setup: Setup, hand: Make) -> None:
    """A child that was forked in the middle of a change lives on; its parent is not held up by it."""
    writer = hand()
    writer.save("one")
    reading, writing = os.pipe()
    with writer.spool._folder.changing():
        child = os.fork()
        if child == 0:
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)
    os.close(reading)
    try:
        held = disk.hold(open_spool(setup).folder / "r" / ".lock", patience=0)
        assert held is not None
        disk.release(held)
    finally:
        os.close(writing)
        os.waitpid(child, 0)


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """No file of this process may be longer, as on a disk that is full; Python ignores the signal."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [0, 300, 1500])
def test_a_full_disk_keeps_nothing_half(size: int, setup: Setup, hand: Make) -> None:
    """Wherever it ends: in the record or in what is said of it."""
    writer = hand()
    writer.save("one")
    record, sealed, path = writer.sealed("no room")
    before = path.stat().st_size
    with pytest.raises(StoreFullError, match="the spool has no room"), small_files(size):
        writer.spool.add(record, sealed, path, plain=True)
    assert path.stat().st_size == before, "the bundle is where it was"
    assert [entry.seq for entry in writer.spool.entries()] == [1]
    assert not list((open_spool(setup).folder / "r" / ".tmp").iterdir())
    writer.spool.add(record, sealed, path, plain=True)
    assert writer.spool.deliver().delivered == (1, 2)


def test_a_failure_after_the_move_gives_the_bundle_back(
    setup: Setup, hand: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last step before an entry has its name fails: its bundle lies where its owner left it."""

    def full(_: object) -> None:
        raise StoreFullError("the spool has no room")

    writer = hand()
    record, sealed, path = writer.sealed("one")
    with monkeypatch.context() as patch, pytest.raises(StoreFullError):
        patch.setattr(writer.spool, "_skip", full)
        writer.spool.add(record, sealed, path, plain=True)
    assert path.is_file()
    assert writer.spool.entries() == ()
    writer.spool.add(record, sealed, path, plain=True)
    assert writer.spool.deliver().delivered == (1,)


def test_a_full_disk_is_emptied_by_delivery(setup: Setup, hand: Make) -> None:
    """Nothing is written for a delivery, or a disk that is full would stay full."""
    writer = hand()
    writer.save("one")
    writer.save("two")
    folder = writer.spool._folder
    with small_files(0):
        for _ in range(2):
            _, entry = folder.first_waiting()
            assert entry is not None
            with folder.changing():
                folder.mark(folder.mark(entry, "sent"), "delivered")
                folder.retire()
    head = writer.spool.head()
    assert head is not None
    assert (head.seq, head.delivered) == (2, True)


def test_another_file_system(setup: Setup, hand: Make, tmp_path: Path) -> None:
    """A bundle that cannot be renamed into the spool is copied, and then removed where it was."""
    shm = Path("/dev/shm")
    if not shm.is_dir() or shm.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system")
    writer = hand()
    record, sealed, path = writer.sealed("one", keep=shm)
    try:
        writer.spool.add(record, sealed, path, plain=True)
        assert not path.exists()
    finally:
        path.unlink(missing_ok=True)
    assert writer.spool.deliver().delivered == (1,)
    assert len(Catalog(setup).chain("r").links) == 1
    assert all(found.ok for found in verify(setup, "r", deep=True))
