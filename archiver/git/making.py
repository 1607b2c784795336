"""A new repository: made without templates, filled without hooks, filters or anybody's configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from time import monotonic

from archiver.git.running import MAX_OUTPUT, GitError, Input, Run, collect

_QUIET = ("-c", "core.logAllRefUpdates=false", "-c", "core.bigFileThreshold=16m", "-c", "pack.threads=1")
_MAX_HEADER = 4 << 20


class NewRepository:
    """A repository of our own with its work tree at `folder`, which exists; `timeout` for each question."""

    def __init__(self, folder: Path, timeout: float, *, sha256: bool) -> None:
        self.folder = folder
        self.git_folder = folder / ".git"
        self._timeout = timeout
        self._environ = {
            "GIT_DIR": str(self.git_folder),
            "GIT_WORK_TREE": str(folder),
            "GIT_LITERAL_PATHSPECS": "1",
        }
        kind = "sha256" if sha256 else "sha1"
        self.ask("init", "-q", "--template=", f"--object-format={kind}", "--initial-branch=main")

    def run(
        self,
        *arguments: str,
        stdin: Input = None,
        limit: int = MAX_OUTPUT,
        sink: Callable[[bytes], None] | None = None,
    ) -> tuple[int, bytes]:
        """Exit status and output."""
        run = Run((*_QUIET, *arguments), self._environ, monotonic() + self._timeout)
        out = collect(run.pieces(stdin), limit, sink)
        return run.status, out

    def ask(
        self,
        *arguments: str,
        stdin: Input = None,
        limit: int = MAX_OUTPUT,
        sink: Callable[[bytes], None] | None = None,
    ) -> bytes:
        """The output; `GitError` if git fails."""
        status, out = self.run(*arguments, stdin=stdin, limit=limit, sink=sink)
        if status != 0:
            raise GitError(f"git {arguments[0]} failed")
        return out

    def has(self, ids: Iterable[str]) -> set[str]:
        """Which of these commits are here."""
        asked = sorted(set(ids))
        out = bytearray()
        if asked:
            given = "".join(f"{one}^{{commit}}\n" for one in asked).encode()
            self.ask("cat-file", "--batch-check=%(objectname)", stdin=given, sink=out.extend)
        return {line.decode("ascii") for line in bytes(out).split(b"\n") if line and b" " not in line}

    def check_out(self, commit: str) -> None:
        """Write the work tree of a commit, every file byte for byte as its object is."""
        rules = self.git_folder / "info" / "attributes"
        rules.parent.mkdir(exist_ok=True)
        rules.write_text("* -text -eol -ident -filter -working-tree-encoding\n")
        try:
            self.ask("read-tree", "--reset", "-u", commit)
        finally:
            rules.unlink()

    def take_pack(self, pieces: Iterator[bytes]) -> None:
        """Take the objects of a pack; `GitError` if it is damaged or lacks what it is told by."""
        self.ask("index-pack", "--stdin", "--fix-thin", stdin=pieces)

    def is_connected(self, ids: Iterable[str]) -> bool:
        """Whether everything that these commits lead to is here."""
        given = "".join(f"{one}\n" for one in ids).encode()
        status, _ = self.run("rev-list", "--objects", "--quiet", "--stdin", stdin=given)
        return status == 0


def unbundled(file: Path, *, sha256: bool) -> tuple[dict[str, str], list[str], int]:
    """Refs and prerequisites that git's bundle begins with, and where its pack begins; `GitError` if none."""
    with file.open("rb") as bundle:
        if bundle.readline(100) not in (b"# v2 git bundle\n", b"# v3 git bundle\n"):
            raise GitError("the commits are no bundle of git")
        refs: dict[str, str] = {}
        needed: list[str] = []
        while (line := bundle.readline(1 << 13)) != b"\n":
            if not line.endswith(b"\n") or bundle.tell() > _MAX_HEADER:
                raise GitError("the bundle of commits is damaged")
            if not line.startswith(b"@"):
                _take_line(line[:-1], refs, needed, 64 if sha256 else 40)
        return refs, needed, bundle.tell()


def _take_line(line: bytes, refs: dict[str, str], needed: list[str], length: int) -> None:
    is_needed = line.startswith(b"-")
    one, _, name = line[is_needed:].partition(b" ")
    if len(one) != length or any(digit not in b"0123456789abcdef" for digit in one):
        raise GitError("the bundle of commits is damaged")
    if is_needed:
        needed.append(one.decode("ascii"))
    else:
        refs[name.decode("utf-8", "surrogateescape")] = one.decode("ascii")


def pieces_of(file: Path, start: int) -> Iterator[bytes]:
    """What a file holds from there on."""
    with file.open("rb") as source:
        source.seek(start)
        while piece := source.read(1 << 16):
            yield piece
