"""Where the JSON Schemas are: inside an installed package, or beside it in a checkout."""

from __future__ import annotations

from pathlib import Path

from archiver.errors import UsageError

_PLACES = (Path(__file__).parent / "_schemas", Path(__file__).parent.parent / "schemas")


def folder() -> Path:
    """The folder that holds `vN/*.schema.json` and `FORMAT.md`; the installed place first."""
    for place in _PLACES:
        if (place / "v1").is_dir():
            return place
    raise UsageError("the JSON Schemas are not installed", remedy="install checkpoint-archiver again")


def names() -> list[str]:
    """All schemas as `vN/name`, sorted."""
    root = folder()
    return sorted(
        f"{path.parent.name}/{path.name.removesuffix('.schema.json')}"
        for path in root.glob("v*/*.schema.json")
    )


def text(name: str) -> str:
    """The text of one schema by its `vN/name`; without `vN/` the newest that has it."""
    found = [known for known in names() if known == name or known.split("/")[1] == name]
    if not found:
        raise UsageError(f"there is no schema {name!r}", remedy=f"one of: {', '.join(names())}")
    return (folder() / f"{found[-1]}.schema.json").read_text(encoding="utf-8")
