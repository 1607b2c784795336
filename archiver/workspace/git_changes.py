"""What of a work tree differs from a commit: names, and whether the commit has them."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from archiver.git import objects
from archiver.git.running import GitError
from archiver.git.view import View
from archiver.git.worktree import Absent, entries, inside, unmarked
from archiver.workspace.git_places import Places

MAX_NAMES = 2_000_000
_FILE = b"100644"
_NOTHING = b"000000"
_MODULE = b"160000"
_POINTER = b"version https://git-lfs.github.com/spec/v1\n"
_MAX_POINTER = 1024


@dataclass
class Changes:
    """Work tree, index and HEAD as they differ from each other, by path.

    `names`: what may lie in the work tree otherwise than in HEAD, and whether HEAD has it. `staged`: mode and
    object of HEAD and of the index, where they differ; mode and object of each stage for conflicts.
    """

    names: dict[bytes, bool] = field(default_factory=dict)
    repositories: list[bytes] = field(default_factory=list)
    """Repositories inside that are no submodules."""
    staged: dict[bytes, tuple[bytes, bytes, bytes]] = field(default_factory=dict)
    """Mode in HEAD, mode and object in the index; a mode of zeros says that it is not there."""
    stages: list[tuple[bytes, int, bytes, bytes]] = field(default_factory=list)
    """Path, stage, mode and object of unmerged entries."""
    intended: dict[bytes, bytes] = field(default_factory=dict)
    """Paths that the index knows without a content, and the mode that it noted."""
    modules: dict[bytes, bytes] = field(default_factory=dict)
    absent: Absent = field(default_factory=Absent)
    pointers: list[bytes] = field(default_factory=list)
    """Files of LFS whose content in the index is a pointer."""


def compare(view: View, places: Places, limit: int, taken: Taken) -> Changes:
    """Ask git once for everything; `limit` is the most bytes of a file that are compared without it."""
    changes = Changes()
    changes.modules, changes.absent = unmarked(view.repository, view.private, view.environ, view.tree)
    _take_status(view, changes)
    _take_staged(view, changes)
    taken.untracked(view, changes)
    _take_modules(places, changes)
    _take_filtered(view, places, limit, changes)
    return changes


@dataclass(frozen=True, slots=True)
class Taken:
    """Which untracked files are taken: patterns in gitignore syntax, beside the repository's own rules."""

    ignore: tuple[str, ...] = ()
    include: tuple[str, ...] = ()

    def untracked(self, view: View, changes: Changes) -> None:
        """Put them among the names. What is to be included is so although it is ignored."""

        def take(name: bytes) -> None:
            if name.endswith(b"/"):
                changes.repositories.append(inside(name[:-1]))
            else:
                _add(changes.names, inside(name), present=changes.names.get(name, False))

        asked = ("ls-files", "-z", "--others")
        view.ask(*asked, "--exclude-standard", *_patterns(self.ignore), sink=entries(take))
        if self.include:
            view.ask(*asked, "--ignored", *_patterns(self.include), sink=entries(take))
        changes.repositories = sorted(set(changes.repositories))


def _patterns(patterns: tuple[str, ...]) -> Iterator[str]:
    return (f"--exclude={pattern}" for pattern in patterns if pattern and "\0" not in pattern)


def _is_file(mode: bytes) -> bool:
    """Whether a checkout writes a file or a link for it: it leaves an empty folder for a submodule."""
    return mode not in (_NOTHING, _MODULE)


def _add(names: dict[bytes, bool], name: bytes, *, present: bool) -> None:
    names[name] = present
    if len(names) > MAX_NAMES:
        raise GitError(f"more than {MAX_NAMES} files differ from the commit")


def _take_status(view: View, changes: Changes) -> None:
    """What of the files that git knows is changed."""

    def take(entry: bytes) -> None:
        kind = entry[:1]
        if kind == b"1":
            _, state, _, in_head, _, _, _, _, name = entry.split(b" ", 8)
            _add(changes.names, inside(name), present=_is_file(in_head))
            if state == b".A":
                changes.intended[name] = _FILE
        elif kind == b"u":
            words = entry.split(b" ", 10)
            _add(changes.names, inside(words[10]), present=_is_file(words[4]))
        elif entry:
            raise GitError("git answers in a form that is not known")

    view.ask(
        "status", "--porcelain=v2", "-z", "--untracked-files=no", "--ignore-submodules=all", "--no-renames",
        sink=entries(take),
    )  # fmt: skip


def _take_staged(view: View, changes: Changes) -> None:
    """How the index differs from HEAD."""

    def take(about: bytes, name: bytes) -> None:
        was, now, _, blob, state = about.lstrip(b":").split(b" ")
        if state[:1] == b"U":
            changes.names[inside(name)] = True  # said only where HEAD has it
        else:
            changes.staged[inside(name)] = was, now, blob

    head = view.head or empty_tree(view)
    raw = ("--cached", "--raw", "-z", "--no-renames", "--no-abbrev", "--ignore-submodules=none")
    view.ask("diff-index", *raw, head, "--", sink=entries(pairs(take)))

    def unmerged(entry: bytes) -> None:
        about, _, name = entry.partition(b"\t")
        mode, blob, stage = about.split(b" ")
        changes.stages.append((inside(name), int(stage), mode, blob))

    view.ask("ls-files", "-u", "-z", sink=entries(unmerged))
    for name, *_ in changes.stages:
        changes.staged.pop(name, None)  # `diff-index` says of these too that they differ
    for name, usual in changes.intended.items():
        _, changes.intended[name], _ = changes.staged.pop(name, (b"", usual, b""))


