"""Members to frames: read once, hashed on the way, compressed on several threads, written in order."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from pydantic import ValidationError

from archiver.errors import DigestMismatchError, InputNotFoundError, InvalidNameError, LimitExceededError
from archiver.model.limits import MAX_CHAIN, MAX_MANIFEST, Limits
from archiver.model.manifest import (
    MANIFEST,
    BaseRef,
    Manifest,
    ManifestHead,
    ManifestMember,
    check_apart,
)
from archiver.model.member import Member
from archiver.model.record import BundleRef
from archiver.pack import dictionary, tar
from archiver.pack.frames import CONTENT, Codec
from archiver.progress import Progress, Silent
from archiver.redacted import Redacted

Write = Callable[[bytes], object]


class Payload(Protocol):
    """What the container says of the bytes it sealed."""

    @property
    def payload_sha256(self) -> str:
        """Of the sealed payload, hex."""

    @property
    def payload_length(self) -> int:
        """Bytes of the sealed payload."""


Held = tuple[int, str, int]
"""What a table says of one path: size, SHA-256 and mode."""


@dataclass(frozen=True, slots=True)
class Base:
    """An earlier bundle of the run, whose members need not be packed again where they are the same."""

    bundle: str
    """Its name in the store."""
    manifest_sha256: str
    chain: tuple[int, ...]
    """Numbers of all bundles that its members lie in or that lead to those, its own the last."""
    table: Mapping[str, Held]
    """All of its members by path, wherever they lie."""
    text: bytes = b""
    """What a bundle that is based on it is compressed behind (`dictionary.of`)."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Members of a base that a bundle has as they are, though nobody has read them again."""

    paths: frozenset[str] = frozenset()
    size: int = 0
    """Bytes of all of them."""


@dataclass(frozen=True, slots=True)
class Packed:
    """What was written: the manifest and its SHA-256, bytes of the members here, bytes of all frames."""

    manifest: Manifest
    manifest_sha256: str
    unpacked: int
    packed: int
    frames: tuple[int, ...] = ()
    """Bytes of each frame after that of the manifest."""
    bases: tuple[int, ...] = ()
    """Numbers of the bundles that the other members lie in or that lead to those."""
    text: bytes = b""
    """What a bundle that is based on this one is compressed behind; empty unless asked for."""

    def ref(self, name: str, payload: Payload) -> BundleRef:
        """What the record says of the bundle `name` that holds this archive as `payload`."""
        return BundleRef(
            name=name,
            payload_sha256=payload.payload_sha256,
            payload_length=payload.payload_length,
            manifest_sha256=self.manifest_sha256,
            members=len(self.manifest.members),
            unpacked=self.unpacked,
            bases=self.bases,
            frames=self.frames if len(self.frames) > 1 else (),
        )


def pack(
    members: Redacted[tuple[Member, ...]],
    head: ManifestHead,
    write: Write,
    *,
    limits: Limits,
    threads: int = 2,
    progress: Progress | None = None,
    base: Base | None = None,
    kept: Kept = Kept(),
    lending: bool = False,
) -> Packed:
    """Write the members as frames, in order, through `write`; each has been decoded and compared before.

    Those that are in the table of `base` with the same path, size, digest and mode are not written, nor those
    that are `kept` of it, none of which is among the members. `lending`: others may be based on this one.
    Errors: `LimitExceededError`, `InvalidNameError` (a path), `DigestMismatchError` (a member that changed),
    `InputNotFoundError` (one that cannot be read), and `TypeError` for what redaction did not make.
    """
    if not isinstance(members, Redacted):
        raise TypeError("only members that went through redaction can be packed")
    here = members.value if base is None else new(members.value, base.table)
    before = base.text if base is not None and dictionary.pays(here, len(base.text)) else b""
    manifest = _manifest(members.value, here, head, limits, base, kept, before)
    with _Frames(write, threads) as frames:
        frames.put_alone(tar.manifest_entry(manifest.raw, head.mtime))
        if before:
            frames.use(before)
        for member in here:
            frames.put(tar.header(member.path, member.size, member.mode, head.mtime))
            _put_content(member, frames, progress or Silent())
            frames.put(tar.padding(member.size))
        frames.put(tar.END)
    chain = base.chain if base is not None else ()
    sizes = tuple(frames.sizes[1:])
    text = dictionary.of(members.value) if lending and not any(map(dictionary.is_text, kept.paths)) else b""
    return Packed(manifest, manifest.sha256, manifest.unpacked, sum(frames.sizes), sizes, chain, text)


