"""What lies in the place of a store already, before anything is put there."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from archiver import layout
from archiver.config import Settings, data_home, load
from archiver.errors import (
    AlreadyExistsError,
    ArchiverError,
    InputNotFoundError,
    InvalidNameError,
    ObjectNotFoundError,
    StoreUnreachableError,
)
from archiver.setup.remote import is_remote, store_options
from archiver.store import ObjectStore, open_store

MAX_STORE_DOCUMENT = 4096
_HARMLESS = {".tmp", "lost+found", layout.STORE, f".{layout.STORE}.class"}
"""What an empty store (also one whose making was ended half-way) and an empty file system hold."""


def default_store() -> str:
    """The folder that is the store where none is configured."""
    return str(data_home() / "store")


def store_id(store: ObjectStore) -> str:
    """The id in `store.json`.

    Raises `ObjectNotFoundError` where there is none, `DamagedError` or `UnsupportedSchemaError` for one that
    this release did not write, and the store's errors.
    """
    return layout.parse_store_document(store.read(layout.STORE, limit=MAX_STORE_DOCUMENT))


def has_name(store: ObjectStore) -> bool:
    """Whether the store has its `store.json`; a folder that is not there has none. Raises as `store_id`."""
    try:
        store_id(store)
    except ObjectNotFoundError:
        return False
    except StoreUnreachableError:
        if is_remote(store):
            raise
        return False
    return True


def holds_objects(store: ObjectStore) -> bool:
    """Whether anything that is kept lies in the store, besides its name."""
    return any(name != layout.STORE for name in _names(store))


def holds_runs(store: ObjectStore) -> bool:
    """Whether records or bundles lie in the store, whatever else does; a folder of other files has none."""
    return any(
        _is_object(name) for prefix in (layout.RECORDS, layout.BUNDLES) for name in _names(store, prefix)
    )


def refuse_nameless(store: ObjectStore, config: Path | None) -> None:
    """Objects without a `store.json`: no new id may be given, because the records carry the old one."""
    text = f"the store at {store.url} holds objects, but its {layout.STORE} is gone"
    for path in (config, None):
        known = _configuration(path)
        if known is None or known.store.id is None or not known.file:
            continue
        url = known.store.url or default_store()
        if open_store(url, options=store_options(known)).url == store.url:
            raise AlreadyExistsError(
                f"{text}; the configuration {known.file} has its id, {known.store.id}",
                remedy="no init is needed: with that configuration reading goes on, and the next "
                f"`archiver archive --config {shlex.quote(str(known.file))}` writes {layout.STORE} again",
            )
    raise AlreadyExistsError(
        text,
        remedy=f"restore {layout.STORE} from a copy of the store; or, if you know its id from a "
        "configuration that used it (store.id), run init with ARCHIVER_STORE__ID set to that id",
    )


def refuse_other_contents(store: ObjectStore, settings: Settings) -> None:
    """A place that holds something else is not taken for a store by mistake."""
    stranger = next(_strangers(store, settings), None)
    if stranger is None:
        return
    raise AlreadyExistsError(
        f"{store.url if is_remote(store) else _folder(store)} is not empty and is no store: "
        f"it holds {stranger!r}",
        remedy="name a prefix of its own" if is_remote(store) else "name a new or an empty folder",
    )


def _strangers(store: ObjectStore, settings: Settings) -> Iterator[str]:
    """What no store begins with. Probes stay where nobody may delete, or where init was ended half-way; a
    name that was not there a moment ago is that of another init, which makes the same store.
    """
    if is_remote(store):
        yield from (key for key in _keys(store, settings) if not layout.is_probe(key) and key != layout.STORE)
        return
    try:
        found = sorted(entry.name for entry in _folder(store).iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputNotFoundError(f"the folder {_folder(store)} cannot be read: {error.strerror}") from error
    for name in found:
        if name not in _HARMLESS and not _holds_probes(store, name):
            yield name


def _keys(store: ObjectStore, settings: Settings) -> Iterator[str]:
    from archiver.store.probe.keys import keys  # it loads boto3
    from archiver.store.s3.address import parse
    from archiver.store.s3.client import S3

    return keys(S3(parse(store.url), store_options(settings)))


def _holds_probes(store: ObjectStore, name: str) -> bool:
    effects = name == layout.EFFECTS.rstrip("/") and (_folder(store) / name).is_dir()
    return effects and not any(_names(store, layout.EFFECTS))


def _names(store: ObjectStore, prefix: str = "") -> Iterator[str]:
    """Names of objects but for probes; a folder that is not there holds none."""
    try:
        for info in store.list(prefix):
            if not layout.is_probe(info.name):
                yield info.name
    except StoreUnreachableError:
        if is_remote(store):
            raise


def _folder(store: ObjectStore) -> Path:
    return Path(unquote(urlsplit(store.url).path))


def _is_object(name: str) -> bool:
    try:
        layout.parse(name)
    except InvalidNameError:
        return False
    return True


def _configuration(path: Path | None) -> Settings | None:
    try:
        return load(path)
    except ArchiverError:
        return None
