"""Where things lie that are not named: the XDG base directories."""

from __future__ import annotations

import os
from pathlib import Path

from archiver.config.paths import home

APPLICATION = "checkpoint-archiver"


def _xdg(variable: str, default: str) -> Path:
    value = os.environ.get(variable, "")
    # The XDG specification has relative values ignored.
    base = Path(value) if value.startswith("/") else home() / default
    return base / APPLICATION


def config_home() -> Path:
    """Configuration and keys."""
    return _xdg("XDG_CONFIG_HOME", ".config")


def data_home() -> Path:
    """The default store and what was restored."""
    return _xdg("XDG_DATA_HOME", ".local/share")


def cache_home() -> Path:
    """What can be made again."""
    return _xdg("XDG_CACHE_HOME", ".cache")


def state_home() -> Path:
    """What should survive, but belongs to this machine alone."""
    return _xdg("XDG_STATE_HOME", ".local/state")
