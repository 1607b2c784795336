"""The `archiver.toml` that `init` writes: what was decided, and as comments what else can be."""

from __future__ import annotations

from archiver.setup.keys import Keys
from archiver.writers import toml_text


def config_text(store: str, store_id: str, keys: Keys) -> str:
    """A commented configuration file; every key is explained in docs/CONFIGURATION.md."""
    return f"""\
# Configuration of checkpoint-archiver; docs/CONFIGURATION.md explains every key.
# Environment variables (ARCHIVER_STORE__URL, …) and flags win over this file.

[store]
url = {toml_text(store)}
# A store with another id is refused, so that nobody swaps it.
id = {toml_text(store_id)}

[keys]
# Without these two files nothing in the store can be opened or continued: keep a copy of both elsewhere.
identities = [{toml_text(str(keys.identity_file))}]
signing_key = {toml_text(str(keys.signing_file))}
# Who else can open what is saved from now on. The first is the identity above.
recipients = [
  {toml_text(keys.recipient)},
]
# Whose signatures a restore believes; without this file only the signing key above.
# writers = "writers.toml"

[archive]
# user = "me"
# keep_turns = 20
# keep_full = false
# secret_environment = ["MY_SERVICE_LOGIN"]

[freshness]
# max_age = "7d"
# policy = {{ stale = "block", unknown = "warn" }}

[redaction]
# rule_files = ["rules.toml"]
"""
