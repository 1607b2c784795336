"""The machine that an agent under test runs on: its disk, which can be lost, and what lies elsewhere."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from archiver.config import cache_home

_OWN: Final = ("ARCHIVER_CONFIG", "HOME", "TMPDIR")
_FOLDERS: Final = ("home", "state", "data", "cache", "tmp", "work")
_RULES: Final = "redact"
DEFAULTS: Final = {"ARCHIVER_RUN__FLOOR": "0s", "ARCHIVER_RUN__FLOOR_CALLS": "1"}
"""An agent under test is short: what it saves is saved from its first call on."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine below `root`.

    disk/    home, state, data, cache, temporary files and the working folder: what `lose` loses
    keys/    configuration and keys
    store/   the store, where it is a folder
    world/   the journal
    notes/   what the harness itself writes
    """

    root: Path
    url: str
    """The address of the store."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that the caller gave."""

    def make(self) -> None:
        """Make its folders."""
        for name in ("keys", "world", "notes"):
            (self.root / name).mkdir(parents=True, mode=0o700)
        self._boot()

    def set_up_like(self, other: Machine) -> None:
        """Get the same keys and an equal store, both in folders and as they are there now."""
        shutil.copytree(other.root / "store", self.root / "store")
        shutil.copytree(other.root / "keys", self.root / "keys", dirs_exist_ok=True)
        text = self.config.read_text(encoding="utf-8")
        self.config.write_text(text.replace(str(other.root), str(self.root)), encoding="utf-8")

    def lose(self) -> None:
        """Lose its disk; what follows is a new machine, with the store, the keys and the configuration."""
        shutil.rmtree(self.root / "disk")
        self._boot()

    def _boot(self) -> None:
        for name in _FOLDERS:
            (self.root / "disk" / name).mkdir(parents=True, mode=0o700)
        rules = cache_home() / _RULES
        if rules.is_dir():  # compiled rules are part of what is installed: making them takes seconds
            into = self.root / "disk" / "cache" / cache_home().name
            into.mkdir(mode=0o700)
            shutil.copytree(rules, into / _RULES, ignore=shutil.ignore_patterns(".new-*"))

    @property
    def folder(self) -> Path:
        """The working folder."""
        return self.root / "disk" / "work"

    @property
    def config(self) -> Path:
        """The configuration file."""
        return self.root / "keys" / "archiver.toml"

    @property
    def journal(self) -> Path:
        """What was done in the world."""
        return self.root / "world" / "journal.jsonl"

    @property
    def notes(self) -> Path:
        """Where the harness writes."""
        return self.root / "notes"

    @property
    def remote(self) -> bool:
        """Whether the store is reached over a network."""
        return self.url.startswith("s3://")

    def environment(self) -> dict[str, str]:
        """All variables of a process on it; of the caller's own nothing that concerns the archiver."""
        disk = self.root / "disk"
        return {
            **_outer(),
            "HOME": str(disk / "home"),
            "TMPDIR": str(disk / "tmp"),
            "XDG_STATE_HOME": str(disk / "state"),
            "XDG_DATA_HOME": str(disk / "data"),
            "XDG_CACHE_HOME": str(disk / "cache"),
            "XDG_CONFIG_HOME": str(self.root / "keys"),
            "ARCHIVER_CONFIG": str(self.config),
            "ARCHIVER_STORE__URL": self.url,
            **DEFAULTS,
            **self.settings,
        }


def _outer() -> dict[str, str]:
    """The caller's environment without what would configure the archiver or move its homes."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in _OWN
        and not name.startswith("XDG_")
        and not (name.startswith("ARCHIVER_") and "__" in name)
    }
