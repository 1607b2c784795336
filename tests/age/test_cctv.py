"""The age project's own test vectors (C2SP/CCTV), read where they lie."""

from __future__ import annotations

import hashlib
import os
import zlib
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pytest

from archiver import age
from archiver.age import stream
from archiver.errors import HeaderError, HeaderMacError, KeyUnavailableError, PayloadError

SHARED = Path(os.environ.get("ARCHIVER_SHARED", Path(__file__).parents[3] / "shared"))
FOLDER = SHARED / "vectors" / "age-cctv"

ERRORS = {
    "success": type(None),
    "no match": KeyUnavailableError,
    "HMAC failure": HeaderMacError,
    "header failure": HeaderError,
    "payload failure": PayloadError,
}
KNOWN = {"expect", "payload", "file key", "identity", "passphrase", "compressed", "armored", "comment"}


@dataclass(frozen=True)
class Vector:
    name: str
    fields: dict[str, list[str]]
    data: bytes

    @property
    def expect(self) -> str:
        return self.fields["expect"][0]

    def identities(self) -> list[age.Identity]:
        keys, phrases = self.fields.get("identity", []), self.fields.get("passphrase", [])
        return [*map(age.parse_identity, keys), *map(age.ScryptIdentity, phrases)]


def load(path: Path) -> Vector:
    text, _, data = path.read_bytes().partition(b"\n\n")
    fields: dict[str, list[str]] = {}
    for line in text.decode().split("\n"):
        key, _, value = line.partition(": ")
        fields.setdefault(key, []).append(value)
    if "compressed" in fields:
        assert fields["compressed"] == ["zlib"]
        data = zlib.decompress(data)
    return Vector(path.name, fields, data)


ALL = [load(path) for path in sorted(FOLDER.iterdir())] if FOLDER.is_dir() else []
RUN = [vector for vector in ALL if "armored" not in vector.fields]

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"no age vectors at {FOLDER}: set ARCHIVER_SHARED to the folder that has them"
)


def each(vectors: list[Vector]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("vector", vectors, ids=lambda vector: vector.name)


def test_the_vectors_are_all_there() -> None:
    assert len(RUN) >= 110
    assert len(ALL) - len(RUN) >= 33
    assert sum(vector.name.startswith("hybrid") for vector in RUN) >= 17
    assert {key for vector in ALL for key in vector.fields} == KNOWN
    assert {vector.expect for vector in RUN} == set(ERRORS)


@each(RUN)
def test_outcome(vector: Vector, released) -> None:
    plain, error = released(vector.identities(), vector.data)
    assert type(error) is ERRORS[vector.expect]
    # The digest is of everything that got out, whether or not reading failed after it.
    expected = vector.fields.get("payload", [hashlib.sha256(b"").hexdigest()])
    assert [hashlib.sha256(plain).hexdigest()] == expected


@each([vector for vector in RUN if vector.expect != "header failure"])
def test_header_has_one_spelling(vector: Vector) -> None:
    raw = age.read_header(BytesIO(vector.data)).marshal()
    assert vector.data.startswith(raw)


@each([vector for vector in RUN if vector.expect == "success"])
def test_payload_has_one_spelling(vector: Vector) -> None:
    payload = vector.data[len(age.read_header(BytesIO(vector.data)).marshal()) :]
    with age.unseal(vector.identities(), BytesIO(vector.data)) as unsealed:
        plain = unsealed.read()
        assert unsealed.payload_sha256 == hashlib.sha256(payload).hexdigest()
        assert unsealed.payload_length == len(payload)
    again: list[bytes] = []
    cipher = stream.payload_cipher(bytes.fromhex(vector.fields["file key"][0]), payload[:16])
    writer = stream.ChunkWriter(cipher, payload[:16], again.append)
    writer.write(plain)
    writer.close()
    assert b"".join(again) == payload
