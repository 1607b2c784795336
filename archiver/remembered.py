"""What one process keeps of the saves of one run, so that the next costs what has changed.

Nothing of it is believed: what is gone on from is compared first, byte by byte or by a digest, and the file
of redacted items by its times, because a save reads little of it. A save leaves something for the next one
only when all went well; so after any failure, and whenever anything before has changed, the next save does
all of the work.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from archiver.compact import CompactOptions, Kept, Reuse
from archiver.redact.growing import Grown, Keeping, Watching
from archiver.redact.scanned import Scanned
from archiver.scratch import Scratch
from archiver.workspace.memory import WorkspaceMemory


@dataclass(slots=True)
class RememberedTranscript:
    """What the last save left of the transcript: files in a folder of its own, and what they hold."""

    scratch: Scratch
    options: CompactOptions
    grown: Grown | None = None
    kept: tuple[Kept, ...] = ()
    scanned: Scanned = field(default_factory=Scanned)

    def is_whole(self) -> bool:
        """Whether nobody has removed what the next save needs."""
        return self.scratch.path.is_dir() and all(path.is_file() for path in self._files())

    def tidy(self) -> None:
        """Remove the files that no later save needs."""
        self.scratch.keep_only(self._files())

    def _files(self) -> set[Path]:
        members = (one for kept in self.kept for one in (*kept.members, *kept.artifacts.members))
        paths = {one.source for one in members if isinstance(one.source, Path)}
        return paths | ({self.grown.tape} if self.grown is not None else set())


@dataclass(slots=True)
class Remembered:
    """Used by one thread at a time; `close` when the run is closed."""

    transcript: RememberedTranscript | None = None
    workspace: WorkspaceMemory = field(default_factory=WorkspaceMemory)

    def close(self) -> None:
        """Remove all files; what is saved later begins anew."""
        transcript, self.transcript = self.transcript, None
        if transcript is not None:
            transcript.scratch.close()


class TranscriptSave:
    """The transcript in one save: what it goes on from, and what it leaves."""

    def __init__(self, held: RememberedTranscript, watching: Watching) -> None:
        self._held = held
        self.scratch = held.scratch
        self.scanned = held.scanned
        self.keeping = Keeping(held.scratch, watching, held.grown)
        self._reuse: Reuse | None = None

    def reuse(self) -> Reuse | None:
        """What compaction need not do again; None where the redacted items are not those that grow."""
        after = self.keeping.after
        if after is not None:
            self._reuse = Reuse(self.keeping.same, after.items, self._held.kept)
        return self._reuse

    def leave(self) -> None:
        """All went well: this is what the next save may go on from."""
        self._held.grown = self.keeping.after
        self._held.kept = self._reuse.after if self._reuse is not None else ()


@contextmanager
def going_on(
    remembered: Remembered | None, options: CompactOptions, watching: Watching, parent: Path | None
) -> Iterator[TranscriptSave | None]:
    """One save of the transcript, None where nothing is to be remembered.

    `parent` is where the folder is made that outlives the save. What leaves the block as an error leaves
    nothing to go on from. Raises what `Scratch` does.
    """
    if remembered is None:
        yield None
        return
    held = remembered.transcript
    if held is None or held.options != options or not held.is_whole():
        remembered.close()
        held = remembered.transcript = RememberedTranscript(Scratch(parent), options)
    try:
        yield TranscriptSave(held, watching)
        held.tidy()
    except BaseException:
        remembered.close()
        raise
