"""A run in a bucket is taken over: one claim wins on any network, and who wrote before is fenced."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from servers.proxy import Fault, FaultProxy
from servers.seaweed import Seaweed

from archiver.catalog import Catalog
from archiver.errors import StaleWriterError
from archiver.restore import restore
from archiver.setup import Setup
from archiver.sign import SigningKey
from archiver.verify import verify
from archiver.writers import Writer, Writers
from e2e.s3 import opened, save


def two_machines(setup: Setup) -> tuple[Setup, Setup]:
    """The setup of the own machine and that of another with a key of its own; each trusts both."""
    key = SigningKey.generate()
    own = setup.require_signing_key().public
    both = Writers(
        (Writer(name="first", key=own), Writer(name="second", key=key.public)), Path("writers.toml")
    )
    return replace(setup, writers=both), replace(setup, writers=both, signing_key=key, witness=None)


def test_a_run_is_taken_over_and_its_writer_fenced(s3_config: Path, note: Path, tmp_path: Path) -> None:
    first, second = two_machines(opened(s3_config))
    save(first, note)
    late = restore("r", first, into=tmp_path / "late")
    done = restore("r", second, into=tmp_path / "out", claim=True)
    assert json.loads((tmp_path / "out" / "report.json").read_text())["claimed"] == done.claim == 2
    with pytest.raises(StaleWriterError):
        save(first, note)
    with pytest.raises(StaleWriterError, match="record 2"):
        late.resume()
    assert save(second, note).record.seq == 3
    assert [link.writer for link in Catalog(first).chain("r").links] == ["first", "second", "second"]
    assert not [found for found in verify(second, "r", deep=True) if not found.ok]


def test_a_claim_whose_answer_is_lost_is_known_again(
    s3_config: Path, note: Path, tmp_path: Path, seaweed: Seaweed
) -> None:
    save(opened(s3_config), note)
    with FaultProxy(seaweed.port) as proxy:
        setup = opened(s3_config, endpoint_url=proxy.endpoint)
        proxy.script(Fault("drop", method="PUT", path="/records/r/", times=1))
        done = restore("r", setup, into=tmp_path / "out", claim=True)
        assert [request.status for request in proxy.requests if request.fault] == [200]
    assert done.claim == 2
    assert Catalog(opened(s3_config)).numbers("r") == [1, 2]
