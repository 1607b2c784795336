"""What is said when a header opens with none of the keys at hand, or does not fit what is behind it."""

from __future__ import annotations

from collections.abc import Sequence

from archiver.age import hints, kms, scrypt, stream
from archiver.age.feed import Feed
from archiver.age.header import Header
from archiver.age.kms import KmsIdentity
from archiver.age.protocols import Identity
from archiver.errors import (
    ArchiverError,
    ForeignKeyError,
    HeaderMacError,
    KeyUnavailableError,
    MovedKeyError,
)

_SHOWN = 8


def no_key(identities: Sequence[Identity], header: Header, name: str) -> KeyUnavailableError:
    """No stanza is for any of the identities."""
    fingerprints = hints.hint(header)
    phrases = sum(identity.fingerprint == scrypt.FINGERPRINT for identity in identities)
    if fingerprints == (scrypt.FINGERPRINT,):
        tried = "the passphrase given does not open it" if phrases else "no passphrase was given"
        return KeyUnavailableError(
            f"{name} is locked with a passphrase: {tried}",
            fingerprints=fingerprints,
            remedy="give the passphrase it was sealed with",
        )
    said = f"{name}: {_tried(len(identities) - phrases, phrases)}; {_openers(header)}"
    foreign = dict.fromkeys(wrapped.arn.text for wrapped in kms.wrapped_keys(header.stanzas))
    if foreign:
        return ForeignKeyError(
            f"{said}; KMS was not asked, because {', '.join(foreign)} is not in keys.kms",
            fingerprints=fingerprints,
            remedy="name the KMS key in keys.kms if it is yours, or give an identity file with another key",
        )
    remedy = "give an identity file that holds one of these keys"
    if any(isinstance(identity, KmsIdentity) for identity in identities):
        remedy += "; if it was saved while KMS was away, `archiver rekey` with that file seals it to KMS too"
    return KeyUnavailableError(said, fingerprints=fingerprints, remedy=remedy)


def failed(error: ArchiverError, header: Header, name: str) -> ArchiverError:
    """A key that is meant for the file failed; the error with the object it is about."""
    text = f"{name}: {error}"
    if isinstance(error, KeyUnavailableError):
        named: ArchiverError = type(error)(text, fingerprints=hints.hint(header), remedy=error.remedy)
    else:
        named = type(error)(text, remedy=error.remedy)
    named.__cause__ = error
    return named


def misfit(feed: Feed, file_key: bytes, name: str) -> ArchiverError:
    """The file key does not fit the header: was the header changed, or is the key that of another file?"""
    if stream.opens_first_chunk(feed, file_key):
        return HeaderMacError(f"the header of {name} was changed after it was written")
    return MovedKeyError(
        f"a wrapped key in the header of {name} was moved there from another file, "
        "or both header and payload were changed"
    )


def _tried(keys: int, phrases: int) -> str:
    if keys > 1:
        return f"none of the {keys} identities given opens it"
    if keys:
        return "the identity given does not open it"
    return "it is locked to keys, not with a passphrase" if phrases else "no identity was given"


def _openers(header: Header) -> str:
    fingerprints = hints.hint(header)
    if not fingerprints:
        return f"it has {len(header.stanzas)} stanzas and does not say which keys open it"
    shown = ", ".join(fingerprints[:_SHOWN]) + (", …" if len(fingerprints) > _SHOWN else "")
    return (
        f"it opens with the key {shown}"
        if len(fingerprints) == 1
        else f"it opens with one of the keys {shown}"
    )