def new(members: tuple[Member, ...], table: Mapping[str, Held]) -> tuple[Member, ...]:
    """The members that are not in the table of a base as they are now."""
    return tuple(one for one in members if table.get(one.path) != (one.size, one.sha256, one.mode))


def _manifest(
    members: tuple[Member, ...],
    here: tuple[Member, ...],
    head: ManifestHead,
    limits: Limits,
    base: Base | None,
    kept: Kept,
    before: bytes,
) -> Manifest:
    limits.check_members(len(members) + len(kept.paths))
    total = kept.size
    for member in members:
        total += member.size
        limits.check_member(member.path, member.size)
        limits.check_bundle(member.path, total)
    table = tuple(map(_entry, here))
    fields = head.model_dump(exclude={"mtime"})
    try:
        if base is not None:
            fields |= _on(base, members, here, kept)
        if before:
            fields |= {"format": 3, "dictionary": len(before)}
        manifest = Manifest(**fields, members=table)
    except (ValidationError, _ClashError) as error:
        raise InvalidNameError(f"the members cannot be packed: {_reason(error)}") from error
    if len(manifest.raw) > MAX_MANIFEST:
        raise LimitExceededError(
            f"{MANIFEST} has {len(manifest.raw)} bytes, the limit is {MAX_MANIFEST}",
            remedy="archive fewer files, or files with shorter paths",
        )
    return manifest


class _ClashError(ValueError):
    """Two members that are not both new cannot stand in one table."""


def _on(base: Base, members: tuple[Member, ...], here: tuple[Member, ...], kept: Kept) -> dict[str, Any]:
    """What an incremental table says of its base."""
    if len(base.chain) >= MAX_CHAIN:
        raise LimitExceededError(
            f"{base.bundle} ends a chain of {len(base.chain)} bundles, and {MAX_CHAIN} is the most",
            remedy="have a full bundle written: lower `run.full_every`",
        )
    if not kept.paths <= base.table.keys():
        raise ValueError("only what lies in the base can be kept of it")
    paths = {member.path for member in members}
    added = any(member.path not in base.table for member in here)
    if len(paths) != len(members) or (added and not _are_apart(paths, kept.paths)):
        try:
            check_apart((*(member.path for member in members), *kept.paths))
        except ValueError as error:
            raise _ClashError(str(error)) from error
    return {
        "format": 2,
        "base": BaseRef(bundle=base.bundle, sha256=base.manifest_sha256),
        "dropped": tuple(sorted(base.table.keys() - kept.paths - paths)),
    }


def _are_apart(*paths: Collection[str]) -> bool:
    """Whether none of the paths, each of which is there once, is a folder of another."""
    folders = set[str]()
    for path in chain(*paths):
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return folders.isdisjoint(chain(*paths))


def _entry(member: Member) -> ManifestMember:
    try:
        return ManifestMember(path=member.path, mode=member.mode, size=member.size, sha256=member.sha256)
    except ValidationError as error:
        raise InvalidNameError(f"member {member.path!r} cannot be packed: {_reason(error)}") from error


def _reason(error: ValidationError | _ClashError) -> str:
    if isinstance(error, _ClashError):
        return str(error)
    return error.errors(include_url=False)[0]["msg"]


