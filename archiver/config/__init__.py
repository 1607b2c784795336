"""What can be configured: defaults, then `archiver.toml`, the environment, flags; the last one wins."""

from archiver.config.homes import cache_home, config_home, data_home, state_home
from archiver.config.loading import FILE_NAME, asked_for, load
from archiver.config.settings import Settings
from archiver.config.values import place_of_store

__all__ = [
    "FILE_NAME",
    "Settings",
    "asked_for",
    "cache_home",
    "config_home",
    "data_home",
    "load",
    "place_of_store",
    "state_home",
]
