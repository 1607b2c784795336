"""A checkpoint as the files of a bundle, and back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from archiver import jsonio
from archiver.errors import ArchiveFormatError
from archiver.model import Checkpoint, Frozen, Items, Member, Receipt, Transcript
from archiver.model.manifest import Manifest

STATE = "checkpoint.json"
EFFECTS = "effects.jsonl"
EVIDENCE = "evidence.jsonl"
RECEIPT = "receipt.json"

_SEGMENTS = ("transcript/", "full/")
_PARTS = {"parts": {"__all__": {"items": True}}}
ITEMS: Final[dict[str, Any]] = {"transcript": _PARTS, "full_transcript": _PARTS}
"""What to leave out of a checkpoint's document where its items lie in files of their own."""


def member(path: str, data: bytes) -> Member:
    """A member held in memory."""
    return Member(path, data, len(data), hashlib.sha256(data).hexdigest())


def of_state(checkpoint: Checkpoint) -> tuple[Member, Member, Member]:
    """`checkpoint.json` without what has members of its own, `effects.jsonl` and `evidence.jsonl`."""
    document = checkpoint.document(exclude={**ITEMS, "effects": True, "evidence": True})
    return (
        member(STATE, jsonio.canonical(document)),
        member(EFFECTS, effect_lines(checkpoint)),
        member(EVIDENCE, _lines(checkpoint.evidence)),
    )


def effect_lines(checkpoint: Checkpoint) -> bytes:
    """The content of `effects.jsonl`."""
    return _lines(checkpoint.effects)


def of_receipt(receipt: Receipt) -> Member:
    """`receipt.json`: what redaction did in this save."""
    return member(RECEIPT, jsonio.canonical(receipt.document()))


def document_in(folder: Path) -> dict[str, Any]:
    """The checkpoint document of an unpacked bundle, in the schema version it was written in.

    Items stay in their segment files; `with_items` puts them back once the document is migrated.
    """
    document = _read_json(folder, STATE)
    if not isinstance(document, dict):
        raise ArchiveFormatError(f"{STATE} is not a JSON object")
    if document.get("schema_version", 1) != 1:  # a flat row has neither, and so its bundle has no such files
        document["effects"] = _read_lines(folder, EFFECTS)
        document["evidence"] = _read_lines(folder, EVIDENCE)
    return document


def receipt_in(folder: Path) -> Receipt:
    """The receipt of an unpacked bundle."""
    try:
        return Receipt.model_validate(_read_json(folder, RECEIPT))
    except ValueError as error:
        raise ArchiveFormatError(f"{RECEIPT} does not have the shape of a receipt") from error


def with_items(checkpoint: Checkpoint, folder: Path, manifest: Manifest) -> Checkpoint:
    """The checkpoint with each part's items read from its segments in `folder`.

    `manifest` is the bundle's whole table: a segment is one of its files below `transcript/` or `full/`, and
    is named once in the whole checkpoint. `ArchiveFormatError` for every other.
    """
    sizes = {entry.path: entry.size for entry in manifest.members if entry.path.startswith(_SEGMENTS)}
    return checkpoint.model_copy(
        update={
            name: _filled(transcript, folder, sizes)
            for name in ("transcript", "full_transcript")
            if (transcript := getattr(checkpoint, name)) is not None
        }
    )


def _filled(transcript: Transcript, folder: Path, sizes: dict[str, int]) -> Transcript:
    """The transcript with its items; takes the segments that it names out of `sizes`."""
    parts = []
    for part in transcript.parts:
        if not part.segments:
            parts.append(part)
            continue
        size = 0
        for segment in part.segments:
            if segment not in sizes:
                raise ArchiveFormatError(
                    f"{STATE} names a segment twice, or one that the bundle does not hold: {segment!r:.200}"
                )
            size += sizes.pop(segment)
        paths = tuple(folder / segment for segment in part.segments)
        items = Items.in_files(paths, count=None, size=size, raw=part.media == "raw")
        parts.append(part.model_copy(update={"items": items}))
    return transcript.model_copy(update={"parts": tuple(parts)})


def _lines(models: Iterable[Frozen]) -> bytes:
    return b"".join(jsonio.canonical(model.document()) + b"\n" for model in models)


def _read_json(folder: Path, name: str) -> Any:
    try:
        return jsonio.exact(_read(folder, name))
    except ValueError as error:
        raise ArchiveFormatError(f"{name} is not JSON: {error}") from error


def _read_lines(folder: Path, name: str) -> list[Any]:
    try:
        return [jsonio.exact(line) for line in _read(folder, name).splitlines()]
    except ValueError as error:
        raise ArchiveFormatError(f"{name} is not JSON lines: {error}") from error


def _read(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except FileNotFoundError as error:
        raise ArchiveFormatError(f"the bundle holds no {name}") from error
    except OSError as error:
        raise ArchiveFormatError(f"the bundle holds no {name} that can be read: {error.strerror}") from error
