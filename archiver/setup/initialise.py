"""Make a store, the keys and a configuration file, and prove a round trip before anybody relies on them."""

from __future__ import annotations

import secrets
import shlex
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from pathlib import Path
from urllib.parse import unquote, urlsplit

from archiver import age, layout, sign
from archiver.age import Identity, Recipient, X25519Identity
from archiver.config import Settings, data_home, load, place_of_store
from archiver.config.paths import exists
from archiver.errors import (
    AlreadyExistsError,
    ArchiverError,
    DigestMismatchError,
    InputNotFoundError,
    InvalidNameError,
    KeyUnavailableError,
    ObjectNotFoundError,
    StoreUnreachableError,
)
from archiver.secretfile import write_new_file
from archiver.setup import keys
from archiver.setup.config_text import config_text
from archiver.sign import SigningKey
from archiver.store import ObjectStore, open_store

PROBE_TYPE = "application/vnd.checkpoint-archiver.probe"
_PROBE_RUN = "archiver-init"
_MAX_PROBE = 1 << 16
_HARMLESS = {".tmp", "lost+found", f".{layout.STORE}.class"}
"""What an empty store (also one whose making was ended half-way) and an empty file system hold."""


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


def default_store() -> str:
    """The folder that is the store where none is configured."""
    return str(data_home() / "store")


def initialise(url: str, config: Path | None, *, settings: Settings, now: datetime) -> Initialised:
    """Set up the folder store `url`, and write `config` (None: no file) as the last step.

    Existing keys are used and never overwritten. Raises `AlreadyExistsError` if `config` exists or the folder
    holds something else, and `KeyUnavailableError` if the store already holds objects and a key is missing:
    a new one would not open them.
    """
    url = place_of_store(url)
    store = open_store(url)
    nameless = not has_name(store) and holds_runs(store)
    if nameless and settings.store.id is None:
        raise _without_name(store, config)
    if config is not None and exists(config):
        raise AlreadyExistsError(
            f"the configuration {config} exists already",
            remedy="edit it, or write another one with --config",
        )
    if not nameless:
        _refuse_other_contents(store)
    identity, signing, fresh = _keys(settings, store, now)
    open_store(url, make=True)
    store_id, new_store = name_store(store, settings.store.id if nameless else None)
    recipients = keys.recipients(settings, (identity,))
    prove_round_trip(store, recipients, (identity,), signing, settings)
    files = _files(settings)
    made = Initialised(
        store=url,
        store_id=store_id,
        config=config,
        keys=keys.describe(files[0], identity, files[1], signing),
        new_store=new_store and not nameless,
        new_identity=fresh[0],
        new_signing_key=fresh[1],
    )
    keys.write_writers(made.keys, now)
    if config is not None:
        _write_config(config, made)
    return made


def holds_objects(store: ObjectStore) -> bool:
    """Whether anything but the store's name lies in the store; a store that is not there holds nothing."""
    try:
        return any(info.name != layout.STORE for info in store.list())
    except StoreUnreachableError:
        return False


def has_name(store: ObjectStore) -> bool:
    """Whether the store has its `store.json`; one that is not there has none."""
    try:
        store.head(layout.STORE)
    except (ObjectNotFoundError, StoreUnreachableError):
        return False
    return True


def _without_name(store: ObjectStore, config: Path | None) -> AlreadyExistsError:
    """Objects without a `store.json`: no new id may be given, because the records carry the old one."""
    text = f"the store at {store.url} holds objects, but its {layout.STORE} is gone"
    for path in (config, None):
        try:
            known = load(path)
        except ArchiverError:
            continue
        url = known.store.url or default_store()
        if known.store.id is not None and known.file and open_store(url).url == store.url:
            return AlreadyExistsError(
                f"{text}; the configuration {known.file} has its id, {known.store.id}",
                remedy="no init is needed: with that configuration reading goes on, and the next "
                f"`archiver archive --config {shlex.quote(str(known.file))}` writes {layout.STORE} again",
            )
    return AlreadyExistsError(
        text,
        remedy=f"restore {layout.STORE} from a copy of the store; or, if you know its id from a "
        "configuration that used it (store.id), run init with ARCHIVER_STORE__ID set to that id",
    )


def holds_runs(store: ObjectStore) -> bool:
    """Whether records or bundles lie in the store, whatever else does; a folder of other files has none."""
    try:
        return any(
            _is_object(info.name)
            for prefix in (layout.RECORDS, layout.BUNDLES)
            for info in store.list(prefix)
        )
    except StoreUnreachableError:
        return False