def _put_content(member: Member, frames: _Frames, progress: Progress) -> None:
    digest = hashlib.sha256()
    if isinstance(member.source, Path):
        size = _copy(member.source, member, digest.update, frames, progress)
    else:
        size = len(member.source)
        digest.update(member.source)
        if size == member.size:
            frames.put(member.source)
            progress.advance(size)
    if size != member.size or digest.hexdigest() != member.sha256:
        raise DigestMismatchError(
            f"member {member.path} is not what it was when it was made", remedy="archive the run again"
        )


def _copy(
    path: Path, member: Member, update: Callable[[memoryview], object], frames: _Frames, progress: Progress
) -> int:
    """Move a file's bytes into frames; returns how many it has, one more than wanted standing for more."""
    left = member.size
    try:
        with path.open("rb", buffering=0) as file:
            while left:
                space = frames.space(left)
                count = file.readinto(space) or 0
                if not count:
                    break
                update(space[:count])
                frames.took(count)
                left -= count
                progress.advance(count)
            return member.size - left + len(file.read(1) or b"")
    except OSError as error:
        raise InputNotFoundError(
            f"member {member.path} cannot be read: {error.strerror}", remedy="archive the run again"
        ) from error


class _Frames:
    """Collects bytes into frames and writes them in order; at most `threads` + 1 wait to be compressed."""

    def __init__(self, write: Write, threads: int) -> None:
        self.sizes: list[int] = []
        """Bytes of each frame so far."""
        self._write = write
        self._codec = Codec()
        self._pool = ThreadPoolExecutor(threads, "pack") if threads > 1 else None
        self._most = threads + 1
        self._waiting: deque[tuple[Future[bytes], bytearray]] = deque()
        self._free: list[bytearray] = []
        self._buffer = bytearray(CONTENT)
        self._used = 0

    def put_alone(self, content: bytes) -> None:
        """One frame of its own, whatever its size."""
        self._emit(self._codec.encode(content))

    def use(self, dictionary: bytes) -> None:
        """What is taken as said before each of the frames that follow."""
        self._codec = Codec(dictionary)

    def put(self, data: bytes) -> None:
        """Bytes of the stream."""
        rest = memoryview(data)
        while rest:
            space = self.space(len(rest))
            space[:] = rest[: len(space)]
            rest = rest[len(space) :]
            self.took(len(space))

    def space(self, most: int) -> memoryview:
        """Where the next bytes of the stream go: 1 to `most` of them; `took` says how many went there."""
        return memoryview(self._buffer)[self._used : self._used + most]

    def took(self, count: int) -> None:
        """`count` bytes have been put into the space."""
        self._used += count
        if self._used == CONTENT:
            self._submit(self._buffer)
            self._buffer = self._free.pop() if self._free else bytearray(CONTENT)
            self._used = 0

    def __enter__(self) -> _Frames:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._finish()
        finally:
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)

    def _submit(self, buffer: bytearray) -> None:
        if self._pool is None:
            self._emit(self._codec.encode(buffer))
            self._free.append(buffer)
            return
        try:
            coming = self._pool.submit(self._codec.encode, buffer)
        except RuntimeError:  # the program is ending, and no pool takes work any more: what is left is saved
            coming = Future()
            coming.set_result(self._codec.encode(buffer))
        self._waiting.append((coming, buffer))
        if len(self._waiting) >= self._most:
            self._emit_first()

    def _emit_first(self) -> None:
        future, buffer = self._waiting.popleft()
        self._emit(future.result())
        self._free.append(buffer)

    def _finish(self) -> None:
        if self._used and not self._waiting:  # all that is left, so no thread is begun for it
            self._emit(self._codec.encode(self._buffer[: self._used]))
        elif self._used:
            self._submit(self._buffer[: self._used])
        while self._waiting:
            self._emit_first()

    def _emit(self, frame: bytes) -> None:
        self._write(frame)
        self.sizes.append(len(frame))
