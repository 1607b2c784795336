"""Identities and recipients of kinds that may not stand together."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from archiver import age
from archiver.config import config_home, load
from archiver.errors import ConfigError, UsageError
from archiver.setup import initialise, make_keys

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def recipient() -> str:
    return str(age.HybridIdentity.generate().recipient)


def test_no_identity_is_made_that_the_recipients_do_not_stand_beside(tmp_path: Path) -> None:
    settings = load(flags={"keys": {"recipients": (recipient(),)}}, without_file=True)
    with pytest.raises(UsageError, match="never stands beside") as caught:
        initialise(str(tmp_path / "store"), None, settings=settings, now=NOW)
    assert "archiver keygen --pq --into" in (caught.value.remedy or "")
    assert not (config_home() / "keys").exists()
    assert not (tmp_path / "store").exists()


def test_the_way_out_works(tmp_path: Path) -> None:
    make_keys(config_home() / "keys", now=NOW, post_quantum=True)
    settings = load(flags={"keys": {"recipients": (recipient(),)}}, without_file=True)
    assert initialise(str(tmp_path / "store"), None, settings=settings, now=NOW).new_store


@pytest.mark.parametrize("address", ["s3:bucket/prefix", "S3:/bucket"])
def test_a_mistyped_bucket_becomes_no_folder(address: str) -> None:
    with pytest.raises(ConfigError, match="not the address of a bucket"):
        initialise(address, None, settings=load(without_file=True), now=NOW)
