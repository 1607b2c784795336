"""Open the configured store with its keys; at the very first use, make them."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from archiver import layout
from archiver.age import (
    Context,
    Identity,
    ObjectKind,
    Reached,
    Recipient,
    SecretIdentity,
    bind_identities,
    bind_recipients,
    reached,
)
from archiver.config import FILE_NAME, Settings, config_home
from archiver.config.paths import current_folder, exists, home
from archiver.errors import (
    ConfigError,
    ContextMismatchError,
    KeyUnavailableError,
    ObjectNotFoundError,
    StoreUnreachableError,
    UsageError,
)
from archiver.setup import contents, keys
from archiver.setup.contents import default_store, holds_objects, holds_runs
from archiver.setup.initialise import Initialised, initialise, name_store
from archiver.setup.remote import is_remote, store_options
from archiver.setup.session import Session
from archiver.setup.standing import standing_warnings
from archiver.setup.witnesses import witness_of
from archiver.sign import SigningKey
from archiver.store import ObjectStore, open_store
from archiver.witness import Witness
from archiver.writers import Writers

if TYPE_CHECKING:
    from archiver.redact import Chosen, ExactValue, Redactor


@dataclass(frozen=True, slots=True)
class Setup:
    """What every operation works with."""

    store: ObjectStore
    store_id: str | None
    recipients: tuple[Recipient, ...]
    identities: tuple[Identity, ...]
    signing_key: SigningKey | None
    writers: Writers
    settings: Settings
    made: Initialised | None = None
    """What was made at first use, so that it can be said once."""
    warnings: tuple[str, ...] = ()
    """What is not as it was set up, and did not keep the store from being opened."""
    registered: tuple[ExactValue, ...] = ()
    """Values that the caller knows to be secret."""
    why: str = ""
    """The reason that somebody gave for what they do, for the audit."""
    without_kms: bool = False
    """Whether to save although KMS is away, sealed to the other recipients and marked."""
    witness: Witness | None = None
    """What remembers outside the store how far runs were seen; None where that is not wanted."""
    session: Session = field(default_factory=Session, compare=False, repr=False)
    """What was done with it so far, for the audit."""

    def registering(self, *values: ExactValue) -> Setup:
        """The same setup, which searches all that is saved for these values too, in all their encodings."""
        return replace(self, registered=(*self.registered, *values))

    def require_signing_key(self) -> SigningKey:
        """The signing key; `KeyUnavailableError` where there is none."""
        if self.signing_key is None:
            raise KeyUnavailableError(
                "there is no signing key, so no record can be made", remedy=_restore_keys()
            )
        return self.signing_key

    def require_store_id(self) -> str:
        """The id of the store; `ConfigError` where it has none."""
        if self.store_id is None:
            raise _no_store(self.store.url, self.settings, "write")
        return self.store_id

    def recipients_for(self, run: str, task: str, kind: ObjectKind) -> tuple[Recipient, ...]:
        """Whom an object of that run and task has to be sealed to."""
        return bind_recipients(self.recipients, Context(self.settings.keys.application, run, task, kind))

    def seal_to(self, run: str, task: str, kind: ObjectKind) -> Reached:
        """Whom one object of that run and task is sealed to, and who is missing `without_kms`.

        Then KMS is asked here, so that what is missing can be signed; raises what it answers with, and
        `KmsUnreachableError` where there is no other recipient either.
        """
        recipients = self.recipients_for(run, task, kind)
        return reached(recipients) if self.without_kms else Reached(recipients)

    def identities_for(self, run: str, kind: ObjectKind, task: str | None = None) -> tuple[Identity, ...]:
        """What opens an object of that run; `task` where it is known before."""
        return bind_identities(self.identities, Context(self.settings.keys.application, run, task, kind))

    def exact_values(self) -> list[ExactValue]:
        """Values that are known to be secret: registered, of the environment, of files, the own identities.

        Raises `RedactionUnavailableError` for a file of `redaction.secret_files` that cannot be read.
        """
        from archiver.redact import ExactValue

        own = [
            ExactValue("archiver identity", identity.secret_text())
            for identity in self.identities
            if isinstance(identity, SecretIdentity)
        ]
        held = self.session.values
        return [*self.registered, *(known_values(self.settings) if held is None else held), *own]

    def redactor(self, key: bytes) -> Redactor:
        """What redacts with all that is configured; raises `RedactionUnavailableError`."""
        from archiver.redact import Redactor

        return Redactor.load(
            key,
            exact=self.exact_values(),
            chosen=chosen_rules(self.settings),
            reuse=self.settings.redaction.reuse,
        )


def chosen_rules(settings: Settings) -> Chosen:
    """The rules that the settings ask for."""
    from archiver.redact import Chosen, OwnPattern

    asked = settings.redaction
    own = (OwnPattern(one.id, one.kind, one.pattern, one.form, one.keywords) for one in asked.patterns)
    return Chosen(asked.rule_files, asked.packs, asked.disabled_rules, tuple(own))


def known_values(settings: Settings) -> list[ExactValue]:
    """The same without the own identities, for what needs no store; raises likewise."""
    from archiver.redact import exact_from_environment, secretfiles

    configured = settings.redaction
    environment = exact_from_environment(os.environ, settings.archive.secret_environment)
    files = secretfiles.named(configured.secret_files)
    if configured.well_known_files:
        files += secretfiles.well_known(*_places_of_user(), os.environ)
    return [*environment, *files]


def _places_of_user() -> tuple[Path | None, Path | None]:
    """The home folder and the current one, as far as they are known."""
    places: list[Path | None] = []
    for find in (home, current_folder):
        try:
            places.append(find())
        except UsageError:
            places.append(None)
    return places[0], places[1]


def open_setup(
    settings: Settings,
    need: Literal["read", "write"],
    *,
    interactive: bool = False,
    offline: bool = False,
    make: bool = True,
    now: datetime | None = None,
) -> Setup:
    """The store, keys and writers of `settings`.

    `need="write"` at a terminal (`interactive`) makes the default store and the keys at first use; unattended
    it never makes a key, and without `make` nothing at all. With `offline` the store is not asked whether it
    is the one that the settings name, if they have its id. Raises `ConfigError`, `KeyUnavailableError`,
    `InvalidKeyError`, `ContextMismatchError` (another store than the configured id) and the store's errors.
    """
    made = None
    if make and need == "write" and settings.store.url is None:
        made = _first_use(settings, interactive, now or datetime.now(UTC))
    url = settings.store.url or default_store()
    store = open_store(url, options=store_options(settings))
    warnings: tuple[str, ...]
    if offline and settings.store.id is not None:
        store_id, warnings = settings.store.id, (f"the store at {store.url} was not asked who it is",)
    else:
        store_id, warnings = _store_id(store, settings, need)
    keys.break_glass(settings)
    kms = keys.data_keys(settings)
    identities = keys.load_identities(settings, kms)
    signing_key = keys.load_signing_key(settings) if need == "write" else _reader_key(settings)
    recipients = keys.recipients(settings, identities, kms)
    if need == "read" and not identities:
        raise KeyUnavailableError(
            "there is no identity, so nothing can be opened",
            remedy=f"name the file of one with --identity FILE; or {_restore_keys()}",
        )
    if need == "write" and (not recipients or signing_key is None):
        what = "signing key" if recipients else "identity and no recipient"
        raise KeyUnavailableError(
            f"there is no {what}, so nothing can be {'signed' if recipients else 'sealed'}",
            remedy=_restore_keys(),
        )
    writers = Writers.load(settings.keys.writers, own=signing_key.public if signing_key else None)
    warnings = (*warnings, *writers.warnings)
    if need == "write":
        warnings = (*warnings, *standing_warnings(settings, store, recipients, identities))
    witness, doubts = witness_of(settings, store.url)
    return Setup(
        store,
        store_id,
        recipients,
        identities,
        signing_key,
        writers,
        settings,
        made,
        (*warnings, *doubts),
        witness=witness,
    )


def _reader_key(settings: Settings) -> SigningKey | None:
    """The signing key as far as a reader needs it: to know whom to believe where no list says so."""
    try:
        return keys.load_signing_key(settings)
    except KeyUnavailableError as error:
        if settings.keys.writers is not None:
            return None
        path = settings.keys.signing_key or keys.key_folder() / keys.SIGNING_FILE
        beside = path.parent / keys.WRITERS_FILE
        raise KeyUnavailableError(
            f"whose signatures to believe is not known: there is no list of writers, and {error}",
            remedy=f"name the list of trusted writers with --writers{_beside(beside)}, "
            f"or restore your backup of {path}",
        ) from error


def _beside(path: Path) -> str:
    return f" {shlex.quote(str(path))}" if exists(path) else ""


def _first_use(settings: Settings, interactive: bool, now: datetime) -> Initialised | None:
    """Make the default store, and at a terminal the keys, where they are not there yet."""
    has_keys = bool(keys.identity_files(settings)) and keys.signing_file(settings) is not None
    store = open_store(default_store())
    if holds_objects(store):
        return None  # whatever is missing now must be restored, not made
    if not has_keys and not interactive:
        raise KeyUnavailableError(
            "there is no identity or no signing key yet, and nobody is here to keep a backup of new ones",
            remedy="run `archiver init` once, or name store.url and keys.identities in archiver.toml",
        )
    if has_keys and contents.has_name(store):
        return None
    config = None if settings.file or settings.keys.identities else config_home() / FILE_NAME
    return initialise(default_store(), config, settings=settings, now=now)


def _store_id(
    store: ObjectStore, settings: Settings, need: Literal["read", "write"]
) -> tuple[str, tuple[str, ...]]:
    """The id in `store.json`, which must be the configured one if there is one; and what to warn of.

    Where `store.json` alone is gone from a store that holds objects, the configured id goes on; a writer
    writes it again.
    """
    try:
        found = contents.store_id(store)
    except (ObjectNotFoundError, StoreUnreachableError) as error:
        if isinstance(error, StoreUnreachableError) and is_remote(store):
            raise
        if holds_runs(store):
            return _configured_id(store, settings, need)
        if settings.store.url is None:
            raise ConfigError(
                "no store is configured, and nothing was archived into the default one yet",
                remedy="run `archiver init`, or say where the store is with --store or in archiver.toml "
                f"(looked for ./{FILE_NAME} and {config_home() / FILE_NAME})",
            ) from error
        if isinstance(error, StoreUnreachableError):
            raise
        raise _no_store(store.url, settings, need) from error
    if settings.store.id is not None and settings.store.id != found:
        raise ContextMismatchError(
            f"the store at {store.url} has the id {found}, but store.id is {settings.store.id}",
            remedy="this is another store than the one that was set up: check store.url before anything else",
        )
    return found, ()


def _configured_id(
    store: ObjectStore, settings: Settings, need: Literal["read", "write"]
) -> tuple[str, tuple[str, ...]]:
    known = settings.store.id
    if known is None:
        raise ConfigError(
            f"the store at {store.url} holds objects, but its {layout.STORE} is gone and no store.id says "
            "which store it is",
            remedy=f"restore {layout.STORE} from a copy of the store, or use the configuration that init "
            "wrote for this store, without --store",
        )
    text = f"the store at {store.url} had lost its {layout.STORE}"
    if need == "write":
        name_store(store, known)
        return known, (f"{text}; it was written again with the configured id {known}",)
    return known, (f"{text}; the configured id {known} counts, and the next archive writes it again",)


def _no_store(url: str, settings: Settings, need: Literal["read", "write"]) -> ConfigError:
    target = config_home() / FILE_NAME
    taken = settings.file is not None or exists(target)
    flags = [
        *(("--region", settings.store.region) if settings.store.region else ()),
        *(("--endpoint-url", settings.store.endpoint_url) if settings.store.endpoint_url else ()),
        *(("--profile", settings.store.profile) if settings.store.profile else ()),
        *(("--config", "FILE") if taken else ()),
    ]
    remedy = f"`{shlex.join(['archiver', 'init', url, *flags])}` makes one"
    if need == "read":
        remedy = f"check the address; if nothing was ever archived there, {remedy}"
    if taken:
        remedy += ", where FILE is the new configuration to write"
    if settings.store.id is not None:
        # An empty folder is what an unmounted disk looks like: a new store in it would hide the old one.
        remedy = f"mount it, or correct the address: the configured store has the id {settings.store.id}"
    return ConfigError(f"there is no store at {url}", remedy=remedy)


def _restore_keys() -> str:
    folder = keys.key_folder()
    return (
        f"restore your backup of {folder / keys.IDENTITY_FILE} and {folder / keys.SIGNING_FILE}, or name "
        "other files with keys.identities and keys.signing_key in archiver.toml; `archiver init` makes keys "
        "for a new store"
    )
