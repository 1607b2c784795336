"""Keys as text: recipient strings, identity strings and identity files."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from archiver.age import arn, bech32, hybrid, x25519
from archiver.age.data_keys import DataKeys
from archiver.age.hybrid import HybridIdentity, HybridRecipient
from archiver.age.kms import KmsRecipient
from archiver.age.protocols import Recipient, SecretIdentity
from archiver.age.x25519 import X25519Identity, X25519Recipient
from archiver.errors import InvalidKeyError
from archiver.secretfile import read_secret_file, write_secret_file

_RECIPIENTS: dict[str, Callable[[bytes], Recipient]] = {
    x25519.RECIPIENT_PREFIX: X25519Recipient,
    hybrid.RECIPIENT_PREFIX: HybridRecipient,
}
_IDENTITIES: dict[str, Callable[[bytes], SecretIdentity]] = {
    x25519.IDENTITY_PREFIX: X25519Identity,
    hybrid.IDENTITY_PREFIX: HybridIdentity,
}


def generate() -> X25519Identity:
    """A new X25519 identity."""
    return X25519Identity.generate()


def parse_recipient(text: str, *, kms: DataKeys | None = None) -> Recipient:
    """The recipient that `age1…`, `age1pq1…` or the ARN of a KMS key names; `InvalidKeyError` for other text.

    One of KMS seals only if `kms` is given, and bound to a context.
    """
    if text.startswith(arn.PREFIX):
        return KmsRecipient(arn.parse_arn(text), kms)
    if text.upper().startswith(x25519.IDENTITY_PREFIX):
        raise InvalidKeyError(
            "a secret identity stands where a recipient is due",
            remedy="use the `age1…` text of its `# public key:` line, and replace the key if others saw it",
        )
    prefix, data = _decode(text, "recipient", "age1…")
    if prefix not in _RECIPIENTS:
        raise InvalidKeyError(f"{prefix!r} is not a kind of recipient that this release knows")
    return _RECIPIENTS[prefix](data)


def parse_identity(text: str) -> SecretIdentity:
    """The identity that `AGE-SECRET-KEY-…` names; `InvalidKeyError`, which never shows the text."""
    if text.startswith(x25519.RECIPIENT_PREFIX + "1"):
        raise InvalidKeyError(
            "a public recipient stands where a secret identity is due",
            remedy="name the identity file, whose key line begins with AGE-SECRET-KEY-",
        )
    prefix, data = _decode(text, "identity", "AGE-SECRET-KEY-…")
    if prefix not in _IDENTITIES:
        raise InvalidKeyError("this is not a kind of identity that this release knows")
    return _IDENTITIES[prefix](data)


def read_identities(path: Path) -> list[SecretIdentity]:
    """All identities of a file: one a line, beside comments (`#`) and blank lines.

    Raises `KeyUnavailableError` if the file cannot be read, and `InvalidKeyError` with file and line number
    for a line that is no identity, for a file without any, or for one that other users can read.
    """
    identities = []
    for number, raw in enumerate(read_secret_file(path).split("\n"), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("-----BEGIN"):
            raise InvalidKeyError(f"{path} is a PEM file, such as a signing key; an age identity file is due")
        try:
            identities.append(parse_identity(line))
        except InvalidKeyError as error:
            raise InvalidKeyError(f"{path}, line {number}: {error}", remedy=error.remedy) from None
    if not identities:
        raise InvalidKeyError(
            f"{path} holds no identity", remedy="make one with `archiver keygen`, under another name"
        )
    return identities


def write_identity(path: Path, identity: SecretIdentity, *, created: datetime) -> None:
    """Create an identity file as `age-keygen` does: mode 0600, never over an existing file.

    Raises `AlreadyExistsError` and `InputNotFoundError`.
    """
    when = created.isoformat(timespec="seconds")
    text = f"# created: {when}\n# public key: {identity.recipient}\n{identity.secret_text()}\n"
    write_secret_file(path, text)


def _decode(text: str, kind: str, form: str) -> tuple[str, bytes]:
    try:
        return bech32.decode(text)
    except InvalidKeyError as error:
        raise InvalidKeyError(f"not an age {kind} ({form}): {error}") from None
