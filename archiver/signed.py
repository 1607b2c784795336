"""Small signed documents as objects: body → signed frame → age file, and back, checked in that order."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO, Generic, TypeVar

from pydantic import ValidationError

from archiver import age, jsonio, sign
from archiver.errors import NotSerialisableError, RecordError, UnsupportedSchemaError
from archiver.model import Frozen

if TYPE_CHECKING:
    from archiver.age import Context, Identity, ObjectKind, Recipient

Model = TypeVar("Model", bound=Frozen)


@dataclass(frozen=True, slots=True)
class Form(Generic[Model]):
    """A kind of document: what it is called, its type under the signature, its version, shape and size."""

    noun: str
    payload_type: str
    version: int
    model: type[Model]
    limit: int
    """Bytes of a sealed document, on write and on read."""


@dataclass(frozen=True, slots=True)
class Seal:
    """What the authentic header and the payload of an opened object say."""

    recipients: tuple[str, ...]
    """Fingerprints of those that the header names."""
    unnamed: int
    """Stanzas that the header has beyond these."""
    payload_sha256: str
    opened_by: str = ""
    """Fingerprint of the identity that opened it."""

    def is_for(self, fingerprints: Collection[str], missing: Collection[str] = ()) -> bool:
        """Whether the header is for exactly these keys; those of `missing` may be among them, or not."""
        either = set(missing)
        return not self.unnamed and set(self.recipients) - either == set(fingerprints) - either

    def lacks(self, missing: Collection[str]) -> tuple[str, ...]:
        """Those of `missing`, who could not be sealed to at first, whom it is still not sealed to."""
        return tuple(one for one in missing if one not in self.recipients)


def seal_of(source: BinaryIO, identities: Sequence[Identity], name: str, payload_sha256: str) -> Seal:
    """Open the header alone; the payload's digest is the caller's word. Raises as `age.unseal` does."""
    with age.unseal(identities, source, name=name, digest=False) as unsealed:
        return Seal(unsealed.fingerprints, unsealed.unnamed, payload_sha256, unsealed.opened_by)


@dataclass(frozen=True, slots=True)
class Opened(Generic[Model]):
    """An authentic document; whether to trust the key that signed it is for the caller to judge."""

    document: Model
    public: str
    sha256: str
    """Of the body."""
    seal: Seal
    contexts: tuple[Context, ...] = ()
    """What the authentic header says of the object, where KMS wraps its key."""

    def demand_context(self, run: str, task: str, kind: ObjectKind, where: str) -> None:
        """`ContextMismatchError` if the object was sealed as another than its signed body says."""
        age.demand_context(self.contexts, run, task, kind, where=where)


def encode(
    form: Form[Model], document: Model, key: sign.SigningKey, recipients: Sequence[Recipient]
) -> bytes:
    """Sign the canonical body and seal the frame; the caller compares the size with the form's limit."""
    frame = sign.sign(key, form.payload_type, jsonio.canonical(document.document()))
    pieces: list[bytes] = []
    sealer = age.seal(recipients, pieces.append, digest=False)
    sealer.write(frame)
    sealer.close()
    return b"".join(pieces)


def decode(form: Form[Model], sealed: bytes, identities: Sequence[Identity], where: str) -> Opened[Model]:
    """Open, verify and only then parse; `where` is what errors call the document.

    Raises `ContainerError`, `KeyUnavailableError`, `SignatureError`, `UnsupportedSchemaError`, `RecordError`.
    """
    with age.unseal(identities, BytesIO(sealed), name=where) as unsealed:
        frame = unsealed.read(form.limit + 1)
        seal = Seal(unsealed.fingerprints, unsealed.unnamed, unsealed.payload_sha256, unsealed.opened_by)
        contexts = unsealed.contexts
    public, body = sign.verify(frame, form.payload_type)
    document = _parse(form, body, where)
    return Opened(document, public, hashlib.sha256(body).hexdigest(), seal, contexts)


def _parse(form: Form[Model], body: bytes, where: str) -> Model:
    try:
        document = jsonio.loads(body)
    except ValueError as error:
        raise RecordError(f"{where} is signed but is not JSON") from error
    version = document.get("format") if isinstance(document, dict) else None
    if isinstance(version, int) and version > form.version:
        raise UnsupportedSchemaError(
            f"{where} has {form.noun} format {version}; this release reads {form.version}",
            remedy=f"install a checkpoint-archiver release that reads {form.noun} format {version}",
        )
    try:
        parsed = form.model.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        message = f"{where} does not have the shape of a {form.noun}: {place}: {first['msg']}"
        raise RecordError(message) from error
    except NotSerialisableError as error:
        raise RecordError(f"{where} does not have the shape of a {form.noun}: {error}") from error
    if jsonio.canonical(parsed.document(), checked=True) != body:
        raise RecordError(f"{where} is not written in the one canonical form")
    return parsed
