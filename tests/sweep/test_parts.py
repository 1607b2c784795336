"""The parts of a sweep alone: lanes, the log, what a content is."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from e2e.conftest import cache, config, home, setup
from e2e.sweeping import session, with_sources

from archiver.errors import ArchiverError, StoreFullError
from archiver.setup import Setup
from archiver.sign import SigningKey
from archiver.sources import Found, configured, of_session
from archiver.sweep import content, journal
from archiver.sweep.journal import Journal
from archiver.sweep.lanes import BIG, Lanes

__all__ = ["cache", "config", "home", "setup"]
ROOT = Path(__file__).parents[2]
STORE = b"0123456789abcdef" * 2


def test_small_runs_do_not_wait_for_big_ones() -> None:
    """With two lanes all small ones are done while the first big one is still under way."""
    order: list[str] = []
    all_small = threading.Event()

    def work(item: str) -> str:
        if item.startswith("big") and not all_small.wait(timeout=30):
            raise AssertionError("small ones waited for a big one")
        order.append(item)
        if sum(one.startswith("small") for one in order) == 20:
            all_small.set()
        return item

    items = [(BIG, f"big {number}") for number in range(3)] + [(1, f"small {number}") for number in range(20)]
    assert sorted(Lanes(work, items, 2, threading.Event())) == sorted(item for _, item in items)
    assert all(one.startswith("small") for one in order[:20])


def test_lanes_shuffle_and_end_when_told() -> None:
    items = [(1, number) for number in range(200)]
    orders = {tuple(Lanes(lambda item: item, items, 1, threading.Event())) for _ in range(3)}
    assert len(orders) > 1
    ending = threading.Event()

    def work(item: int) -> int:
        ending.set()
        return item

    lanes = Lanes(work, items, 1, ending)
    done = list(lanes)
    assert len(done) == 1
    assert sorted([*lanes.left, *done]) == list(range(200))


def test_a_content_is_of_names_sizes_bytes_and_key(setup: Setup, tmp_path: Path) -> None:
    path = session(tmp_path / "a", 1)
    found = of_session(path)
    one = content.reference(found, setup)
    elsewhere = tmp_path / "b/-p" / path.name
    elsewhere.parent.mkdir(parents=True)
    elsewhere.write_bytes(path.read_bytes())
    assert content.reference(of_session(elsewhere), setup) == one
    other_key = replace(setup, signing_key=SigningKey.generate())
    changed = path.read_bytes().replace(b"table 1", b"table 2")
    renamed = path.rename(path.with_name("other.jsonl"))
    seen = {one.content, content.reference(of_session(renamed), setup).content}
    seen.add(content.reference(of_session(elsewhere), other_key).content)
    elsewhere.write_bytes(changed)
    seen.add(content.reference(of_session(elsewhere), setup).content)
    assert len(seen) == 4


def test_a_content_is_what_the_format_says(setup: Setup, tmp_path: Path) -> None:
    """Computed by hand, and the example of section 8, which another implementation can compare with."""
    main, agent = tmp_path / "-p/s.jsonl", tmp_path / "-p/s/subagents/agent-1.jsonl"
    agent.parent.mkdir(parents=True)
    main.write_bytes(b"{}")
    agent.write_bytes(b"[1]")
    seed = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    writer = replace(setup, store_id=STORE.decode(), signing_key=SigningKey.from_seed(seed))
    (source,) = configured(with_sources(setup.settings, ("claude-code", tmp_path)))
    (found,) = source.find()
    assert isinstance(found, Found)
    assert [one.path for one in found.files] == [main, agent]
    files = b"7 s.jsonl2\n{}25 s/subagents/agent-1.jsonl3\n[1]"
    body = b'["%b","claude-code","%b"]' % (
        b"0123456789abcdef" * 2,
        hashlib.sha256(files).hexdigest().encode(),
    )
    kind = b"application/vnd.checkpoint-archiver.source.v1"
    signed = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(body), body)
    by_hand = hashlib.sha256(Ed25519PrivateKey.from_private_bytes(seed).sign(signed)).hexdigest()[:32]
    assert content.reference(found, writer).content == by_hand
    assert f"`{by_hand}`" in (ROOT / "schemas/FORMAT.md").read_text(encoding="utf-8")


def test_a_stamp_changes_with_what_is_seen(setup: Setup, tmp_path: Path) -> None:
    path = session(tmp_path, 1)
    before = content.stamp(of_session(path).files)
    assert content.stamp(of_session(path).files) == before
    os.utime(path, ns=(1, 1))
    assert content.stamp(of_session(path).files) != before


def test_the_log_is_renamed_when_it_is_full(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "MAX_FILE", 400)
    log = Journal(tmp_path / "logs/sweep.jsonl", setup)
    for number in range(8):
        log.write("archived", run=str(number))
    older, newer = tmp_path / "logs/sweep.jsonl.1", tmp_path / "logs/sweep.jsonl"
    assert older.stat().st_size <= 400
    assert newer.stat().st_size <= 400
    kept: list[Any] = [json.loads(line) for path in (older, newer) for line in path.read_text().splitlines()]
    assert [one["run"] for one in kept] == [str(number) for number in range(8)][-len(kept) :]
    assert newer.stat().st_mode & 0o777 == 0o600


def test_a_full_disk_leaves_no_half_of_a_line(setup: Setup) -> None:
    with pytest.raises(StoreFullError, match="the log of sweeps"):
        Journal(Path("/dev/full"), setup).write("begin")


def test_errors_in_the_log_are_free_of_credentials(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "s" + os.urandom(12).hex()
    monkeypatch.setenv("SWEEP_TEST_PASSWORD", secret)
    log = Journal(tmp_path / "sweep.jsonl", setup)
    log.write("failed", error=ArchiverError(f"cannot read {secret}"), source=f"folder /{secret}/x")
    text = (tmp_path / "sweep.jsonl").read_text()
    assert "cannot read" in text
    assert secret not in text
