"""What the kinds of watched resources share: how they are seen, and how they are asked side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Generic, Protocol, TypeVar

from archiver import jsonio
from archiver.freshness.network import Answer, Network
from archiver.freshness.probe import Context
from archiver.freshness.unasked import Unasked
from archiver.freshness.verdict import Finding
from archiver.model import JsonValue

T = TypeVar("T")
Token = dict[str, JsonValue]

REDACTED = "[REDACTED:"
"""How a placeholder begins that redaction put into what was remembered: then it compares with nothing."""
LOOK = "look at what changed before going on; `--accept upstream` goes on anyway"


LATE = "no answer within the time of a probe"


class GoneError(Exception):
    """The resource is not there any more; the text says how that was seen."""


@dataclass(frozen=True, slots=True)
class World:
    """What resources are looked at through."""

    context: Context
    network: Network


class Kind(Protocol):
    """One kind of resource, whose version is told by a token of its own."""

    def see(self, address: str, world: World) -> Token:
        """The token as it is now; `Unasked` where none can be had, `GoneError` where nothing is."""

    def compare(self, address: str, then: Token, world: World) -> Finding:
        """What became of it since `then`; raises as `see` does."""


def check_status(answer: Answer) -> None:
    """Raise what a status means that is no success: gone, denied, elsewhere, or no answer for now."""
    status = answer.status
    if 200 <= status < 300 and status != 206:
        return
    if status in (404, 410):
        raise GoneError(f"it is gone (status {status})")
    if status in (401, 403, 407):
        raise Unasked(f"access is denied (status {status})", "probes send no credentials; look by hand")
    if 300 <= status < 400 and status != 304:
        raise Unasked(f"it redirects, which is not followed (status {status})", "watch where it leads to")
    if status == 429:
        raise Unasked("it answers too many requests already (status 429)", "try again later")
    if status >= 500:
        raise Unasked(f"the server failed (status {status})", "try again later")
    raise Unasked(f"it answered with status {status}")


def changed(what: str, token: str, then: str, now: str) -> Finding:
    """STALE: another token than then."""
    return Finding("STALE", f"{what}: {token} then {then}, now {now}", LOOK)


def side_by_side(
    tasks: Sequence[Callable[[], T]], until: float, *, instead: Callable[[int, str], T]
) -> list[T]:
    """What each task returns; `instead(index, reason)` for one that raised, or has not ended in time.

    Tasks run in threads of their own, which end when the tasks do.
    """
    running = [_Task(task) for task in tasks]
    return [
        task.done[0] if (reason := task.failure(until)) is None else instead(index, reason)
        for index, task in enumerate(running)
    ]


class _Task(Generic[T]):
    def __init__(self, function: Callable[[], T]) -> None:
        self.done: list[T] = []
        self._function = function
        self._kind: str | None = None
        self._thread = threading.Thread(target=self._run, name="archiver-resource", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.done.append(self._function())
        except BaseException as error:
            self._kind = type(error).__name__

    def failure(self, until: float) -> str | None:
        """Why nothing was returned; None when something was."""
        self._thread.join(max(0.0, until - monotonic()))
        if self.done:
            return None
        return f"looking at it failed with {self._kind}" if self._kind else LATE


def within(room: int, entries: Iterable[dict[str, JsonValue]]) -> list[JsonValue]:
    """The first of the entries, as many as have `room` bytes of JSON together."""
    kept: list[JsonValue] = []
    for entry in entries:
        room -= len(jsonio.dumps(entry))
        if room < 0:
            break
        kept.append(entry)
    return kept


def unseen(probes: Mapping[str, JsonValue]) -> Iterator[str]:
    """What was to be remembered and could not be, of what somebody named: whoever saves should know now."""
    for probe, many in (("upstream", "resources"), ("credentials", "credentials")):
        captured = probes.get(probe)
        if not isinstance(captured, dict) or not isinstance(rows := captured.get(many), list):
            continue
        for row in rows:
            why = row.get("not_seen", row.get("why")) if isinstance(row, dict) else None
            if isinstance(row, dict) and why:
                yield f"{row.get('at')} will not be compared at a restore: {why}"
        if captured.get("left_out"):
            yield f"{captured['left_out']} {many} were too many to remember"
