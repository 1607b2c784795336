"""Two copies of one run: one goes on, and the other is stopped before its next effect, whoever is ahead."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from servers.seaweed import Seaweed

COPYING = Path(__file__).with_name("copying.py")
LOST = {"A": "StaleWriterError", "B": "well"}
BOTH_OF_B = ["B one", "B two"]

EFFECTS: dict[str, tuple[dict[str, str], list[str]]] = {
    "before": (LOST, BOTH_OF_B),
    "between intent and fence": (LOST, BOTH_OF_B),
    "before the claim": (LOST, ["A one", "B two"]),
    "between claim and ledger": (LOST, BOTH_OF_B),
    # Nobody knows whether it happened, so nobody takes the run over.
    "in the act": ({"A": "well", "B": "NeedsDecisionError"}, ["A one", "A two"]),
    # Each sees the other, and a third that looks goes on.
    "both between": (
        {"A": "StaleWriterError", "B": "NeedsDecisionError", "C": "well"},
        ["C one", "C two"],
    ),
}
"""How each play ends with effects that cannot be done again, and what was done."""

AGAIN = {
    **EFFECTS,
    # What is in hand may be done again; what comes next is not done by both.
    "in the act": (LOST, [*BOTH_OF_B, "A one"]),
    "both between": ({**LOST, "C": "well"}, BOTH_OF_B),
}
"""The same with effects that can."""

# Nobody looks before a step: one more is worked on, and its output goes nowhere.
STEPS = {"before": (LOST, [*BOTH_OF_B, "A one"])}

ALL = {"effect": EFFECTS, "again": AGAIN, "step": STEPS}
EVERY = tuple(f"{kind}:{name}" for kind, plays in ALL.items() for name in plays)
Play = Callable[..., None]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Plays with a store, and sees that each ends as it has to."""

    def play(config: Path, keys: str, *plays: str) -> None:
        done = subprocess.run(
            [sys.executable, str(COPYING), str(config), str(tmp_path / "journal"), keys, *plays],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        told: list[Any] = [json.loads(line) for line in done.stdout.splitlines()]
        expected = [ALL[kind][name] for kind, _, name in (one.partition(":") for one in plays)]
        found = [(one["ended"], one["did"]) for one in told]
        assert dict(zip(plays, found, strict=False)) == dict(zip(plays, expected, strict=True)), done.stderr

    return play


def test_copies_with_one_key(play: Play, config: Path) -> None:
    play(config, "one", *(f"effect:{name}" for name in EFFECTS), "again:before", "step:before")


def test_copies_on_two_machines_with_a_bucket(
    play: Play, s3_config: Path, seaweed: Seaweed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHIVER_STORE__ENDPOINT_URL", seaweed.endpoint)
    play(s3_config, "two", "effect:between claim and ledger", "again:both between")


@pytest.mark.soak
@pytest.mark.parametrize("keys", ["one", "two"])
@pytest.mark.parametrize("store", ["folder", "bucket"])
def test_every_play(
    play: Play,
    store: str,
    keys: str,
    request: pytest.FixtureRequest,
    seaweed: Seaweed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if store == "bucket":
        monkeypatch.setenv("ARCHIVER_STORE__ENDPOINT_URL", seaweed.endpoint)
    play(request.getfixturevalue("config" if store == "folder" else "s3_config"), keys, *EVERY)
