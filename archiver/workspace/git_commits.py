"""Commits that no remote has: which they are, what they need, and their objects.

What a remote has is known from the remote-tracking refs of remotes that have an address: nothing is asked
over the network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from archiver.git import objects
from archiver.git.repository import OBJECT_ID
from archiver.git.running import GitError
from archiver.git.view import View

MAX_OBJECTS = 500_000
_MAX_REFS = 16 << 20
"""Bytes of the list of all remote-tracking refs."""
_MAX_BOUNDARY = 10_000
_MAX_HINT = 1000
"""Bytes of a path by which git finds similar objects; it takes no longer lines than a path may have."""


class CannotTravelError(GitError):
    """Why commits that no remote has are not carried."""


@dataclass(frozen=True, slots=True)
class Commits:
    """Commits to carry: refs that lead to them, what a repository needs before, lines of all objects."""

    view: View
    refs: dict[str, str]
    prerequisites: tuple[str, ...]
    listed: list[bytes] = field(repr=False)

    def stream(self, sink: Callable[[bytes], None]) -> None:
        """Write git's bundle of exactly these objects; `GitError` if one cannot be read."""
        for piece in objects.bundle(self.view, self.refs, self.prerequisites, self.listed):
            sink(piece)

    def objects(self) -> Iterator[objects.Object]:
        """Every object of the bundle, inflated; `GitError` if one cannot be read."""
        return objects.contents(self.view, (line[: line.find(b" ")].decode("ascii") for line in self.listed))


@dataclass(frozen=True, slots=True)
class Local:
    """What of the history is here alone: `count` commits, `tips` among them, and where it begins."""

    count: int
    tips: dict[str, str]
    boundary: tuple[str, ...]
    beginning: str | None
    """The newest commit of HEAD's history that a remote has."""
    asked: bytes
    """The question to `git rev-list`."""


def remote_tips(view: View, remotes: list[str]) -> set[str]:
    """Commits that remotes were seen to have, as far as they are here."""
    listed = view.repository.refs("refs/remotes/", _MAX_REFS)
    names = tuple(f"refs/remotes/{remote}/" for remote in remotes)
    ids = {one for name, one in listed.items() if name.startswith(names)} if names else set()
    return {
        found for found, _, _ in objects.sizes(view, (f"{one}^{{commit}}" for one in sorted(ids))).values()
    }


def local(view: View, tips: dict[str, str], seen: set[str]) -> Local:
    """Which commits of the tips' histories no remote has; `GitError` where history is missing."""
    if not tips:
        return Local(0, {}, (), None, b"")
    asked = "".join([*(f"{one}\n" for one in tips.values()), *(f"^{one}\n" for one in sorted(seen))]).encode()
    commits: set[bytes] = set()
    boundary: list[bytes] = []

    def take(line: bytes) -> None:
        if line.startswith(b"-"):
            boundary.append(line[1:])
        else:
            commits.add(line)
        if len(commits) > MAX_OBJECTS or len(boundary) > _MAX_BOUNDARY:
            raise CannotTravelError("there are too many of them")

    view.ask("rev-list", "--boundary", "--stdin", sink=objects.lines(take), stdin=asked)
    here = {name: one for name, one in tips.items() if one.encode("ascii") in commits}
    ends = tuple(sorted(one.decode("ascii") for one in boundary))
    return Local(len(commits), here, ends, _beginning(view, seen), asked)


def _beginning(view: View, seen: set[str]) -> str | None:
    if view.head is None or not seen:
        return None
    if view.head in seen:
        return view.head
    asked = "".join([f"{view.head}\n", *(f"^{one}\n" for one in sorted(seen))]).encode()
    ends: list[str] = []

    def take(line: bytes) -> None:
        if line.startswith(b"-") and len(ends) < _MAX_BOUNDARY:
            ends.append(line[1:].decode("ascii"))

    view.ask("rev-list", "--boundary", "--stdin", sink=objects.lines(take), stdin=asked)
    if not ends:
        return view.head if _is_seen(view, asked) else None
    newest = view.ask(
        "rev-list",
        "--no-walk=sorted",
        "--max-count=1",
        "--stdin",
        stdin="".join(f"{e}\n" for e in ends).encode(),
    )
    return _id(newest)


def _is_seen(view: View, asked: bytes) -> bool:
    """Whether nothing of HEAD's history is here alone."""
    return view.ask("rev-list", "--count", "--stdin", stdin=asked).strip() == b"0"


def _id(out: bytes) -> str | None:
    found = out.decode("ascii", "replace").strip()
    return found if OBJECT_ID.fullmatch(found) else None


def commits(view: View, found: Local, file: int, total: int) -> Commits | None:
    """The commits to carry; None where there are none. `CannotTravelError` says why they stay here.

    `file` and `total`: bytes of the largest object, and of all of them, inflated.
    """
    if not found.tips:
        return None
    if view.shallow and not _is_whole(view, found):
        raise CannotTravelError(
            "their history is cut here (a shallow clone), and no remote has its beginning"
        )
    listed: list[bytes] = []

    def take(line: bytes) -> None:
        one, _, path = line.partition(b" ")
        listed.append(one + b" " + path[:_MAX_HINT])
        if len(listed) > MAX_OBJECTS:
            raise CannotTravelError(f"they have more than {MAX_OBJECTS} objects")

    view.ask("rev-list", "--objects", "--stdin", sink=objects.lines(take), stdin=found.asked)
    ids = [line[: line.find(b" ")].decode("ascii") for line in listed]
    known = objects.sizes(view, ids)
    if len(known) != len(set(ids)):
        raise CannotTravelError("objects of them are missing here")
    largest = max((size for _, _, size in known.values()), default=0)
    if largest > file:
        raise CannotTravelError(f"a file in them has {largest} bytes, the limit of a file is {file}")
    if sum(size for _, _, size in known.values()) > total:
        raise CannotTravelError(f"their files have more than {total} bytes in all")
    return Commits(view, found.tips, found.boundary, listed)


def _is_whole(view: View, found: Local) -> bool:
    """Whether no commit at which the history was cut is among those to carry."""
    cut = set((view.private / "shallow").read_bytes().split())
    hit = False

    def take(line: bytes) -> None:
        nonlocal hit
        hit = hit or line in cut

    view.ask("rev-list", "--stdin", sink=objects.lines(take), stdin=found.asked)
    return not hit
