"""The store, keys and configuration of the end-to-end tests."""

from e2e.conftest import (
    cache,
    config,
    home,
    make_s3_config,
    note,
    reopen,
    s3_config,
    s3_template,
    setup,
)

__all__ = [
    "cache",
    "config",
    "home",
    "make_s3_config",
    "note",
    "reopen",
    "s3_config",
    "s3_template",
    "setup",
]