def pairs(take: Callable[[bytes, bytes], None]) -> Callable[[bytes], None]:
    """Gives two entries at a time to `take`."""
    first: list[bytes] = []

    def one(entry: bytes) -> None:
        if first:
            take(first.pop(), entry)
        else:
            first.append(entry)

    return one


def empty_tree(view: View) -> str:
    """The id of the tree without entries, which every git knows."""
    return view.ask("hash-object", "-t", "tree", "--stdin").decode("ascii").strip()


def _take_modules(places: Places, changes: Changes) -> None:
    """A file or a link in the place of a submodule is a change like any other."""
    for name in changes.modules:
        found = places.look(name)
        if found is not None and not places.is_folder(name):
            changes.names[name] = False


def _take_filtered(view: View, places: Places, limit: int, changes: Changes) -> None:
    """Files whose bytes are not those of their object although git calls them unchanged.

    Git believes what it noted of a file when a filter ran or line ends were converted. Neither is done here,
    nor when the work tree is made again: what has another size than its object travels as it lies there, and
    what a filter or an encoding would convert is compared byte for byte.
    """
    rules = view.ask("ls-files", "-z", "--", ":(glob)**/.gitattributes")
    has_own = (view.private / "info" / "attributes").exists()
    untracked = any(name.rpartition(b"/")[2] == b".gitattributes" for name in changes.names)
    if not (rules or has_own or untracked or view.line_ends):
        return
    blobs = _blobs(view)
    filtered: dict[bytes, bytes] = {}
    for name, how in _filters(view):
        filtered.setdefault(name, how)  # the filter comes first
    known = objects.sizes(view, set(blobs.values()))
    lfs = {name: blob for name, blob in blobs.items() if filtered.get(name) == b"lfs"}
    changes.pointers = sorted(_pointers(view, lfs, known))
    for name, blob in blobs.items():
        found = places.look(name)
        if found is None or name in changes.names or not stat.S_ISREG(found.st_mode):
            continue
        differs = blob not in known or known[blob][2] != found.st_size
        if not differs and name in filtered:
            differs = places.object_id(name, limit, sha256=view.sha256) != blob
        if differs:
            staged = changes.staged.get(name)
            _add(changes.names, name, present=staged is None or _is_file(staged[0]))


def _blobs(view: View) -> dict[bytes, str]:
    """The object of each file in the index."""
    blobs: dict[bytes, str] = {}

    def take(entry: bytes) -> None:
        about, _, name = entry.partition(b"\t")
        mode, blob, stage = about.split(b" ")
        if stage == b"0" and mode != _MODULE:
            blobs[inside(name)] = blob.decode("ascii")

    view.ask("ls-files", "-s", "-z", sink=entries(take))
    return blobs


def _filters(view: View) -> Iterator[tuple[bytes, bytes]]:
    """Files that have a filter or an encoding by their attributes, and its name."""
    found: list[tuple[bytes, bytes]] = []
    words: list[bytes] = []

    def take(word: bytes) -> None:
        words.append(word)
        if len(words) == 3:
            name, _, value = words
            words.clear()
            if value not in (b"unspecified", b"unset", b"set"):
                found.append((name, value))

    names = view.pieces("ls-files", "-z")
    view.ask(
        "check-attr", "-z", "--stdin", "filter", "working-tree-encoding", sink=entries(take), stdin=names
    )
    yield from found


def _pointers(view: View, blobs: dict[bytes, str], known: dict[str, tuple[str, str, int]]) -> Iterable[bytes]:
    """Which of the files have a pointer of LFS in the index."""
    small = sorted({blob for blob in blobs.values() if blob in known and known[blob][2] < _MAX_POINTER})
    pointers = {one for one, _, _, text in objects.contents(view, small) if text.startswith(_POINTER)}
    return [name for name, blob in blobs.items() if blob in pointers]


def between(view: View, base: str, head: str) -> dict[bytes, bool]:
    """Paths that differ between two commits, and whether the first one has them."""
    found: dict[bytes, bool] = {}

    def take(about: bytes, name: bytes) -> None:
        _add(found, inside(name), present=_is_file(about[1:7]))

    raw = ("-r", "--raw", "-z", "--no-renames", "--no-abbrev", "--no-ext-diff", "--no-textconv")
    view.ask("diff-tree", *raw, base, head, "--", sink=entries(pairs(take)))
    return found


def tracked(view: View, modules: Iterable[bytes]) -> set[bytes]:
    """All paths of the index but submodules."""
    found: set[bytes] = set()
    view.ask("ls-files", "-z", sink=entries(lambda name: found.add(inside(name))))
    return found.difference(modules)