def _is_object(name: str) -> bool:
    try:
        layout.parse(name)
    except InvalidNameError:
        return False
    return True


def _refuse_other_contents(store: ObjectStore) -> None:
    """A folder with other files in it is not taken for a store by mistake."""
    try:
        store.head(layout.STORE)
    except StoreUnreachableError:
        return
    except ObjectNotFoundError:
        folder = Path(unquote(urlsplit(store.url).path))
        try:
            names = {entry.name for entry in folder.iterdir()}
        except OSError as error:
            raise InputNotFoundError(f"the folder {folder} cannot be read: {error.strerror}") from error
        if names - _HARMLESS:
            raise AlreadyExistsError(
                f"{folder} is not empty and is no store", remedy="name a new or an empty folder"
            ) from None


def _files(settings: Settings) -> tuple[Path, Path]:
    """The identity and signing key files that are, or will be, used."""
    identities = keys.identity_files(settings) or (keys.key_folder() / keys.IDENTITY_FILE,)
    signing = keys.signing_file(settings) or keys.key_folder() / keys.SIGNING_FILE
    return identities[0], signing


def _keys(
    settings: Settings, store: ObjectStore, now: datetime
) -> tuple[X25519Identity, SigningKey, tuple[bool, bool]]:
    """Both keys, and which of them are new."""
    identity_file, signing_file = _files(settings)
    missing = [path for path in (identity_file, signing_file) if not exists(path)]
    if missing and holds_objects(store):
        raise KeyUnavailableError(
            f"the store at {store.url} already holds objects, but {' and '.join(map(str, missing))} "
            f"{'is' if len(missing) == 1 else 'are'} not here; a new key would not go with them",
            remedy="restore your backup of the keys, or choose a new folder for a new store",
        )
    keys.make_folder(identity_file.parent)
    keys.make_folder(signing_file.parent)
    if identity_file in missing:
        age.write_identity(identity_file, age.generate(), created=now)
    if signing_file in missing:
        SigningKey.generate().save(signing_file)
    identity = next(
        (found for found in age.read_identities(identity_file) if isinstance(found, X25519Identity)), None
    )
    if identity is None:
        raise KeyUnavailableError(f"{identity_file} holds no X25519 identity")
    fresh = (identity_file in missing, signing_file in missing)
    return identity, SigningKey.load(signing_file), fresh


def name_store(store: ObjectStore, known: str | None = None) -> tuple[str, bool]:
    """The id of the store, and whether its name was written now, with the id that is `known` or a new one."""
    store_id = known or secrets.token_hex(16)
    try:
        store.create(layout.STORE, [layout.store_document(store_id)], retention="hold")
    except AlreadyExistsError:
        return layout.parse_store_document(store.read(layout.STORE, limit=4096)), False
    return store_id, True


def prove_round_trip(
    store: ObjectStore,
    recipients: tuple[Recipient, ...],
    identities: tuple[Identity, ...],
    signing: SigningKey,
    settings: Settings,
) -> None:
    """Seal, sign, store, read back, open, verify and remove a small object, as archive and restore do."""
    name = layout.effect_name(_PROBE_RUN, secrets.token_hex(16))
    body = secrets.token_bytes(32)
    sealed: list[bytes] = []
    context = age.Context(settings.keys.application, _PROBE_RUN, _PROBE_RUN, "effect")
    sealer = age.seal(age.bind_recipients(recipients, context), sealed.append)
    sealer.write(sign.sign(signing, PROBE_TYPE, body))
    sealer.close()
    store.create(name, sealed, retention="live")
    try:
        with age.unseal(
            age.bind_identities(identities, context), BytesIO(store.read(name, limit=_MAX_PROBE))
        ) as opened:
            public, found = sign.verify(opened.read(_MAX_PROBE), PROBE_TYPE)
    finally:
        store.delete(name)
    if (public, found) != (signing.public, body):
        raise DigestMismatchError(
            f"the store at {store.url} gave back another object than was put there",
            remedy="do not use this store; check its disk or server",
        )


def _write_config(path: Path, made: Initialised) -> None:
    keys.make_folder(path.parent)
    try:
        write_new_file(path, config_text(made.store, made.store_id, made.keys), mode=0o600)
    except FileExistsError as error:
        raise AlreadyExistsError(
            f"the configuration {path} was written by somebody else meanwhile",
            remedy="look at it, or write another one with --config",
        ) from error
    except OSError as error:
        raise InputNotFoundError(f"the configuration {path} cannot be written: {error.strerror}") from error
