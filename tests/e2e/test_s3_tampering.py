"""What is done to the objects of a store on S3 is the same named error as in a folder."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyrage
import pytest
import zstandard
from servers.seaweed import Seaweed

from archiver import layout
from archiver.age import X25519Identity
from archiver.errors import (
    ArchiverError,
    BundleMissingError,
    ContainerError,
    ContextMismatchError,
    DigestMismatchError,
    MissingRecordError,
)
from archiver.restore import restore
from archiver.setup import Setup
from archiver.verify import verify
from e2e.s3 import opened, place, save


@dataclass
class Bucket:
    """The objects of one store, changed behind its back."""

    client: Any
    url: str

    def where(self, name: str) -> dict[str, str]:
        bucket, prefix = place(self.url)
        return {"Bucket": bucket, "Key": f"{prefix}/{name}"}

    def get(self, name: str) -> bytes:
        body: bytes = self.client.get_object(**self.where(name))["Body"].read()
        return body

    def put(self, name: str, data: bytes) -> None:
        self.client.put_object(**self.where(name), Body=data)

    def delete(self, name: str) -> None:
        self.client.delete_object(**self.where(name))


@dataclass
class Saved:
    """Two runs: `r` with three checkpoints, `other` with one."""

    setup: Setup
    bucket: Bucket
    bundles: dict[tuple[str, int], str]

    def swap(self, one: str, other: str) -> None:
        first, second = self.bucket.get(one), self.bucket.get(other)
        self.bucket.put(one, second)
        self.bucket.put(other, first)


@pytest.fixture(scope="module")
def made(s3_template: Path, seaweed: Seaweed, bucket: str, tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """Made once; `saved` puts everything back after each test."""
    note = tmp_path_factory.mktemp("note") / "note.txt"
    note.write_text("hello\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in seaweed.environment().items():
            patch.setenv(name, value)
        setup = opened(s3_template)
        bundles = {}
        for run, seq in (("r", 1), ("r", 2), ("r", 3), ("other", 1)):
            record = save(setup, note, f"{run} {seq}", run).record
            assert record.bundle is not None
            bundles[run, seq] = record.bundle.name
    return Saved(setup, Bucket(seaweed.client(), setup.store.url), bundles)


@pytest.fixture
def saved(made: Saved) -> Iterator[Saved]:
    before = {info.name: made.bucket.get(info.name) for info in made.setup.store.list()}
    yield made
    for info in list(made.setup.store.list()):
        if info.name not in before:
            made.bucket.delete(info.name)
    for name, data in before.items():
        made.bucket.put(name, data)


def record(seq: int, run: str = "r") -> str:
    return layout.record_name(run, seq)


def flip(bucket: Bucket, name: str) -> None:
    data = bytearray(bucket.get(name))
    data[-20] ^= 1
    bucket.put(name, bytes(data))


def cut(bucket: Bucket, name: str, left: int = -1) -> None:
    bucket.put(name, bucket.get(name)[:left])


TAMPERED: list[tuple[str, Callable[[Saved], None], type[ArchiverError]]] = [
    ("a bundle overwritten", lambda s: flip(s.bucket, s.bundles["r", 3]), DigestMismatchError),
    ("a bundle cut", lambda s: cut(s.bucket, s.bundles["r", 3]), DigestMismatchError),
    ("a bundle emptied", lambda s: s.bucket.put(s.bundles["r", 3], b""), DigestMismatchError),
    ("a bundle made longer", lambda s: s.bucket.put(s.bundles["r", 3], b"x" * 9000), ArchiverError),
    ("a bundle deleted", lambda s: s.bucket.delete(s.bundles["r", 3]), BundleMissingError),
    ("bundles swapped", lambda s: s.swap(s.bundles["r", 3], s.bundles["r", 2]), DigestMismatchError),
    (
        "bundles swapped between runs",
        lambda s: s.swap(s.bundles["r", 3], s.bundles["other", 1]),
        DigestMismatchError,
    ),
    ("a record overwritten", lambda s: flip(s.bucket, record(2)), ContainerError),
    ("a record cut", lambda s: cut(s.bucket, record(3), 100), ContainerError),
    ("a record deleted", lambda s: s.bucket.delete(record(2)), MissingRecordError),
    ("records swapped", lambda s: s.swap(record(2), record(3)), ContextMismatchError),
    ("records swapped between runs", lambda s: s.swap(record(1), record(1, "other")), ContextMismatchError),
    (
        "a record replayed",
        lambda s: s.bucket.put(record(4), s.bucket.get(record(3))),
        ContextMismatchError,
    ),
]


@pytest.mark.parametrize(
    ("tamper", "kind"), [case[1:] for case in TAMPERED], ids=[case[0] for case in TAMPERED]
)
def test_tampering(
    saved: Saved, tamper: Callable[[Saved], None], kind: type[ArchiverError], tmp_path: Path
) -> None:
    into = tmp_path / "out"
    tamper(saved)
    with pytest.raises(kind) as caught:
        restore("r", saved.setup, into=into)
    assert caught.value.exit_code == 4
    assert not into.exists()
    found = [finding.error for finding in verify(saved.setup, "r", deep=True) if finding.error]
    assert found
    assert all(isinstance(error, ArchiverError) and error.exit_code == 4 for error in found)


def test_a_bundle_in_the_bucket_is_an_ordinary_age_file(saved: Saved, home: Path) -> None:
    """Without this project: age, zstd, tar."""
    sealed = saved.bucket.get(saved.bundles["r", 3])
    identity = next(found for found in saved.setup.identities if isinstance(found, X25519Identity))
    opened = pyrage.decrypt(sealed, [pyrage.x25519.Identity.from_str(identity.secret_text())])
    plain = zstandard.ZstdDecompressor().stream_reader(opened, read_across_frames=True).read()
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        files = {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}  # type: ignore[union-attr]
    assert b"hello\n" in files.values()
    assert any(name.endswith("checkpoint.json") for name in files)


@pytest.mark.skipif(
    not shutil.which("age") or not shutil.which("zstd"), reason="age or zstd is not installed"
)
def test_the_pipeline_of_the_readme(saved: Saved, tmp_path: Path) -> None:
    bundle, identity, into = tmp_path / "bundle.tar.zst.age", tmp_path / "identity.txt", tmp_path / "empty"
    bundle.write_bytes(saved.bucket.get(saved.bundles["r", 3]))
    own = next(found for found in saved.setup.identities if isinstance(found, X25519Identity))
    identity.write_text(own.secret_text() + "\n", encoding="ascii")
    into.mkdir()
    command = f"age -d -i {identity} {bundle} | zstd -d | tar x -C {into}"
    subprocess.run(["bash", "-o", "pipefail", "-c", command], check=True, timeout=120)
    assert any(path.read_bytes() == b"hello\n" for path in into.rglob("*") if path.is_file())
