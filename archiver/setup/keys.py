"""The two keys of a writer: an age identity that opens bundles, and an Ed25519 key that signs records."""

from __future__ import annotations

import hashlib
import os
import pwd
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from archiver import age
from archiver.age import (
    DataKeys,
    HybridIdentity,
    Identity,
    KeyArn,
    KmsClient,
    KmsIdentity,
    KmsRecipient,
    Recipient,
    SecretIdentity,
)
from archiver.config import Settings, config_home
from archiver.config.paths import exists
from archiver.errors import AlreadyExistsError, ConfigError, InputNotFoundError, InvalidKeyError
from archiver.model import utc_text
from archiver.secretfile import write_new_file
from archiver.setup.remote import kms_options
from archiver.sign import SigningKey
from archiver.writers import administrator_entry, entry

T = TypeVar("T")

IDENTITY_FILE = "identity.txt"
SIGNING_FILE = "signing.pem"
WRITERS_FILE = "writers.toml"
_MAX_WHO = 80
_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Keys:
    """A pair of key files and what may be told to others."""

    identity_file: Path
    signing_file: Path
    recipient: str
    """`age1…` or `age1pq1…`: seal to it."""
    fingerprint: str
    """What records and `KeyUnavailableError` call the recipient by."""
    public: str
    """`ed25519:…`: for the `writers.toml` of whoever restores."""

    @property
    def writers_file(self) -> Path:
        """What whoever restores elsewhere needs beside the identity: it is public."""
        return self.signing_file.parent / WRITERS_FILE


def key_folder() -> Path:
    """Where keys lie unless the configuration says otherwise."""
    return config_home() / "keys"


def make_keys(folder: Path, *, now: datetime, post_quantum: bool = False) -> Keys:
    """Make both key files in `folder`, mode 0600; the identity is of the kind X25519 or post-quantum.

    `AlreadyExistsError` if either name is taken; nothing is written then.
    """
    identity_file, signing_file = folder / IDENTITY_FILE, folder / SIGNING_FILE
    _refuse_taken(identity_file, signing_file)
    make_folder(folder)
    identity = HybridIdentity.generate() if post_quantum else age.generate()
    age.write_identity(identity_file, identity, created=now)
    signing = SigningKey.generate()
    signing.save(signing_file)
    made = describe(identity_file, identity, signing_file, signing)
    write_writers(made, now)
    return made


def _refuse_taken(*files: Path) -> None:
    taken = [path for path in files if exists(path) or path.is_symlink()]
    if not taken:
        return
    remedy = "name another folder with --into; what was sealed with the old key needs the old key"
    text = f"{taken[0]} exists already and a key is never overwritten"
    if len(taken) < len(files):
        missing = next(path for path in files if path not in taken)
        text += f"; {missing} does not exist: keys were being made here, or one was removed"
        remedy = (
            f"restore your backup of {missing.name}; if there was never one, `archiver init` completes the "
            f"pair of the configuration home for a new store; or {remedy}"
        )
    raise AlreadyExistsError(text, remedy=remedy)


def describe(identity_file: Path, identity: SecretIdentity, signing_file: Path, signing: SigningKey) -> Keys:
    """What is known of a pair of keys."""
    recipient = identity.recipient
    return Keys(identity_file, signing_file, str(recipient), recipient.fingerprint, signing.public)


def write_writers(keys: Keys, now: datetime) -> None:
    """Write the list that trusts this signing key for all runs and for notes, unless a list is there."""
    path = keys.writers_file
    try:
        write_new_file(
            path,
            "# Whoever restores elsewhere: --writers with this file, or keys.writers in archiver.toml.\n"
            + entry(name := _name(keys.public, now), keys.public, None)
            + "\n# Whose notes are believed: of rekey, hold, release, merged runs, rm and erase.\n"
            + administrator_entry(name, keys.public),
            mode=0o644,
        )
    except FileExistsError:
        return
    except OSError as error:
        raise InputNotFoundError(f"{path} cannot be written: {error.strerror}") from error


