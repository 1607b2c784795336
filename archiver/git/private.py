"""A git folder of our own for a work tree, so that the configuration of its repository is not read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def private_folder(
    private: Path,
    head: str | None,
    tree: Path,
    git_folder: Path,
    common: Path,
    *,
    sha256: bool,
    line_ends: Mapping[str, str],
) -> dict[str, str]:
    """Fill it, borrowing only objects, index and ignore rules from the repository; gives its variables."""
    extension = "[extensions]\n\tobjectFormat = sha256\n" if sha256 else ""
    (private / "objects").mkdir()
    (private / "refs").mkdir()
    (private / "info").mkdir()
    (private / "HEAD").write_text(f"{head or 'ref: refs/heads/unborn'}\n")
    core = "".join(f"\t{key.removeprefix('core.')} = {value}\n" for key, value in line_ends.items())
    (private / "config").write_text(
        f"[core]\n\trepositoryFormatVersion = {int(sha256)}\n\tbare = false\n{core}{extension}"
    )
    ignored = common / "info" / "exclude"
    if ignored.is_file() and ignored.stat().st_size <= 1 << 20:
        (private / "info" / "exclude").write_bytes(ignored.read_bytes())
    return {
        "GIT_DIR": str(private),
        "GIT_WORK_TREE": str(tree),
        "GIT_INDEX_FILE": str(git_folder / "index"),
        "GIT_OBJECT_DIRECTORY": str(common / "objects"),
    }
