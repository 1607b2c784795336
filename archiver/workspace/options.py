"""How a workspace is captured: what is left out, and how large it may be."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class WorkspaceLimits:
    """The largest sizes in bytes, and numbers.

    `file`: one file. `files`: entries of the tree, of every kind. `total`: all files. `depth`: folders in
    each other. The defaults leave room in a bundle for the rest of a checkpoint.
    """

    file: int = 64 * 2**20
    files: int = 90_000
    total: int = 1536 * 2**20
    depth: int = 100


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """What a caller may choose.

    `ignore`: patterns in gitignore syntax, after the defaults and those of the folder's own file; the last
    one that fits decides. `include`: what is taken although it is ignored. `defaults`: whether the archiver's
    own patterns count. `timeout`: seconds that git may take.
    """

    ignore: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    defaults: bool = True
    timeout: float = 30.0
    limits: WorkspaceLimits = field(default_factory=WorkspaceLimits)
