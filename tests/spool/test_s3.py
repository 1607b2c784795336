"""A bucket behind a network that loses answers: each object arrives once, and nobody is taken for another."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from e2e.s3 import opened
from servers.proxy import Fault, FaultProxy
from servers.seaweed import Seaweed

from archiver.catalog import Catalog
from archiver.errors import ArchiverError
from archiver.verify import verify

from .making import Hand, names


@pytest.mark.parametrize("path", ["/bundles/", "/records/"])
def test_lost_answers(path: str, s3_config: Path, seaweed: Seaweed) -> None:
    """Every try of one delivery loses its answer; the next delivery finds its own objects."""
    with FaultProxy(seaweed.port) as proxy:
        away = opened(s3_config, endpoint_url=proxy.endpoint, timeout=timedelta(seconds=2), attempts=1)
        writer = Hand.of(away, "r")
        for number in range(2):
            writer.save(f"save {number}")
        proxy.script(Fault("drop", method="PUT", path=path, times=None))
        with pytest.raises(ArchiverError):
            writer.spool.deliver()
        assert [request.fault for request in proxy.requests if request.fault], "no request fitted"
        proxy.script()
        assert writer.spool.deliver().delivered == (1, 2)
    setup = opened(s3_config)
    assert [link.record.note for link in Catalog(setup).chain("r").links] == ["save 0", "save 1"]
    assert all(found.ok for found in verify(setup, "r", deep=True))
    assert len(names(setup, "bundles/r/")) == 2
