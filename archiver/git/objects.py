"""Objects of a repository: which there are, how large they are, what is in them, and packs made of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing

from archiver.git.running import GitError
from archiver.git.view import View

Object = tuple[str, str, int, bytes]
"""Id, type, bytes, content."""

_PACKING = (
    "-c", "pack.threads=1", "-c", "pack.windowMemory=64m", "-c", "core.bigFileThreshold=16m",
    "pack-objects", "--stdout", "-q", "--delta-base-offset",
)  # fmt: skip
_SIGNATURES = {False: b"# v2 git bundle\n", True: b"# v3 git bundle\n@object-format=sha256\n"}


def lines(take: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """Gives each whole line, without its end, to `take`, from pieces of any length."""
    rest = b""

    def sink(piece: bytes) -> None:
        nonlocal rest
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            take(line)

    return sink


def sizes(view: View, names: Iterable[str]) -> dict[str, tuple[str, str, int]]:
    """Id, type and bytes of each object that is there, by the name that was asked for.

    A name is an id, or an expression such as `<id>^{commit}`; without line ends.
    """
    asked = list(names)
    found: dict[str, tuple[str, str, int]] = {}
    place = 0

    def take(line: bytes) -> None:
        nonlocal place
        name, place = asked[place], place + 1
        words = line.split(b" ")
        if len(words) == 3 and words[2].isdigit():
            found[name] = words[0].decode("ascii"), words[1].decode("ascii"), int(words[2])

    if asked:
        view.ask(
            "cat-file", "--batch-check", sink=lines(take), stdin="".join(f"{n}\n" for n in asked).encode()
        )
    if place != len(asked):
        raise GitError("git did not say of every object whether it is there")
    return found


def contents(view: View, ids: Iterable[str]) -> Iterator[Object]:
    """The objects, in this order; one at a time is in memory, so the caller looks at their sizes first."""
    asked = "".join(f"{one}\n" for one in ids).encode()
    if asked:
        yield from _parsed(view.pieces("cat-file", "--batch", stdin=asked))


def _parsed(pieces: Generator[bytes, None, None]) -> Iterator[Object]:
    """What `git cat-file --batch` says."""
    buffer = bytearray()
    with closing(pieces):
        for piece in pieces:
            buffer += piece
            while (end := buffer.find(b"\n", 0, 200)) >= 0:
                words = bytes(buffer[:end]).split(b" ")
                if len(words) != 3 or not words[2].isdigit():
                    raise GitError("an object is missing from the repository")
                size = int(words[2])
                while len(buffer) < end + size + 2:
                    buffer += _more(pieces)
                content = bytes(memoryview(buffer)[end + 1 : end + 1 + size])
                del buffer[: end + size + 2]
                yield words[0].decode("ascii"), words[1].decode("ascii"), size, content
    if buffer:
        raise GitError("an object was cut off")


def _more(pieces: Iterator[bytes]) -> bytes:
    for piece in pieces:
        return piece
    raise GitError("an object was cut off")


def bundle(
    view: View, refs: dict[str, str], prerequisites: Iterable[str], listed: list[bytes]
) -> Iterator[bytes]:
    """Git's own bundle of exactly the objects in `listed` (lines of id and path), piece by piece.

    What is in the prerequisites may be what objects are told by (a thin pack). `git bundle` writes the first
    lines of their messages beside them; here there are ids alone, because nobody has looked at the messages.
    """
    needed = list(prerequisites)
    head = _SIGNATURES[view.sha256]
    head += b"".join(b"-%s\n" % one.encode("ascii") for one in needed)
    head += b"".join(b"%s %s\n" % (one.encode("ascii"), name.encode()) for name, one in refs.items())
    yield head + b"\n"
    asked = b"".join(b"-%s\n" % one.encode("ascii") for one in needed) + b"".join(
        line + b"\n" for line in listed
    )
    yield from _counted(view.pieces(*_PACKING, stdin=asked), len(listed))


def _counted(pieces: Generator[bytes, None, None], count: int) -> Iterator[bytes]:
    """The pack as it is, if it says that it holds this many objects; else `GitError`."""
    start = bytearray()
    with closing(pieces):
        for piece in pieces:
            if len(start) >= 12:
                yield piece
                continue
            start += piece
            if len(start) >= 12:
                if start[:4] != b"PACK" or int.from_bytes(start[8:12], "big") != count:
                    raise GitError("git packed other objects than it was asked for")
                yield bytes(start)
    if len(start) < 12:
        raise GitError("git made no pack")
