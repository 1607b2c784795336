"""The project's own vectors: the script makes what lies in the repository, and each ends as it says."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from io import BytesIO
from pathlib import Path
from types import ModuleType

import pytest

from archiver import age

FOLDER = Path(__file__).parent.parent / "vectors" / "age"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))


def read(name: str) -> bytes:
    whole = FOLDER / f"{name}.age"
    return whole.read_bytes() if whole.exists() else zlib.decompress((FOLDER / f"{name}.age.z").read_bytes())


def keys(maker: ModuleType, names: list[str]) -> list[age.Identity]:
    phrases = {"passphrase": maker.PASSPHRASE, "wrong passphrase": "wrong"}

    def key(name: str) -> age.Identity:
        if name in phrases:
            return age.ScryptIdentity(phrases[name])
        return maker.hybrid_identity(name) if name.startswith("qu") else maker.identity(name)

    return [key(name) for name in names]


def test_the_script_makes_the_files(maker: ModuleType) -> None:
    vectors = {vector.name: vector for vector in maker.all_vectors()}
    assert {name: vector.expected() for name, vector in vectors.items()} == EXPECTED
    files = {path.name for path in FOLDER.iterdir()} - {"expected.json"}
    assert files == {vector.file for vector in vectors.values()}
    assert [name for name, vector in vectors.items() if read(name) != vector.data] == []


def test_there_are_vectors_of_every_outcome() -> None:
    outcomes = [entry["error"] for entry in EXPECTED.values()]
    assert len(outcomes) >= 115
    assert set(outcomes) == {None, "HeaderError", "HeaderMacError", "KeyUnavailableError", "PayloadError"}


def test_no_secret_key_stands_in_the_repository() -> None:
    tests = Path(__file__).parent.parent
    key = re.compile(b"AGE-SECRET-KEY-" + b"(?:PQ-)?1[0-9A-Z]{58}")
    files = [path for room in ("age", "vectors", "independent") for path in (tests / room).rglob("*")]
    assert [path.name for path in files if path.is_file() and key.search(path.read_bytes())] == []


@pytest.mark.parametrize("name", EXPECTED)
def test_outcome(name: str, maker: ModuleType, released) -> None:
    entry = EXPECTED[name]
    plain, error = released(keys(maker, entry["keys"]), read(name))
    assert (type(error).__name__ if error else None) == entry["error"]
    assert entry["reason"] in str(error or "")
    assert (len(plain), hashlib.sha256(plain).hexdigest()) == (
        entry["released_length"],
        entry["released_sha256"],
    )


@pytest.mark.parametrize("name", [name for name in EXPECTED if EXPECTED[name]["error"] != "HeaderError"])
def test_header_has_one_spelling(name: str) -> None:
    data = read(name)
    assert data.startswith(age.read_header(BytesIO(data)).marshal())
