"""The examples do what they say, also when they are killed in the middle."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from archiver.catalog import Catalog
from archiver.model import Record
from archiver.setup import Setup

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))
import fake_models  # noqa: E402 - it lies beside the examples that use it

TURNS = len(fake_models.SCRIPT)
MAIL = "buyers@shop.example: Tea costs 3.20, not 320.\n"


@pytest.fixture(autouse=True)
def store(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `archiver init` leaves."""
    monkeypatch.setenv("ARCHIVER_CONFIG", str(config))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[fake_models.Fake]:
    """The models, where the SDKs find them by themselves."""
    with fake_models.serve() as fake:
        for sdk, url in (("ANTHROPIC", fake.url), ("OPENAI", f"{fake.url}/v1")):
            monkeypatch.setenv(f"{sdk}_BASE_URL", url)
            monkeypatch.setenv(f"{sdk}_API_KEY", "fake")
        yield fake


def command(name: str, *arguments: object) -> list[str]:
    return [sys.executable, str(EXAMPLES / name), *map(str, arguments)]


def start(name: str, *arguments: object, code: int = 0) -> str:
    done = subprocess.run(command(name, *arguments), capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def end(run: str, setup: Setup) -> Record:
    """The newest record of a run."""
    return Catalog(setup).chain(run).links[-1].record


@pytest.mark.parametrize(
    ("sdk", "turns"),
    [
        ("anthropic", [2]),
        ("openai", [3, TURNS - 3]),  # then all is said, but not that it is the end
    ],
)
def test_a_loop_that_is_killed_goes_on_with_the_next_turn(
    sdk: str, turns: list[int], fake: fake_models.Fake, setup: Setup
) -> None:
    name = f"{sdk}_loop.py"
    for some in turns:
        start(name, "--die-after", some, code=-signal.SIGKILL)
    assert f"done, turns: {TURNS - sum(turns)}\n" in start(name)
    sent = [body["messages"] for _, body in fake.requests]
    assert [sum(one["role"] == "assistant" for one in messages) for messages in sent] == list(range(TURNS))
    for before, after in pairwise(sent):
        assert after[: len(before)] == before
    assert Path("outbox.txt").read_text() == MAIL
    record = end(f"price-watch-{sdk}", setup)
    assert record.outcome == "succeeded"
    assert record.spend.tokens_in == sum(400 + 100 * turn for turn in range(TURNS))


def test_a_mail_is_sent_once_though_the_loop_dies_inside_the_tool(tmp_path: Path) -> None:
    outbox = Path("outbox.txt")
    os.mkfifo(outbox)
    agent = subprocess.Popen(command("openai_loop.py", "--fake"), stdout=subprocess.DEVNULL)
    intents = tmp_path / "store" / "effects"
    while agent.poll() is None and not list(intents.glob("*/*.age")):  # then it waits for a reader
        time.sleep(0.01)
    agent.kill()
    assert agent.wait() == -signal.SIGKILL
    outbox.unlink()
    start("openai_loop.py", "--fake")
    assert outbox.read_text() == MAIL


def test_a_job_that_is_killed_does_no_row_twice() -> None:
    first = start("batch_job.py", "--die-after", 3, code=-signal.SIGKILL)
    second = start("batch_job.py")
    assert re.findall("convert (.+)", first) == ["A-17", "A-18", "A-19"]
    assert re.findall("convert (.+)", second) == ["A-20", "A-21"]
    assert "total 949.70 USD" in second


def test_a_run_that_asks_ends_and_goes_on_with_the_answer(setup: Setup) -> None:
    asked = start("pause_for_approval.py", code=7)
    assert asked.splitlines()[:2] == ["build", "Deploy 2026.3 (c0ffee) where everybody sees it?"]
    waits = end("preview", setup).plan.pending_approvals
    assert [one.question for one in waits] == [asked.splitlines()[1]]
    start("pause_for_approval.py", "--answer", "no")
    assert end("preview", setup).outcome == "cancelled"
    assert not Path("site.txt").exists()
    told = start("pause_for_approval.py", "--answer", "yes")
    assert told == "https://preview.shop.example/2026.3\n"  # built once
    over = subprocess.run(command("pause_for_approval.py", "--answer", "no"), capture_output=True, text=True)
    assert (over.returncode, over.stdout) == (0, told), over.stderr
    assert Path("site.txt").read_text() == "2026.3\n"
    assert end("preview", setup).outcome == "succeeded"


def test_the_commands_of_the_readme_are_those_that_the_examples_take() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    commands = [line.split() for line in re.findall(r"^    python (.+)$", text, re.M)]
    assert len(commands) >= 8
    for file, *words in commands:
        source = (EXAMPLES.parent / file).read_text(encoding="utf-8")
        for flag in (word for word in words if word.startswith("--")):
            assert f'"{flag}"' in source, (file, flag)
    named = set(re.findall(r"^\| `([a-z_]+\.(?:py|sh))`", text, re.M))
    assert named >= {path.name for path in EXAMPLES.glob("*.py")}
