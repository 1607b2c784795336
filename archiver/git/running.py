"""One run of git: no program of the repository starts, memory, output and time are bounded."""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import shutil
import signal
import subprocess
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from time import monotonic

MAX_OUTPUT = 1 << 16
_MAX_MEMORY = 512 << 20
"""Bytes that git may hold: enough for a million files or commits."""
_PIECE = 1 << 16

Input = Path | bytes | Iterator[bytes] | None
"""What git reads: a file, bytes, pieces as they come; nothing."""

# In the order git applies them these beat the repository's own files. `safe.directory` lets us look at other
# people's repositories: what it protects from, the next lines switch off.
_OVERRIDES = {
    "safe.directory": "*",
    "safe.bareRepository": "explicit",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "core.pager": "cat",
    "core.editor": "false",
    "core.askPass": "false",
    "core.sshCommand": "false",
    "core.gitProxy": "",
    "core.alternateRefsCommand": "false",
    "credential.helper": "",
    "diff.external": "",
    "log.showSignature": "false",
    "submodule.recurse": "false",
    "protocol.allow": "never",
    "gc.auto": "0",
    "maintenance.auto": "false",
}


class GitError(Exception):
    """Git cannot answer; the text says why. Callers make an error of the package, or a verdict, of it."""


def collect(
    pieces: Generator[bytes, None, None], limit: int = MAX_OUTPUT, sink: Callable[[bytes], None] | None = None
) -> bytes:
    """At most `limit` bytes of an output; git is ended there. With a `sink` all of it goes there instead."""
    out = bytearray()
    with contextlib.closing(pieces):
        for piece in pieces:
            if sink is not None:
                sink(piece)
                continue
            out += piece[: limit - len(out)]
            if len(out) >= limit:
                break
    return bytes(out)


class Run:
    """One process of git; `status` is its exit status once all of its output has been taken."""

    def __init__(self, arguments: Sequence[str], environ: dict[str, str], deadline: float) -> None:
        overrides = [part for item in _OVERRIDES.items() for part in ("-c", "=".join(item))]
        self._command = [_git(), *overrides, "--no-pager", "--no-replace-objects", *arguments]
        self._environ = _environ() | environ
        self._deadline = deadline
        self.status = 0

    def pieces(self, given: Input = None, *, patient: bool = False) -> Generator[bytes, None, None]:
        """The output as it comes; `GitError` past the deadline. Whoever stops taking it ends the process.

        `patient`: time that the taker spends on a piece does not count.
        """
        feed = _feed(given)
        with (
            Path(given if isinstance(given, Path) else os.devnull).open("rb") as coming,
            subprocess.Popen(  # noqa: S603 - an absolute program, a list of arguments, no shell
                self._command,
                cwd="/",
                env=self._environ,
                stdin=coming if feed is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            ) as process,
        ):
            try:
                _confine(process)
                yield from self._taken(process, feed, patient=patient)
                self.status = self._ended(process)
            finally:
                _end(process)

    def _taken(
        self, process: subprocess.Popen[bytes], feed: Iterator[bytes] | None, *, patient: bool
    ) -> Generator[bytes, None, None]:
        assert process.stdout is not None  # noqa: S101 - opened as a pipe above
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            feeder = None if feed is None else _Feeder(process, feed, selector)
            while True:
                left = self._deadline - monotonic()
                ready = selector.select(left) if left > 0 else []
                if not ready:
                    raise GitError("git did not answer in time")
                for key, _ in ready:
                    if key.fileobj is not process.stdout:
                        assert feeder is not None  # noqa: S101 - nothing else is registered
                        feeder.on()
                        continue
                    piece = os.read(process.stdout.fileno(), _PIECE)
                    if not piece:
                        return
                    before = monotonic()
                    yield piece
                    if patient:
                        self._deadline += monotonic() - before

    def _ended(self, process: subprocess.Popen[bytes]) -> int:
        try:
            return process.wait(max(0.0, self._deadline - monotonic()))
        except subprocess.TimeoutExpired:
            raise GitError("git did not answer in time") from None


class _Feeder:
    """Writes what git reads, as far as it takes it: neither side waits for the other."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        feed: Iterator[bytes],
        selector: selectors.BaseSelector,
    ) -> None:
        assert process.stdin is not None  # noqa: S101 - opened as a pipe
        self._pipe = process.stdin
        self._feed = feed
        self._selector = selector
        self._left = memoryview(b"")
        os.set_blocking(self._pipe.fileno(), False)
        selector.register(self._pipe, selectors.EVENT_WRITE)

    def on(self) -> None:
        """Write once; at the end, or where git reads no more, close the pipe."""
        try:
            while not self._left:
                self._left = memoryview(next(self._feed))
            self._left = self._left[os.write(self._pipe.fileno(), self._left[:_PIECE]) :]
        except BlockingIOError:
            return
        except (StopIteration, BrokenPipeError):
            self._selector.unregister(self._pipe)
            with contextlib.suppress(BrokenPipeError):
                self._pipe.close()


def _feed(given: Input) -> Iterator[bytes] | None:
    if given is None or isinstance(given, Path):
        return None
    return iter((given,)) if isinstance(given, bytes) else given


def _confine(process: subprocess.Popen[bytes]) -> None:
    """Bound what git may hold in memory: it reads some files of a repository whole, however large."""
    if hasattr(resource, "prlimit"):  # Linux has it
        with contextlib.suppress(OSError):  # it has ended already
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (_MAX_MEMORY, _MAX_MEMORY))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and whatever it started."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def _git() -> str:
    """The absolute program; a relative entry in PATH could name one inside the suspect folder."""
    path = os.pathsep.join(entry for entry in os.get_exec_path() if Path(entry).is_absolute())
    found = shutil.which("git", path=path)
    if found is None:
        raise GitError("git is not installed on this machine")
    return found


def _environ() -> dict[str, str]:
    """A fresh environment: no variable of the caller steers git."""
    return {
        "PATH": os.pathsep.join(entry for entry in os.get_exec_path() if Path(entry).is_absolute()),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
    }
