"""The store, keys and configuration of the end-to-end tests."""

from e2e.conftest import cache, config, home, note, setup

__all__ = ["cache", "config", "home", "note", "setup"]
