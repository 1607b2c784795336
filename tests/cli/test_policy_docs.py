"""What docs/POLICY.md says is what happens."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import get_args

from archiver.policy import INTERRUPTIONS_PER_HOUR, Costs, Moment, Policy, Profile, decide
from archiver.policy.advice import EXAMPLES, USD_PER_HOUR, advise
from archiver.policy.costs import DAYS_KEPT, GETS_OF_RESTORE, MEASURED, PRICED, PUTS_OF_SAVE

from .conftest import Command

TEXT = (Path(__file__).parents[2] / "docs" / "POLICY.md").read_text(encoding="utf-8")


def test_the_commands_run(command: Command, home: Path) -> None:
    (home / "work" / "run.txt").write_text("hello\n")
    assert command("init").code == 0
    assert command("archive", "run.txt", "--run-id", "saved").code == 0
    commands = re.findall(r"^    archiver (.+)$", TEXT, re.M)
    assert len(commands) == 6
    for words in commands:
        done = command(*("saved" if word == "RUN" else word for word in shlex.split(words, comments=True)))
        assert done.code == 0, (words, done.err)
        assert "verdict\t" in done.out


def test_the_examples_say_what_the_command_says() -> None:
    for _, question in EXAMPLES:
        assert f"    {advise(question).estimate.words()}\n" in TEXT
    migration = advise(EXAMPLES[1][1])
    assert f"one every {migration.interval / 60:.0f} minutes pays" in TEXT
    assert f"every {1 / migration.interruptions:.0f} hours" in TEXT


def test_what_is_assumed_is_what_the_code_assumes() -> None:
    costs, policy = Costs(), Policy()
    for words in (
        f"one every {1 / INTERRUPTIONS_PER_HOUR:.0f} hours of work",
        f"| ${USD_PER_HOUR} |",
        f"{costs.save_fixed} s, and {costs.save_rate / 1e6:.0f} MB a second",
        f"{costs.restore_fixed:.0f} s, and {costs.restore_rate / 1e6:.0f} MB a second",
        f"{costs.packed} bytes for each byte of the state, {DAYS_KEPT} days",
        f"{PUTS_OF_SAVE} × ${costs.put * 1000:.3f} per 1,000 to save",
        f"{GETS_OF_RESTORE} × ${costs.get * 1000:.4f} per 1,000 to restore",
        f"${costs.month * 1e9:.3f} a GB and month",
        f"measured ({MEASURED})",
        f"us-east-1 ({PRICED})",
        f"`run.floor` ({policy.floor:.0f} s)",
        f"`run.floor_calls` ({policy.floor_calls})",
    ):
        assert words in TEXT, words


def test_the_profiles_are_those_of_the_code() -> None:
    assert sorted(re.findall(r"^\| `([a-z-]+)`(?: \(default\))? \|", TEXT, re.M)) == sorted(get_args(Profile))
    assert f"`{Policy().profile}` (default)" in TEXT


def test_the_tickets_say_that() -> None:
    rules, late = Policy(), Moment(seconds=900, calls=20, since_save=70, size=3_000_000)
    for moment in (
        Moment(seconds=12, calls=3),
        late,
        Moment(seconds=900, calls=20, since_save=350, size=3_000_000),
        Moment(seconds=900, calls=20, milestone="build"),
        Moment(seconds=900, calls=20, proved=True),
        Moment(seconds=900, calls=20, phase_changed=True),
        Moment(seconds=900, calls=20, waiting=True),
        Moment(seconds=900, calls=20, effects=1),
        Moment(seconds=900, calls=20, forced=True),
        Moment(seconds=900, calls=20, final=True),
    ):
        assert f"`{decide(rules, moment).because}`" in TEXT
