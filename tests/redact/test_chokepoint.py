"""Nothing unredacted can be sealed: the type that `pack` takes is made by redaction alone."""

from __future__ import annotations

import ast
import base64
from pathlib import Path

import pytest

import archiver
from archiver.model import Member, Receipt
from archiver.model.limits import Limits
from archiver.model.manifest import ManifestHead
from archiver.pack import pack
from archiver.redacted import Redacted, vouch

PACKAGE = Path(archiver.__file__).parent
HEAD = ManifestHead(run="run", seq=1, schema_version=2, redaction_key=base64.b64encode(bytes(32)).decode())


def test_a_redacted_value_cannot_be_made_outside() -> None:
    with pytest.raises(TypeError):
        Redacted((), Receipt(), maker=object())
    with pytest.raises(TypeError):
        Redacted((), Receipt())  # type: ignore[call-arg]  # it must not work


def test_what_is_derived_keeps_its_proof() -> None:
    receipt = Receipt(engine="e")
    derived = vouch(1, receipt).derive(lambda value: value + 1)
    assert (derived.value, derived.receipt) == (2, receipt)


@pytest.mark.parametrize("plain", [(), (Member("a", b"x", 1, "0" * 64),), None, {"value": ()}])
def test_pack_refuses_what_is_not_redacted(plain: object) -> None:
    written: list[bytes] = []
    with pytest.raises(TypeError, match="went through redaction"):
        pack(plain, HEAD, written.append, limits=Limits())  # type: ignore[arg-type]  # it must not work
    assert written == []


def test_only_redaction_vouches() -> None:
    users = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            name = getattr(node, "id", getattr(node, "attr", getattr(node, "name", None)))
            if name in {"vouch", "_MAKER"}:
                users.add(path.relative_to(PACKAGE).parts[0])
    assert users == {"redact", "redacted.py"}
