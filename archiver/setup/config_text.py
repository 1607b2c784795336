"""The `archiver.toml` that `init` writes: what was decided, and as comments what else can be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from archiver.config import Settings
from archiver.setup.keys import Keys
from archiver.writers import toml_text


def config_text(store: str, store_id: str, keys: Keys, settings: Settings) -> str:
    """A commented configuration file; every key is explained in docs/CONFIGURATION.md."""
    recipients = dict.fromkeys((keys.recipient, *settings.keys.recipients))
    listed = _lines(f"  {toml_text(text)}," for text in recipients)
    return f"""\
# Configuration of checkpoint-archiver; CONFIGURATION.md in the documentation explains every key.
# Environment variables (ARCHIVER_STORE__URL, …) and flags win over this file.

[store]
url = {toml_text(store)}
# A store with another id is refused, so that nobody swaps it.
id = {toml_text(store_id)}
{_lines(_store(settings))}
[keys]
# Without these two files nothing in the store can be opened or continued: keep a copy of both elsewhere.
identities = [{toml_text(str(keys.identity_file))}]
signing_key = {toml_text(str(keys.signing_file))}
# Who can open what is saved from now on. The first is the identity above.
recipients = [
{listed}]
{_lines(_kms(settings))}\
# Whose signatures a restore believes; without this file only the signing key above.
# writers = {toml_text(str(keys.writers_file))}

[archive]
# user = "me"
# keep_turns = 20
# keep_full = false
# secret_environment = ["MY_SERVICE_LOGIN"]

[freshness]
# max_age = "7d"
# policy = {{ stale = "block", unknown = "warn" }}

# What `archiver sweep` archives; without sources, what Claude Code and Codex keep on this machine.
[sweep]
# idle = "30m"
# sources = [{{ kind = "claude-code" }}, {{ kind = "folder", path = "runs" }}]

[redaction]
# rule_files = ["rules.toml"]
# packs = ["emails", "hosts", "identifiers"]
"""


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _store(settings: Settings) -> Iterator[str]:
    """How the store is reached, as far as it was said."""
    store = settings.store
    for key, value in (
        ("region", store.region),
        ("endpoint_url", store.endpoint_url),
        ("profile", store.profile),
    ):
        if value is not None:
            yield f"{key} = {toml_text(value)}"
    if "checksums" in store.model_fields_set:
        yield f"checksums = {toml_text(store.checksums)}"
    if not store.fencing:
        yield "# This store ignores conditional writes: two writers of one run can both win."
        yield "fencing = false"


def _kms(settings: Settings) -> Iterator[str]:
    for key, value in (
        ("kms", settings.keys.kms),
        ("kms_endpoint_url", settings.keys.kms_endpoint_url),
    ):
        if isinstance(value, str):
            yield f"{key} = {toml_text(value)}"
        elif value:
            yield f"{key} = [{', '.join(map(toml_text, value))}]"
