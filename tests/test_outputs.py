"""Which artifact an id means, and what is carried of each."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from archiver.errors import AlreadyExistsError, NoSuchArtifactError, StoreFullError, UsageError
from archiver.model import Artifact, Checkpoint, Cut, LeftOut, Receipt
from archiver.outputs import Output, chosen, outputs, write_new

NOW = datetime(2026, 1, 31, 14, tzinfo=UTC)
DIGESTS = ["abcdef00" + "0" * 56, "abcdef01" + "0" * 56, "1" * 64, "2" * 64, "3" * 64]


def checkpoint(*digests: str) -> Checkpoint:
    listed = tuple(Artifact(sha256=digest, size=10) for digest in digests)
    return Checkpoint(run_id="r", task_id="t", created_at=NOW, checkpoint_at=NOW, artifacts=listed)


@pytest.fixture
def found(tmp_path: Path) -> tuple[Output, ...]:
    """Two that begin alike, one of which head and tail are carried, one that was left out, one nowhere."""
    (tmp_path / "artifacts").mkdir()
    part = "f" * 64
    for digest in (*DIGESTS[:2], part):
        (tmp_path / "artifacts" / digest).write_bytes(digest.encode())
    cut = Cut(
        member=f"artifacts/{DIGESTS[2]}",
        limit="artifact",
        policy="head-and-tail",
        size=10,
        kept=5,
        kept_as=f"artifacts/{part}",
    )
    left = LeftOut(member=f"artifacts/{DIGESTS[3]}", reason="it holds credentials")
    return outputs(checkpoint(*DIGESTS, part), Receipt(cut=(cut,), left_out=(left,)), tmp_path)


def test_what_is_carried_of_each(found: tuple[Output, ...]) -> None:
    assert [one.artifact.sha256 for one in found] == DIGESTS
    assert [one.state for one in found] == ["whole", "whole", "head-and-tail", "reference", "reference"]
    assert b"".join(found[0].blocks()) == DIGESTS[0].encode()
    assert b"".join(found[2].blocks()) == b"f" * 64
    for one, why in zip(found[3:], ("it holds credentials", "the bundle does not hold it"), strict=True):
        with pytest.raises(NoSuchArtifactError, match=why):
            list(one.blocks())


def test_an_id_means_the_one_that_begins_with_it(found: tuple[Output, ...]) -> None:
    for name in ("abcdef00", DIGESTS[0], "ABCDEF000", f"artifacts/{DIGESTS[0]}"):
        assert chosen(found, name, "r") is found[0]
    assert chosen(found, "f" * 64, "r") is found[2]
    with pytest.raises(UsageError, match="means 2 artifacts of r") as several:
        chosen(found, "abcdef", "r")
    assert all(digest[:16] in str(several.value.remedy) for digest in DIGESTS[:2])
    with pytest.raises(NoSuchArtifactError, match="r has no artifact abcdef02") as none:
        chosen(found, "abcdef02", "r")
    assert "near it are abcdef0" in str(none.value.remedy)
    with pytest.raises(NoSuchArtifactError) as nothing:
        chosen((), "abcdef", "r")
    assert "it has none at all" in str(nothing.value.remedy)


def test_a_link_in_place_of_an_artifact_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "artifacts").mkdir()
    (tmp_path / "artifacts" / DIGESTS[0]).symlink_to("/etc/passwd")
    (one,) = outputs(checkpoint(DIGESTS[0]), Receipt(), tmp_path)
    assert one.state == "reference"


@pytest.mark.parametrize("name", ["/etc/passwd", "../secret", "artifacts/../../secret", "checkpoint.json"])
def test_a_receipt_leads_to_no_other_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text("not for you")
    unpacked = tmp_path / "unpacked"
    (unpacked / "artifacts").mkdir(parents=True)
    (unpacked / "checkpoint.json").write_text("{}")
    cut = Cut(
        member=f"artifacts/{DIGESTS[0]}", limit="artifact", policy="head-and-tail", size=10, kept=5,
        kept_as=name,
    )  # fmt: skip
    (one,) = outputs(checkpoint(DIGESTS[0]), Receipt(cut=(cut,)), unpacked)
    assert one.state == "reference"
    with pytest.raises(NoSuchArtifactError):
        list(one.blocks())


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_came_meanwhile_is_not_written_over(
    tmp_path: Path, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    place = tmp_path / "out"

    def blocks() -> Iterator[bytes]:
        place.write_bytes(b"of somebody else")
        yield b"ours"

    with pytest.raises(AlreadyExistsError):
        write_new(blocks(), place)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("out", b"of somebody else")]
    assert write_new([b"a", b"bc"], tmp_path / "new") == 3
    assert (tmp_path / "new").read_bytes() == b"abc"


def test_what_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    def blocks() -> Iterator[bytes]:
        yield b"half"
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(StoreFullError):
        write_new(blocks(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
