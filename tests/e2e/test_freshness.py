"""From a save to a plan: the world changes in between, and the plan says what and what to do."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from archiver import jsonio
from archiver.archive import Archived, Options, Source, archive
from archiver.config import load
from archiver.errors import NeedsDecisionError, StaleCheckpointError
from archiver.freshness import Context, Current, Verdict, all_probes, register, unregister
from archiver.model import (
    Budget,
    Checkpoint,
    Environment,
    Items,
    JsonValue,
    Plan,
    Spend,
    Transcript,
    TranscriptPart,
    Workspace,
)
from archiver.model.checkpoint import Approval
from archiver.restore import Report, plan, restore
from archiver.setup import Setup, initialise, open_setup

RUN = "0b8f7a52-1111-4222-8333-444455556666"
NOW = datetime.now(UTC)


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository with a lock file and an installed package."""
    folder = tmp_path / "work"
    (folder / ".venv/lib/python3.12/site-packages/httpx-0.27.0.dist-info").mkdir(parents=True)
    (folder / ".venv/pyvenv.cfg").write_text("version = 3.12.1\n")
    (folder / "uv.lock").write_text("httpx==0.27.0\n")
    (folder / ".gitignore").write_text(".venv\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    return folder


@pytest.fixture
def session(tmp_path: Path, work: Path) -> Path:
    """A session of Claude Code that worked there."""
    line = {
        "parentUuid": None,
        "uuid": "11111111-1111-4111-8111-111111111111",
        "sessionId": RUN,
        "type": "user",
        "cwd": str(work),
        "version": "2.0.1",
        "gitBranch": "main",
        "isSidechain": False,
        "userType": "external",
        "timestamp": NOW.isoformat().replace("+00:00", "Z"),
        "message": {"role": "user", "content": "Fix the parser"},
    }
    path = tmp_path / "session.jsonl"
    path.write_text(json.dumps(line) + "\n")
    return path


def save(source: Path | Checkpoint, setup: Setup, **options: Any) -> Archived:
    given = Source(paths=(source,)) if isinstance(source, Path) else Source(checkpoint=source)
    return archive(given, setup, options=Options(**options))


def states(report: Report) -> dict[str, str]:
    return {verdict.probe: verdict.state for verdict in report.freshness}


def configured(config: Path, text: str) -> Setup:
    config.write_text(f"{config.read_text()}\n{text}")
    return open_setup(load(config), need="write")


def test_a_world_that_did_not_change_is_fresh_and_takes_little_room(setup: Setup, session: Path) -> None:
    record = save(session, setup).record
    found = plan(RUN, setup)
    fresh = {name for name, state in states(found).items() if state == "FRESH"}
    local = {"age", "approvals", "budget", "git_branch", "git_commit", "git_dirty", "installed", "lockfiles"}
    assert fresh >= local | {"platform", "runtime"}
    assert (found.blockers, found.exit_code) == ((), 0)
    assert {probe.name for probe in all_probes()} == states(found).keys() | set(found.not_recorded)
    assert len(jsonio.dumps(record.probes)) < 8 << 10


def test_packages_whose_names_sound_secret(setup: Setup, session: Path, work: Path) -> None:
    """Redaction looks at what stands beside words such as these."""
    names = ("cookie", "jwt", "secrets", "token", "@scope/password", "api-key")
    packages = {f"node_modules/{name}": {"version": "12.10.22-beta.11"} for name in names}
    (work / "node_modules").mkdir()
    (work / "node_modules/.package-lock.json").write_text(json.dumps({"packages": packages}))
    record = save(session, setup).record
    assert not record.findings
    assert states(plan(RUN, setup))["installed"] == "FRESH"


def rename_package(work: Path) -> None:
    package = work / ".venv/lib/python3.12/site-packages/httpx-0.27.0.dist-info"
    package.rename(package.with_name("httpx-0.28.0.dist-info"))


@pytest.mark.parametrize(
    ("change", "stale"),
    [
        (lambda work: git(work, "commit", "-q", "--allow-empty", "-m", "two"), {"git_commit"}),
        (lambda work: git(work, "switch", "-q", "-c", "topic"), {"git_branch"}),
        (lambda work: (work / "parser.py").write_text("x = 1\n"), {"git_dirty"}),
        (lambda work: (work / "uv.lock").write_text("httpx==0.28.0\n"), {"git_dirty", "lockfiles"}),
        (rename_package, {"installed"}),
        (lambda work: (work / ".venv/pyvenv.cfg").write_text("version = 3.13.0\n"), {"runtime"}),
    ],
    ids=["commit", "branch", "dirty", "lock file", "package", "python"],
)
def test_a_changed_world_blocks_until_it_is_accepted(
    setup: Setup, session: Path, work: Path, tmp_path: Path, change: Callable[[Path], object], stale: set[str]
) -> None:
    save(session, setup)
    change(work)
    found = plan(RUN, setup)
    assert {name for name, state in states(found).items() if state == "STALE"} == stale
    assert {blocker.accept for blocker in found.blockers} == stale
    assert found.exit_code == 3
    assert all(blocker.remedy for blocker in found.blockers)
    with pytest.raises(StaleCheckpointError, match=f"{min(stale)} is STALE"):
        restore(RUN, setup, into=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    restored = restore(RUN, setup, into=tmp_path / "out", accept=stale)
    assert set(restored.report.accepted) == stale
    assert {verdict.probe for verdict in restored.report.freshness if verdict.accepted} == stale
    written = json.loads((tmp_path / "out" / "report.json").read_text())
    assert set(written["accepted"]) == stale
    assert plan(RUN, setup).exit_code == 3  # once is once


def test_the_policy_of_the_configuration(
    setup: Setup, config: Path, session: Path, work: Path, tmp_path: Path
) -> None:
    save(session, setup)
    (work / "parser.py").write_text("x = 1\n")
    relaxed = configured(config, '[freshness.policy.probes]\ngit_dirty = "warn"\n')
    found = plan(RUN, relaxed)
    assert any(warning.startswith("git_dirty is STALE: ") for warning in found.warnings)
    assert found.blockers == ()
    assert restore(RUN, relaxed, into=tmp_path / "out").report.exit_code == 0
    strict = configured(config, 'harness = "block"\nage = "block"\nmodel = "ask"\n')
    found = plan(RUN, strict)  # a session without answers names no model: that is no reason to go on
    assert [(one.accept, one.exit_code) for one in found.blockers] == [("harness", 3), ("model", 7)]
    assert all(one.remedy for one in found.blockers)


def test_what_the_run_goes_on_with_is_compared(
    setup: Setup, session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(session, setup)
    assert states(plan(RUN, setup))["harness"] == "UNKNOWN"
    for version, state in (("claude-code 2.0.1", "FRESH"), ("claude-code 2.1.0", "STALE")):
        monkeypatch.setenv("ARCHIVER_FRESHNESS__HARNESS", version)
        now = open_setup(load(setup.settings.file), need="write")
        assert states(plan(RUN, now))["harness"] == state


def test_the_library_says_what_the_run_goes_on_with(setup: Setup, session: Path, tmp_path: Path) -> None:
    save(session, setup)
    assert states(plan(RUN, setup, current=Current(harness="claude-code 2.0.1")))["harness"] == "FRESH"
    other = Current(harness="codex 1.0")
    assert states(plan(RUN, setup, current=other))["harness"] == "STALE"
    with pytest.raises(StaleCheckpointError, match=r"codex 1\.0 now"):
        restore(RUN, setup, into=tmp_path / "out", current=other)


def test_a_prompt_with_a_credential_is_compared_without_it(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = "ghp_" + secrets.token_hex(18)
    tools = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]
    messages = [
        {"role": "system", "content": f"Be kind. Use {token} for git.\n"},
        {"role": "user", "content": "Fix the parser"},
    ]
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({"model": "gpt-x", "tools": tools, "messages": messages}))
    record = save(path, setup, keep_turns=1).record
    assert token not in record.model_dump_json()
    (tmp_path / "prompt.md").write_text(f"Be kind. Use {token} for git.")
    (tmp_path / "tools.json").write_text(json.dumps(tools))
    monkeypatch.setenv("ARCHIVER_FRESHNESS__PROMPT_FILE", str(tmp_path / "prompt.md"))
    monkeypatch.setenv("ARCHIVER_FRESHNESS__TOOLS_FILE", str(tmp_path / "tools.json"))
    monkeypatch.setenv("ARCHIVER_FRESHNESS__MODEL", "gpt-x")
    now = open_setup(load(setup.settings.file), need="write")
    found = states(plan(record.run, now))
    assert (found["prompt"], found["tools"], found["model"]) == ("FRESH", "FRESH", "FRESH")
    (tmp_path / "prompt.md").write_text("Be quick.")
    (tmp_path / "tools.json").write_text("[{}]")
    found = states(plan(record.run, now))
    assert (found["prompt"], found["tools"]) == ("STALE", "STALE")


def checkpoint(**facts: Any) -> Checkpoint:
    part = TranscriptPart(name="t.jsonl", items=Items.of([{"role": "user", "content": "hello"}]))
    return Checkpoint(
        run_id="by-hand",
        task_id="t",
        created_at=NOW,
        checkpoint_at=NOW,
        transcript=Transcript(dialect="openai-chat", parts=(part,)),
        **facts,
    )


def test_a_spent_budget_asks_a_person(setup: Setup, tmp_path: Path) -> None:
    save(checkpoint(budget=Budget(cost=5), spend=Spend(cost=5.01)), setup)
    found = plan("by-hand", setup)
    assert [(blocker.accept, blocker.exit_code) for blocker in found.blockers] == [("budget", 7)]
    assert found.exit_code == 7
    with pytest.raises(NeedsDecisionError, match=r"all is spent, 5\.01 USD of 5\.00 USD"):
        restore("by-hand", setup, into=tmp_path / "out")
    assert restore("by-hand", setup, into=tmp_path / "out", accept=["budget"]).report.accepted == ("budget",)


def test_the_spend_of_the_record_counts_whatever_was_captured(setup: Setup, tmp_path: Path) -> None:
    save(checkpoint(budget=Budget(cost=5), spend=Spend(cost=1)), setup)
    before = restore("by-hand", setup, into=tmp_path / "out").checkpoint
    save(before.model_copy(update={"spend": Spend(cost=6)}), setup)
    assert plan("by-hand", setup).exit_code == 7


def test_a_question_that_waits_is_said_once(setup: Setup) -> None:
    approval = Approval(id="a1", question="Deploy now?", asked_at=NOW)
    save(checkpoint(plan=Plan(pending_approvals=(approval,))), setup)
    found = plan("by-hand", setup)
    assert found.exit_code == 0
    assert sum("Deploy now?" in warning for warning in found.warnings) == 1


def test_what_was_captured_belongs_to_its_checkpoint(setup: Setup, work: Path, tmp_path: Path) -> None:
    """A run that goes on from a restored checkpoint is captured anew; one that is only saved again is not."""
    first = checkpoint(workspace=Workspace(path=str(work)))
    save(first, setup)
    restored = restore("by-hand", setup, into=tmp_path / "out").checkpoint
    assert "git_commit" in restored.environment.probes
    git(work, "commit", "-q", "--allow-empty", "-m", "two")
    save(restored, setup)
    assert states(plan("by-hand", setup))["git_commit"] == "STALE"
    save(restored.model_copy(update={"checkpoint_at": NOW + timedelta(minutes=1)}), setup)
    assert states(plan("by-hand", setup))["git_commit"] == "FRESH"
    save(first, setup, capture=False)
    assert "git_commit" in plan("by-hand", setup).not_recorded


def test_what_is_not_found_any_more_is_not_taken_from_an_earlier_checkpoint(
    setup: Setup, work: Path, tmp_path: Path
) -> None:
    save(checkpoint(workspace=Workspace(path=str(work))), setup)
    restored = restore("by-hand", setup, into=tmp_path / "out").checkpoint
    (work / ".git").rename(tmp_path / "away")
    save(restored.model_copy(update={"checkpoint_at": NOW + timedelta(minutes=1)}), setup)
    (tmp_path / "away").rename(work / ".git")
    found = plan("by-hand", setup)
    assert {"git_commit", "git_branch", "git_dirty"} <= set(found.not_recorded)
    assert states(found)["lockfiles"] == "FRESH"


def test_what_the_caller_captured_counts(setup: Setup, work: Path) -> None:
    environment = Environment(probes={"git_branch": {"branch": "topic"}})
    save(checkpoint(workspace=Workspace(path=str(work)), environment=environment), setup)
    found = states(plan("by-hand", setup))
    assert (found["git_branch"], found["git_commit"]) == ("STALE", "FRESH")


def test_a_store_in_the_work_tree_is_no_change_of_it(
    work: Path, session: Path, tmp_path: Path, home: Path
) -> None:
    path = tmp_path / "inside.toml"
    initialise(str(work / "store"), path, settings=load(), now=NOW)
    setup = open_setup(load(path), need="write")
    save(session, setup)
    save(session, setup)
    assert states(plan(RUN, setup))["git_dirty"] == "FRESH"


class Moon:
    """A probe of somebody's own."""

    name = "moon"

    def __init__(self, answer: Callable[[JsonValue], Verdict]) -> None:
        self._answer = answer

    def capture(self, context: Context) -> JsonValue:
        return {"phase": "full"}

    def judge(self, captured: JsonValue, context: Context) -> Verdict:
        return self._answer(captured)


@pytest.fixture
def own() -> Iterator[Callable[[Callable[[JsonValue], Verdict]], None]]:
    """Registers a probe `moon` for one test."""

    def add(answer: Callable[[JsonValue], Verdict]) -> None:
        unregister("moon")
        register(Moon(answer))

    yield add
    unregister("moon")


def test_a_probe_of_ones_own(setup: Setup, session: Path, own: Any) -> None:
    own(lambda captured: Verdict(probe="moon", state="STALE", evidence=f"was {captured['phase']}\x1b[31m"))
    save(session, setup)
    (blocker,) = plan(RUN, setup).blockers
    assert blocker.reason == "moon is STALE: was full\\x1b[31m"
    unregister("moon")
    found = plan(RUN, setup)  # elsewhere nobody registered it: what was captured is not passed over
    assert states(found)["moon"] == "UNKNOWN"


def test_what_was_not_recorded_is_one_line(setup: Setup, session: Path, own: Any) -> None:
    save(session, setup)
    own(lambda captured: Verdict(probe="moon", state="FRESH", evidence="never asked"))
    found = plan(RUN, setup)
    assert "moon" in found.not_recorded
    assert "moon" not in states(found)
    lines = [warning for warning in found.warnings if "moon" in warning]
    assert len(lines) == 1
    assert lines[0].startswith("not recorded when the checkpoint was saved: ")
    assert all(name in lines[0] for name in found.not_recorded)
    assert plan(RUN, setup, accept=["moon", "age"]).accepted == ()  # nothing stood against it


def test_a_probe_that_hangs_hides_nothing(
    setup: Setup, session: Path, work: Path, own: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = threading.Event()
    own(lambda captured: Verdict(probe="moon", state="FRESH", evidence=str(never.wait(60))))
    save(session, setup)
    (work / "parser.py").write_text("x = 1\n")
    monkeypatch.setenv("ARCHIVER_FRESHNESS__TIMEOUT", "2s")
    found = plan(RUN, open_setup(load(setup.settings.file), need="write"))
    never.set()
    assert states(found)["moon"] == "UNKNOWN"
    assert states(found)["git_dirty"] == "STALE"
    assert "no answer within 2 seconds" in str(found.warnings)


def test_a_plan_loads_no_rules_engine_or_network(setup: Setup, session: Path, config: Path) -> None:
    save(session, setup)
    code = (
        "import sys\nfrom archiver.cli import restore_main\n"
        "try:\n    restore_main()\nexcept SystemExit as end:\n"
        "    print(end.code, *(name in sys.modules for name in "
        "('archiver.judging', 'hyperscan', 'archiver.redact.rules', 'boto3', 'http.client')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, RUN, "--plan", "--config", str(config)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "0 True False False False False", done.stderr
