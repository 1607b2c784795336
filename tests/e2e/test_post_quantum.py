"""A store with a post-quantum identity: set up, saved to, restored from."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from archiver import age
from archiver.archive import Given, Options, Source, archive
from archiver.config import load
from archiver.errors import UsageError
from archiver.restore import restore
from archiver.setup import initialise, keys, make_keys, open_setup

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_a_store_of_a_post_quantum_identity(tmp_path: Path, note: Path) -> None:
    made = make_keys(keys.key_folder(), now=NOW, post_quantum=True)
    initialise(str(tmp_path / "store"), tmp_path / "own.toml", settings=load(), now=NOW)
    setup = open_setup(load(tmp_path / "own.toml"), need="write")
    assert [str(recipient) for recipient in setup.recipients] == [made.recipient]
    record = archive(Source(paths=(note,)), setup, options=Options(given=Given(run_id="r"))).record
    assert record.recipients == (made.fingerprint,)
    assert (
        "hello"
        in next((restore("r", setup, into=tmp_path / "out").folder / "transcript").iterdir()).read_text()
    )


def test_it_is_not_set_up_beside_x25519(tmp_path: Path) -> None:
    """Whoever breaks the weaker of two keys opens the file, so the stronger one would protect nothing."""
    make_keys(keys.key_folder(), now=NOW, post_quantum=True)
    settings = load(flags={"keys": {"recipients": (str(age.generate().recipient),)}})
    with pytest.raises(UsageError, match="may not share a file"):
        initialise(str(tmp_path / "store"), tmp_path / "own.toml", settings=settings, now=NOW)
    assert not (tmp_path / "own.toml").exists()
