"""What a checkpoint may say of the files of its bundle."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from archiver import members
from archiver.errors import ArchiveFormatError
from archiver.model import Checkpoint, Transcript, TranscriptPart
from archiver.model.manifest import Manifest, ManifestMember

FILES = {
    "checkpoint.json": b"{}",
    "transcript/0001.jsonl": b'{"a":1}\n',
    "transcript/0002.jsonl": b'{"b":2}\n',
    "full/0001.jsonl": b'{"c":3}\n',
    "receipt.json": b"{}",
}


def manifest() -> Manifest:
    return Manifest(
        run="run",
        seq=1,
        schema_version=2,
        redaction_key="",
        members=tuple(
            ManifestMember(
                path=path,
                mode=0o644,
                size=len(data),
                sha256="0" * 64,
            )
            for path, data in FILES.items()
        ),
    )


def transcript(*parts: tuple[str, ...]) -> Transcript:
    return Transcript(parts=tuple(TranscriptPart(name="a", segments=segments) for segments in parts))


def filled(folder: Path, first: Transcript, full: Transcript | None = None) -> Checkpoint:
    for path, data in FILES.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(data)
    now = datetime.now(UTC)
    checkpoint = Checkpoint(
        run_id="run", task_id="run", created_at=now, checkpoint_at=now, transcript=first, full_transcript=full
    )
    return members.with_items(checkpoint, folder, manifest())


def test_segments_become_items(tmp_path: Path) -> None:
    first = transcript(("transcript/0002.jsonl", "transcript/0001.jsonl"))
    checkpoint = filled(tmp_path, first, transcript(("full/0001.jsonl",)))
    items = checkpoint.transcript.parts[0].items
    assert list(items) == [{"b": 2}, {"a": 1}]
    assert items.size == 16
    assert checkpoint.full_transcript is not None
    assert list(checkpoint.full_transcript.parts[0].items) == [{"c": 3}]


@pytest.mark.parametrize(
    "segment", ["checkpoint.json", "receipt.json", "transcript/0003.jsonl", "../secret", "transcript/../x"]
)
def test_no_other_file_is_a_segment(tmp_path: Path, segment: str) -> None:
    with pytest.raises(ArchiveFormatError, match="does not hold"):
        filled(tmp_path, transcript((segment,)))


@pytest.mark.parametrize(
    ("first", "full"),
    [
        ([("transcript/0001.jsonl",) * 2], []),
        ([("transcript/0001.jsonl",), ("transcript/0001.jsonl",)], []),
        ([("transcript/0001.jsonl",)], [("transcript/0001.jsonl",)]),
    ],
)
def test_a_segment_is_named_once(
    tmp_path: Path, first: list[tuple[str, ...]], full: list[tuple[str, ...]]
) -> None:
    with pytest.raises(ArchiveFormatError, match="twice"):
        filled(tmp_path, transcript(*first), transcript(*full))


@pytest.mark.parametrize("name", ["checkpoint.json", "effects.jsonl", "evidence.jsonl"])
def test_a_folder_in_a_files_place(tmp_path: Path, name: str) -> None:
    for other in ("checkpoint.json", "effects.jsonl", "evidence.jsonl"):
        (tmp_path / other).write_bytes(b'{"schema_version":2}\n')
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    with pytest.raises(ArchiveFormatError, match=f"holds no {name} that can be read"):
        members.document_in(tmp_path)
    (tmp_path / "receipt.json").mkdir()
    with pytest.raises(ArchiveFormatError, match=r"receipt\.json"):
        members.receipt_in(tmp_path)
