"""Make a store, the keys and a configuration file, and prove a round trip before anybody relies on them."""

from __future__ import annotations

import secrets
import shlex
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from pathlib import Path

from archiver import age, layout, sign
from archiver.age import Identity, Recipient, SecretIdentity
from archiver.config import Settings, place_of_store
from archiver.config.paths import exists
from archiver.errors import (
    AlreadyExistsError,
    DigestMismatchError,
    InputNotFoundError,
    KeyUnavailableError,
    ObjectNotFoundError,
    UnfencedStoreError,
    UsageError,
)
from archiver.secretfile import write_new_file
from archiver.setup import contents, fencing, keys
from archiver.setup.config_text import config_text
from archiver.setup.probes import Probes, remover
from archiver.setup.remote import is_remote, store_options
from archiver.setup.standing import standing_warnings
from archiver.sign import SigningKey
from archiver.store import ObjectStore, open_store

PROBE_TYPE = "application/vnd.checkpoint-archiver.probe"
_MAX_PROBE = 1 << 16


@dataclass(frozen=True, slots=True)
class Initialised:
    """What is there now, and what of it is new."""

    store: str
    store_id: str
    config: Path | None
    """The configuration file that was written, if one was."""
    keys: keys.Keys
    new_store: bool
    new_identity: bool
    new_signing_key: bool
    remote: bool = False
    """The store lies on a server."""
    fenced: bool | None = None
    """Of several creators of one name exactly one won, as far as that could be seen."""
    left: tuple[str, ...] = ()
    """Probes that stay in the store, because what made them may not delete."""
    warnings: tuple[str, ...] = ()


def initialise(url: str, config: Path | None, *, settings: Settings, now: datetime) -> Initialised:
    """Set up the store `url`, and write `config` (None: no file) as the last step.

    Existing keys are used and never overwritten. Raises `AlreadyExistsError` if `config` exists or the place
    holds something else, `KeyUnavailableError` if the store already holds objects and a key is missing (a new
    one would not open them), `UnfencedStoreError` if the store ignores conditional writes and the settings do
    not say that this is known, and the store's errors.
    """
    url = place_of_store(url)
    store = open_store(url, options=store_options(settings))
    known_id = _look(store, config, settings)
    open_store(url, make=True, options=store_options(settings))
    with Probes(layout.INIT_PROBES, remover(store, settings)) as probes:
        found = _fenced(store, probes, settings)
        identity, signing, fresh = _keys(settings, now)
        recipients = _recipients(settings, identity)
        prove_round_trip(store, probes.name(), recipients, (identity,), signing, settings)
    store_id, new_store = name_store(store, known_id)
    files = _files(settings)
    made = Initialised(
        store=url,
        store_id=store_id,
        config=config,
        keys=keys.describe(files[0], identity, files[1], signing),
        new_store=new_store and known_id is None,
        new_identity=fresh[0],
        new_signing_key=fresh[1],
        remote=is_remote(store),
        fenced=found.enforced,
        left=probes.left,
        warnings=(*_unsure(found), *standing_warnings(settings, store, recipients, (identity,))),
    )
    keys.write_writers(made.keys, now)
    if config is not None:
        _write_config(config, config_text(url, store_id, made.keys, settings))
    return made


def _look(store: ObjectStore, config: Path | None, settings: Settings) -> str | None:
    """Refuse what must not become a store, with nothing made yet; the id that a nameless store must get."""
    named = contents.has_name(store)
    nameless = not named and contents.holds_runs(store)
    if nameless and settings.store.id is None:
        contents.refuse_nameless(store, config)
    if config is not None and exists(config):
        raise AlreadyExistsError(
            f"the configuration {config} exists already",
            remedy="edit it, or have another one written: `archiver init STORE --config FILE` makes STORE, "
            "where it is not there yet, and FILE",
        )
    if not named and not nameless:
        contents.refuse_other_contents(store, settings)
    _refuse_other_kind(settings)
    missing = [path for path in _files(settings) if not exists(path)]
    if missing and contents.holds_objects(store):
        raise KeyUnavailableError(
            f"the store at {store.url} already holds objects, but {' and '.join(map(str, missing))} "
            f"{'is' if len(missing) == 1 else 'are'} not here; a new key would not go with them",
            remedy="restore your backup of the keys, or choose a new place for a new store",
        )
    return settings.store.id if nameless else None


def _refuse_other_kind(settings: Settings) -> None:
    """A new identity is an X25519 one, which never stands beside post-quantum recipients."""
    identity = _files(settings)[0]
    if not exists(identity) and any(recipient.labels() for recipient in keys.recipients(settings, ())):
        raise UsageError(
            "a post-quantum recipient never stands beside an X25519 identity, which init would make",
            remedy="make a post-quantum identity first, with `archiver keygen --pq --into "
            f"{shlex.quote(str(identity.parent))}`; then init again",
        )


