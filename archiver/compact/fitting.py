"""Limits met by carrying less: outputs as head and tail, or by what is said of them alone, as policies say.

Nothing that a model or a harness reads again is touched: what goes are artifacts, contents of the workspace,
the copy of the whole transcript, and the middle of files whose format nobody knows. What then is still too
large, `pack` refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

from archiver.compact.artifacts import FOLDER, described
from archiver.compact.compaction import Compacted
from archiver.compact.ends import ends, too_short
from archiver.compact.files import KEPT as FILE_KEPT
from archiver.compact.files import OpaqueFiles
from archiver.compact.notes import Content, CutOutput
from archiver.compact.text import encode
from archiver.compact.workspace_files import MAX_NAMED, LeftFile, WorkspaceFiles
from archiver.model import Artifact, Checkpoint, Cut, Member
from archiver.model.limits import Limits
from archiver.scratch import Scratch

KEPT: Final = 64 << 10
"""Bytes of head, and as many of tail, that are kept of an output."""
_OTHERS: Final = 4
"""Members of a bundle that compaction does not make: state, effects, evidence, receipt."""
_TOLD: Final = 4 << 10
"""Bytes that list and receipt may need to say what became of one output."""
_TOLD_FILE: Final = 512
"""The same that the receipt may need of one file of the workspace, if it names it."""
_DIGEST: Final = 67
"""Bytes of its digest among those that are not carried."""
_FULL: Final = "full/"
_WORKSPACE: Final = "workspace/"

_SMALL: Final = 64
"""A file gets down to this part of a bundle, at head and at tail, where an eighth is too much."""

Limit = Literal["artifact", "bundle", "member", "members", "run"]
Done = Literal["head-and-tail", "reference"]


@dataclass(frozen=True, slots=True)
class Fitted:
    """A compacted checkpoint with no more than there is room for, and what there was no room for."""

    compacted: Compacted
    cuts: tuple[Cut, ...]
    pressed: bool = False
    """Whether there was more than the bundle has room for."""
    over: bool = False
    """Whether there still is, and nothing more that may be left out."""


def fit(
    compacted: Compacted,
    limits: Limits,
    scratch: Scratch,
    *,
    others: Callable[[Checkpoint], int],
    full: bool = False,
    held: Container[str] = (),
) -> Fitted:
    """Apply the limits to a compacted checkpoint, as their policies say.

    `others` gives the bytes of the members that are not in `compacted`; it is asked only where these count.
    `full`: the run has met its limit. `held`: paths of members that a base has. Raises `LimitExceededError`
    for an artifact over its limit where the policy is `refuse`.
    """
    work = _Fitting(compacted, limits, scratch, held)
    work.each()
    if full:
        work.run()
    work.bundle(others)
    if not work.cuts:
        return Fitted(compacted, (), work.pressed, work.over)
    checkpoint = compacted.checkpoint.derive(work.checkpoint)
    members = compacted.members.derive(work.members)
    made = replace(compacted, checkpoint=checkpoint, members=members)
    return Fitted(made, tuple(work.cuts.values()), work.pressed, work.over)


@dataclass(slots=True)
class _Output:
    """An artifact: its whole content, what is carried of it now, and what the list says of it."""

    whole: Member
    now: Member | None
    listed: Artifact | None
    made: Artifact | None = None
    """What the list says of its head and tail."""

    @property
    def size(self) -> int:
        return self.now.size if self.now else 0


class _Fitting:
    def __init__(self, compacted: Compacted, limits: Limits, scratch: Scratch, held: Container[str]) -> None:
        self.cuts: dict[str, Cut] = {}
        """By the member or the name of what was cut."""
        self.pressed = self.over = False
        """Whether a limit of the bundle was met, and whether it still is."""
        self._limits, self._scratch = limits, scratch
        self._checkpoint = checkpoint = compacted.checkpoint.value
        listed = {f"{FOLDER}/{artifact.sha256}": artifact for artifact in checkpoint.artifacts}
        members = compacted.members.value
        self._outputs = {
            member.path: _Output(member, member, listed.get(member.path))
            for member in members
            if member.path.startswith(f"{FOLDER}/")
        }
        self._full = sum(member.size for member in members if member.path.startswith(_FULL))
        self._without_full = False
        self._rest = sum(member.size for member in members if member.path not in self._outputs) - self._full
        self._count = len(members)
        self._files = OpaqueFiles(checkpoint.transcript, members, scratch)
        self._workspace = WorkspaceFiles(members, held)
        self._more = ""
        """What stands in the receipt for files beyond those that it names."""

    def each(self) -> None:
        """The limit of one artifact, and of one file of the workspace, which is a member."""
        limits = self._limits
        if limits.bundle_policy != "refuse":
            for file in self._workspace.largest(limits.member):
                self._leave(file, "member")
        for output in self._outputs.values():
            if output.whole.size <= limits.largest_artifact:
                continue
            if limits.artifact_policy == "refuse":
                limits.check_artifact(output.whole.path, output.whole.size)
            keep = min(KEPT, limits.largest_artifact // 4)
            if limits.artifact_policy == "reference" or not self._shorten(output, "artifact", keep):
                self._drop(output, "artifact")

    def run(self) -> None:
        """The limit of a run is met: what its policy says of every artifact, and of what is large and new."""
        policy = self._limits.run_policy
        for file in self._workspace.largest(KEPT, new=True) if policy != "refuse" else ():
            self._leave(file, "run")
        for output in self._carried() if policy != "refuse" else ():
            if policy == "reference" or (
                not too_short(output.size, KEPT) and not self._shorten(output, "run")
            ):
                self._drop(output, "run")

    def bundle(self, others: Callable[[Checkpoint], int]) -> None:
        """The limits of the bundle, in members and in bytes."""
        limits = self._limits
        if limits.bundle_policy == "refuse":
            return
        over = self._count + _OTHERS - limits.members
        self.pressed = over > 0
        for output in list(reversed(self._carried()))[: max(0, over)]:
            self._drop(output, "members")  # of the smallest the list tells most
        for file in self._workspace.largest()[: max(0, self._count + _OTHERS - limits.members)]:
            self._leave(file, "members")
        self.over = self._count + _OTHERS > limits.members
        if self._size() + _OTHERS * limits.member <= limits.bundle:
            return
        room = limits.bundle - others(self._checkpoint) - _TOLD * (len(self._outputs) + _OTHERS)
        self.pressed |= self._size() > room
        if limits.bundle_policy == "head-and-tail":
            self._until(room, lambda output: self._shorten(output, "bundle"))
        if self._size() > room and self._full and self._workspace.largest():
            self._leave_full()  # a copy, before any file that is the only one
        self._reference_until(room)
        if self._size() > room and self._full and not self._without_full:
            self._leave_full()
        self._files_until(room)
        self.over |= self._size() > room

    def checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        """The checkpoint with what the list says of heads and tails, behind what they stand for."""
        made = {output.whole.path: output.made for output in self._outputs.values() if output.made}
        listed = [
            one
            for artifact in checkpoint.artifacts
            for one in (artifact, made.get(f"{FOLDER}/{artifact.sha256}"))
            if one is not None
        ]
        full = None if self._without_full else checkpoint.full_transcript
        changes = {
            "artifacts": tuple(listed),
            "transcript": self._files.transcript(),
            "full_transcript": full,
        }
        return checkpoint.model_copy(update=changes)

    def members(self, members: tuple[Member, ...]) -> tuple[Member, ...]:
        """The members that are carried."""
        kept: list[Member] = []
        for member in members:
            output = self._outputs.get(member.path)
            if output is not None:
                kept += [output.now] if output.now else []
            elif not (self._without_full and member.path.startswith(_FULL)):
                instead = self._workspace if member.path.startswith(_WORKSPACE) else self._files
                kept += instead.instead(member)
        return tuple(kept)

    def _carried(self) -> list[_Output]:
        """What is carried of artifacts, the largest first."""
        return sorted((one for one in self._outputs.values() if one.now), key=lambda one: -one.size)

    def _size(self) -> int:
        outputs = sum(output.size for output in self._outputs.values())
        cut = self._files.saved + self._workspace.saved - self._told()
        return outputs + self._rest - cut + (0 if self._without_full else self._full)

    def _told(self) -> int:
        """Bytes that it takes to say which files of the workspace are not carried."""
        count = self._workspace.count
        return _TOLD_FILE * min(count, MAX_NAMED) + _DIGEST * count

    def _until(self, room: int, less: Callable[[_Output], object]) -> None:
        """Carry less of the artifacts, the largest first, until there is room."""
        size = self._size()
        for output in self._carried():
            if size <= room:
                return
            size -= output.size
            less(output)
            size += output.size

    def _shorten(self, output: _Output, limit: Limit, keep: int = KEPT) -> bool:
        """Carry head and tail of an artifact; false where it is no text, or no longer than these."""
        whole = output.whole
        if output.made is not None or output.listed is None:
            return False
        if not output.listed.media_type.startswith("text/"):
            return False
        found = ends((whole.source,), whole.size, keep)
        if found is None:
            return False
        digest = output.listed.sha256
        text = str(CutOutput(*found, Content(whole.size, digest)))
        spool = self._scratch.spool("cut")
        spool.write(encode(text))
        kept = spool.close()
        path = f"{FOLDER}/{kept.sha256}"
        output.now = Member(path, kept.path, kept.size, kept.sha256)
        summary = f"head and tail of {whole.size} bytes; sha256 {digest}"
        output.made = described(text, encode(text), summary, kept.sha256)
        self._say(whole.path, limit, "head-and-tail", whole.size, kept.size, path)
        return True

    def _drop(self, output: _Output, limit: Limit) -> None:
        """Carry nothing of an artifact but what the list says of it."""
        output.now = output.made = None
        self._count -= 1
        self._say(output.whole.path, limit, "reference", output.whole.size)

    def _reference_until(self, room: int) -> None:
        """Carry nothing of artifacts and files of the workspace, the largest first, until there is room."""
        outputs = [(one.size, partial(self._drop, one, "bundle")) for one in self._carried()]
        files = [
            (one.member.size, partial(self._leave, one, "bundle"))
            for one in self._workspace.largest(_TOLD_FILE + _DIGEST)
        ]
        size = self._size()
        for less, leave in sorted((*outputs, *files), key=lambda one: -one[0]):
            if size <= room:
                return
            before = self._told()
            leave()
            size += self._told() - before - less

    def _leave(self, file: LeftFile, limit: Limit) -> None:
        """Carry nothing of a file but what the tree says of it: path, size and digest."""
        self._workspace.leave(file)
        self._count -= 1
        size, count = file.member.size, self._workspace.count
        if count <= MAX_NAMED:
            self._say(file.name, limit, "reference", size)
        else:
            before = self.cuts.pop(self._more, None)
            self._more = f"{count - MAX_NAMED} more files of {_WORKSPACE}"
            self._say(self._more, limit, "reference", size + (before.size if before else 0))

    def _leave_full(self) -> None:
        self._without_full = True
        self._say(_FULL, "bundle", "reference", self._full)

    def _files_until(self, room: int) -> None:
        """Cut files of unknown formats, the largest first, until there is room."""
        limits = self._limits
        for keep in (min(FILE_KEPT, limits.bundle // 8), min(KEPT, limits.bundle // _SMALL)):
            for number in self._files.largest():
                if self._size() <= room:
                    return
                done = self._files.cut(number, limits.bundle_policy, keep)
                if done is not None:
                    policy: Done = "head-and-tail" if done.kept else "reference"
                    self._say(done.name, "bundle", policy, done.size, done.kept, done.path)

    def _say(
        self,
        member: str,
        limit: Limit,
        policy: Done,
        size: int,
        kept: int = 0,
        path: str | None = None,
    ) -> None:
        self.cuts[member] = Cut(member=member, limit=limit, policy=policy, size=size, kept=kept, kept_as=path)
