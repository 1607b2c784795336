"""What differs between a captured folder and one that is there, entry by entry and side by side."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from archiver.model.workspace import TreeEntry, path_bytes
from archiver.scratch import Scratch
from archiver.workspace.captured import capture_folder
from archiver.workspace.differing import Differing, Here, differs
from archiver.workspace.found import Found
from archiver.workspace.git_places import Places
from archiver.workspace.options import CaptureOptions


def folder_difference(
    entries: Iterable[TreeEntry],
    folder: Path,
    options: CaptureOptions,
    scratch: Scratch,
    apart: Sequence[Path] = (),
) -> Iterator[Differing]:
    """Every difference, in the order of the paths; `entries` come in that order too.

    What a capture with these options would leave out of the folder is not extra. What it was left out of but
    is in the tree is compared all the same. Raises what `capture_folder` raises.
    """
    capture = capture_folder(folder, options, scratch, apart)
    places = Places(folder.absolute())
    for entry, found in _pairs(iter(entries), capture.found):
        if entry is None:
            assert found is not None  # noqa: S101 - one of the two is there
            yield Differing("extra", found.entry.path, "is here, was not captured")
        else:
            here = _here(entry, found, places)
            hidden = here is None and places.is_hidden(path_bytes(entry.path))
            yield from differs(entry, here, hidden=hidden)
    for skipped in capture.skipped:
        yield Differing("unknown", skipped.path, skipped.reason)


def _pairs(
    entries: Iterator[TreeEntry], found: Iterator[Found]
) -> Iterator[tuple[TreeEntry | None, Found | None]]:
    """Both lists side by side: what has one path belongs together."""
    entry, here = next(entries, None), next(found, None)
    while entry is not None or here is not None:
        then = None if entry is None else path_bytes(entry.path)
        now = None if here is None else path_bytes(here.entry.path)
        if now is None or (then is not None and then < now):
            yield entry, None
            entry = next(entries, None)
        elif then is None or now < then:
            yield None, here
            here = next(found, None)
        else:
            yield entry, here
            entry, here = next(entries, None), next(found, None)


def _here(entry: TreeEntry, found: Found | None, places: Places) -> Here | None:
    """What lies there now; of a database that is in use, the copy that a capture makes of it."""
    name = os.fsencode(entry.path)
    seen = places.look(name)
    if seen is None:
        return None
    held = found.source if found is not None and isinstance(found.source, bytes) else None
    return Here(seen, places.at(name) if held is None else held)