def _name(public: str, now: datetime) -> str:
    """What a list calls a new key: one word, and another for each key, for lists are put together."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = str(os.getuid())
    who = re.sub(r"[^A-Za-z0-9.@_-]", "-", f"{user}@{socket.gethostname()}")[:_MAX_WHO]
    return f"{who}/{utc_text(now)[:10]}/{hashlib.sha256(public.encode()).hexdigest()[:_DIGITS]}"


def make_folder(folder: Path) -> None:
    """Make a folder for keys or configuration, mode 0700 where it is new."""
    try:
        missing = [path for path in (folder, *folder.parents) if not exists(path)]
        for path in reversed(missing):
            path.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise InputNotFoundError(f"the folder {folder} cannot be made: {error.strerror}") from error


def identity_files(settings: Settings) -> tuple[Path, ...]:
    """The configured identity files, or the default one where it is."""
    if settings.keys.identities:
        return settings.keys.identities
    default = key_folder() / IDENTITY_FILE
    return (default,) if exists(default) else ()


def load_identities(settings: Settings, kms: DataKeys | None = None) -> tuple[Identity, ...]:
    """All identities of the configuration: of files, or of the default one where it is, then those of KMS."""
    files = (identity for path in identity_files(settings) for identity in age.read_identities(path))
    service = kms or data_keys(settings)
    return (*files, *(KmsIdentity(arn, service) for arn in _kms_arns(settings)))


def data_keys(settings: Settings) -> DataKeys:
    """KMS as it is configured; it is not spoken to before a key is used."""
    return DataKeys(KmsClient(kms_options(settings)))


def _kms_arns(settings: Settings) -> tuple[KeyArn, ...]:
    """The KMS keys that may be asked to open something, each once."""
    if settings.keys.kms:
        return tuple(dict.fromkeys(_of("keys.kms", age.parse_arn, text) for text in settings.keys.kms))
    found = (_of("keys.recipients", age.parse_recipient, text) for text in settings.keys.recipients)
    return tuple(dict.fromkeys(each.arn for each in found if isinstance(each, KmsRecipient)))


def _of(key: str, parse: Callable[[str], T], text: str) -> T:
    try:
        return parse(text)
    except InvalidKeyError as error:
        raise ConfigError(f"{key}: {error}", remedy=error.remedy) from error


def break_glass(settings: Settings) -> dict[str, str]:
    """The keys for emergencies: fingerprint, and how `keys.break_glass` names it.

    `ConfigError` for what is neither a recipient nor a fingerprint: a recipient with a slip in it has the
    form of one, and would be loud for nobody.
    """
    named: dict[str, str] = {}
    for text in settings.keys.break_glass:
        if text.startswith(("age1", "arn:")):
            named[_of(f"keys.break_glass: {text[:80]!r}", age.parse_recipient, text).fingerprint] = text
        else:
            named[text] = text
    return named


def signing_file(settings: Settings) -> Path | None:
    """The configured signing key, or the default one where it is."""
    if settings.keys.signing_key is not None:
        return settings.keys.signing_key
    default = key_folder() / SIGNING_FILE
    return default if exists(default) else None


def load_signing_key(settings: Settings) -> SigningKey | None:
    """The signing key of the configuration, None where none is configured and the default is not there."""
    path = signing_file(settings)
    return None if path is None else SigningKey.load(path)


def recipients(
    settings: Settings, identities: Sequence[Identity], kms: DataKeys | None = None
) -> tuple[Recipient, ...]:
    """The configured recipients, or else those of the identities, each once."""
    parse = partial(age.parse_recipient, kms=kms or data_keys(settings))
    found: dict[str, Recipient] = {}
    for text in settings.keys.recipients:
        recipient = _of("keys.recipients", parse, text)
        found[recipient.fingerprint] = recipient
    if not found:
        for identity in identities:
            if isinstance(identity, SecretIdentity):
                found[identity.fingerprint] = identity.recipient
    return tuple(found.values())
