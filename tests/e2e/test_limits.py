"""What is too large does not keep a run from being saved, and what is saved can be gone on with."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from loop.writing import snapshot, writer
from spool.making import checkpoint

from archiver import position
from archiver.archive import Given, Options, Source, archive
from archiver.catalog import Catalog
from archiver.errors import LimitExceededError
from archiver.model import Checkpoint, Items, Record, Transcript, TranscriptPart
from archiver.restore import restore
from archiver.setup import Setup
from archiver.transcripts import get_dialect
from archiver.verify import verify

RUN = "r"
MIB = 1 << 20


def limited(setup: Setup, **limits: Any) -> Setup:
    changed = setup.settings.limits.model_copy(update=limits)
    return replace(setup, settings=setup.settings.model_copy(update={"limits": changed}))


def noise(size: int) -> str:
    """Text that does not compress to nothing, without anything that looks like a credential."""
    words = (f"{number % 977} apples and {secrets.randbelow(10**6)} pears\n" for number in range(size // 20))
    return "".join(words)[:size]


def with_output(text: str) -> Checkpoint:
    messages = [
        {"role": "user", "content": "go on"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "make"}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": text}]},
        {"role": "assistant", "content": "Done."},
    ]
    part = TranscriptPart(name="messages.jsonl", items=Items.of(messages))
    made = checkpoint(RUN, "note")
    return made.model_copy(
        update={"transcript": Transcript(dialect="anthropic-messages", parts=(part,)), "outcome": "running"}
    )


def sound(setup: Setup, into: Path) -> dict[str, Any]:
    """Restore the newest checkpoint; its transcript is valid. Gives the receipt."""
    assert not [finding for finding in verify(setup, RUN, deep=True) if not finding.ok]
    restored = restore(RUN, setup, into=into)
    assert not restored.report.repairs
    transcript = restored.checkpoint.transcript
    for part in transcript.parts if transcript.dialect != "opaque" else ():
        assert not get_dialect(transcript.dialect).problems(part.items.values())
    receipt: dict[str, Any] = json.loads((into / "receipt.json").read_text())
    return receipt


def records(setup: Setup) -> list[Record]:
    return [link.record for link in Catalog(setup).chain(RUN).links]


@pytest.mark.parametrize(
    ("size", "limit"), [(3, 1), pytest.param(100, 16, marks=pytest.mark.soak, id="a log that ran away")]
)
def test_an_output_that_ran_away_is_head_and_tail(
    size: int, limit: int, setup: Setup, tmp_path: Path
) -> None:
    setup = limited(setup, artifact=limit * MIB)
    done = archive(Source(checkpoint=with_output(noise(size * MIB))), setup)
    assert done.record.cut == 1
    assert done.record.sizes.compacted < MIB
    (cut,) = sound(setup, tmp_path / "out")["cut"]
    assert (cut["limit"], cut["policy"], cut["size"]) == ("artifact", "head-and-tail", size * MIB)
    assert any("limits.artifact has no room for" in warning for warning in done.warnings)


def test_a_log_larger_than_a_bundle_is_head_and_tail(setup: Setup, tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    log.write_text(noise(3 * MIB))
    small = limited(setup, bundle=2 * MIB)
    done = archive(Source(paths=(log,)), small, options=Options(given=Given(run_id=RUN)))
    assert done.record.cut == 1
    (cut,) = sound(small, tmp_path / "out")["cut"]
    assert (cut["member"], cut["limit"], cut["policy"]) == ("build.log", "bundle", "head-and-tail")
    kept = (tmp_path / "out" / "transcript" / "build.log").read_text()
    assert log.read_text().startswith(kept[:100_000])
    assert log.read_text().endswith(kept[-100_000:])
    refusing = limited(setup, bundle=2 * MIB, bundle_policy="refuse")
    with pytest.raises(LimitExceededError, match="the limit of a bundle is"):
        archive(Source(paths=(log,)), refusing, options=Options(given=Given(run_id=RUN)))
    assert len(records(setup)) == 1


def test_a_credential_at_a_cut_is_replaced_before_it(setup: Setup, tmp_path: Path) -> None:
    token = "ghp_" + secrets.token_hex(18)
    text = noise(300_000)
    size = 64 << 10
    for shift in range(-44, 8, 13):
        at = size + shift
        hidden = f"{text[:at]} {token} {text[at:]}"
        small = limited(setup, artifact=256 << 10)
        archive(Source(checkpoint=with_output(hidden)), small)
    into = tmp_path / "out"
    (cut,) = sound(setup, into)["cut"]
    everything = b"".join(path.read_bytes() for path in into.rglob("*") if path.is_file())
    assert token.encode() not in everything
    for length in (8, 12, 20):
        assert token[4 : 4 + length].encode() not in everything
    assert (into / cut["kept_as"]).is_file()


@pytest.fixture
def full(setup: Setup) -> Iterator[Setup]:
    """A run whose bundles have room for two such outputs, and no more."""
    archive(Source(checkpoint=with_output(noise(MIB // 4))), setup)
    used = sum(info.size for info in setup.store.list("bundles/"))
    yield limited(setup, run=used * 5 // 2)


def test_a_run_that_has_met_its_limit_goes_on_without_outputs(full: Setup, tmp_path: Path) -> None:
    for _ in range(4):
        archive(Source(checkpoint=with_output(noise(MIB // 4))), full)
    assert [record.cut for record in records(full)] == [0, 0, 1, 1, 1]
    (cut,) = sound(full, tmp_path / "out")["cut"]
    assert (cut["limit"], cut["policy"]) == ("run", "reference")
    refusing = limited(full, run_policy="refuse")
    with pytest.raises(LimitExceededError, match="the limit of a run is"):
        archive(Source(checkpoint=with_output(noise(MIB // 4))), refusing)


def test_a_loop_goes_on_without_outputs(full: Setup, tmp_path: Path) -> None:
    archive(Source(checkpoint=with_output(noise(MIB // 4))), full)
    full = limited(full, run=full.settings.limits.run * 7 // 5)
    one = writer(full, place=position.find(RUN, full))
    try:
        for number in range(3):
            taken = snapshot(f"{number}", plain=False, make=lambda: with_output(noise(MIB // 4)))
            assert one.save(taken, stored=True), taken.ticket.error
        assert not one.failures
    finally:
        one.end(5)
    assert [record.cut for record in records(full)] == [0, 0, 0, 1, 1]
    assert sound(full, tmp_path / "out")["cut"][0]["limit"] == "run"


def test_a_run_without_any_room_is_refused_and_the_loop_is_told(full: Setup) -> None:
    none = limited(full, run=1)
    one = writer(none, place=position.find(RUN, none))
    try:
        one.submit(last := snapshot("x", plain=False, make=lambda: with_output(noise(MIB // 4))))
        assert one.drain()
        assert isinstance(last.ticket.error, LimitExceededError)
    finally:
        one.end(5)
    assert len(records(full)) == 1
