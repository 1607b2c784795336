"""What the tests of the container share."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from types import ModuleType

import pytest

from archiver import age
from archiver.errors import ArchiverError

TESTS = Path(__file__).parent.parent
MAKER = TESTS / "vectors" / "make_age_vectors.py"


@pytest.fixture(scope="session")
def maker() -> ModuleType:
    """The script that makes the project's own vectors, and the test keys derived in it."""
    spec = importlib.util.spec_from_file_location("make_age_vectors", MAKER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


Sealing = Callable[..., bytes]
Opening = Callable[[Sequence[age.Identity], bytes], tuple[bytes, ArchiverError | None]]


@pytest.fixture(scope="session")
def sealed() -> Sealing:
    """Seals bytes whole."""

    def seal(recipients: Sequence[age.Recipient], plain: bytes) -> bytes:
        pieces: list[bytes] = []
        sealer = age.seal(recipients, pieces.append)
        sealer.write(plain)
        sealer.close()
        return b"".join(pieces)

    return seal


@pytest.fixture(scope="session")
def released() -> Opening:
    """Reads a file chunk by chunk; what came out, and the error it ended with."""

    def read(identities: Sequence[age.Identity], data: bytes) -> tuple[bytes, ArchiverError | None]:
        out = bytearray()
        try:
            with age.unseal(identities, BytesIO(data)) as plain:
                while piece := plain.read1():
                    out += piece
        except ArchiverError as error:
            return bytes(out), error
        return bytes(out), None

    return read
