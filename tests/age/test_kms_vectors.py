"""The vectors of the KMS stanza: the script makes what lies in the repository, and each ends as it says."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from io import BytesIO
from pathlib import Path
from types import ModuleType

import pytest

from archiver import age
from archiver.age.context import parse_context
from archiver.age.kms import TYPE, wrapped_keys

VECTORS = Path(__file__).parent.parent / "vectors"
FOLDER = VECTORS / "kms"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
ENTRIES = EXPECTED["vectors"]


@pytest.fixture(scope="module")
def kms_maker(maker: ModuleType) -> ModuleType:
    """The script; it imports the one that makes the other vectors by its name."""
    spec = importlib.util.spec_from_file_location("make_kms_vectors", VECTORS / "make_kms_vectors.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_script_makes_the_files(kms_maker: ModuleType) -> None:
    vectors = {vector.file: vector.data for vector in kms_maker.all_vectors()}
    assert kms_maker.document() == EXPECTED
    found = {path.name: path.read_bytes() for path in FOLDER.iterdir() if path.suffix == ".age"}
    assert found == vectors
    assert len(ENTRIES) == len(vectors) >= 45


@pytest.mark.parametrize("name", ENTRIES)
def test_outcome(name: str, kms_maker: ModuleType, maker: ModuleType, released) -> None:
    entry = ENTRIES[name]
    context = parse_context(entry["object"])
    arns = {"own": kms_maker.OWN, "other": kms_maker.OTHER}
    keys = [
        kms_maker.identity(arns[key], context, entry["blob_size"]) if key in arns else maker.identity(key)
        for key in entry["keys"]
    ]
    plain, error = released(keys, (FOLDER / f"{name}.age").read_bytes())
    assert (type(error).__name__ if error else None) == entry["error"]
    assert entry["reason"] in str(error or "")
    found = (len(plain), hashlib.sha256(plain).hexdigest())
    assert found == (entry["released_length"], entry["released_sha256"])


def test_the_data_keys_are_those_of_the_blobs() -> None:
    """Whoever implements the stanza finds the key to each blob that opens."""
    known = {(each["arn"], each["context"], each["blob_sha256"]) for each in EXPECTED["data_keys"]}
    for name, entry in ENTRIES.items():
        if entry["error"] is None and entry["keys"] != ["anna"]:
            header = age.read_header(BytesIO((FOLDER / f"{name}.age").read_bytes()))
            assert any(stanza.type == TYPE for stanza in header.stanzas)
            for wrapped in wrapped_keys(header.stanzas):
                digest = hashlib.sha256(wrapped.blob).hexdigest()
                assert (wrapped.arn.text, wrapped.context.text(), digest) in known