def _fenced(store: ObjectStore, probes: Probes, settings: Settings) -> fencing.Fencing:
    found = fencing.probe(store, probes)
    if found.enforced is False and settings.store.fencing:
        how = "at the same moment" if found.in_turn else "one after the other"
        raise UnfencedStoreError(
            f"{store.url} ignores conditional writes: two creates of one name, {how}, both won; "
            "so two writers of one run could both win",
            remedy="use a server that enforces If-None-Match (docs/S3.md says which do), or go on without "
            "this protection with --without-fencing, if every run has one writer only",
        )
    return found


def _unsure(found: fencing.Fencing) -> tuple[str, ...]:
    text = (
        "the store failed while several creates of one name ran at the same moment, so it is not known "
        "whether exactly one of them wins; `archiver doctor` tries it again"
    )
    return (text,) if found.enforced is None else ()


def _recipients(settings: Settings, identity: SecretIdentity) -> tuple[Recipient, ...]:
    """The own recipient, which the round trip needs, and those that are configured."""
    found = {r.fingerprint: r for r in (identity.recipient, *keys.recipients(settings, ()))}
    return tuple(found.values())


def _files(settings: Settings) -> tuple[Path, Path]:
    """The identity and signing key files that are, or will be, used."""
    identities = keys.identity_files(settings) or (keys.key_folder() / keys.IDENTITY_FILE,)
    signing = keys.signing_file(settings) or keys.key_folder() / keys.SIGNING_FILE
    return identities[0], signing


def _keys(settings: Settings, now: datetime) -> tuple[SecretIdentity, SigningKey, tuple[bool, bool]]:
    """Both keys, and which of them are new."""
    identity_file, signing_file = _files(settings)
    missing = [path for path in (identity_file, signing_file) if not exists(path)]
    keys.make_folder(identity_file.parent)
    keys.make_folder(signing_file.parent)
    if identity_file in missing:
        age.write_identity(identity_file, age.generate(), created=now)
    if signing_file in missing:
        SigningKey.generate().save(signing_file)
    identity = next(
        (found for found in age.read_identities(identity_file) if isinstance(found, SecretIdentity)), None
    )
    if identity is None:
        raise KeyUnavailableError(f"{identity_file} holds no identity with a recipient to seal to")
    fresh = (identity_file in missing, signing_file in missing)
    return identity, SigningKey.load(signing_file), fresh


def name_store(store: ObjectStore, known: str | None = None) -> tuple[str, bool]:
    """The id of the store, and whether its name was written now, with the id that is `known` or a new one.

    A name that is there is read first: a server that ignores conditions would let a new one replace it.
    """
    try:
        return contents.store_id(store), False
    except ObjectNotFoundError:
        pass
    store_id = known or secrets.token_hex(16)
    try:
        store.create(layout.STORE, [layout.store_document(store_id)], retention="hold")
    except AlreadyExistsError:
        return contents.store_id(store), False
    return store_id, True


def prove_round_trip(
    store: ObjectStore,
    name: str,
    recipients: tuple[Recipient, ...],
    identities: tuple[Identity, ...],
    signing: SigningKey,
    settings: Settings,
) -> None:
    """Seal, sign, store, read back, open and verify a small object, as archive and restore do."""
    body = secrets.token_bytes(32)
    sealed: list[bytes] = []
    run = layout.INIT_PROBES
    context = age.Context(settings.keys.application, run, run, "effect")
    sealer = age.seal(age.bind_recipients(recipients, context), sealed.append)
    sealer.write(sign.sign(signing, PROBE_TYPE, body))
    sealer.close()
    store.create(name, sealed, retention="live")
    with age.unseal(
        age.bind_identities(identities, context), BytesIO(store.read(name, limit=_MAX_PROBE))
    ) as opened:
        public, found = sign.verify(opened.read(_MAX_PROBE), PROBE_TYPE)
    if (public, found) != (signing.public, body):
        raise DigestMismatchError(
            f"the store at {store.url} gave back another object than was put there",
            remedy="do not use this store; check its disk or server",
        )


def _write_config(path: Path, text: str) -> None:
    keys.make_folder(path.parent)
    try:
        write_new_file(path, text, mode=0o600)
    except FileExistsError as error:
        raise AlreadyExistsError(
            f"the configuration {path} was written by somebody else meanwhile",
            remedy="look at it, or write another one with --config",
        ) from error
    except OSError as error:
        raise InputNotFoundError(f"the configuration {path} cannot be written: {error.strerror}") from error
