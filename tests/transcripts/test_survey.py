"""The survey: turns, flags, calls and results, the plan, commands, and the facts of the run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.model import Items
from archiver.transcripts import get_dialect
from archiver.transcripts.dialect import Call, ToolResult
from archiver.transcripts.survey import PartSurvey, survey
from archiver.transcripts.tools import Task, TaskList, exit_status, target
from transcripts.samples import (
    START,
    Writer,
    anthropic_request,
    claude_session,
    inline_sidechains,
    line_of,
)

CLAUDE = get_dialect("claude-code")
ANTHROPIC = get_dialect("anthropic-messages")


def of(items: list[Any], dialect: Any = CLAUDE, **more: Any) -> PartSurvey:
    return survey(Items.of_lines(line_of(item) for item in items), dialect, **more)


def test_the_facts_of_a_run() -> None:
    lines = list(claude_session(4, seed=1, parallel=2))
    facts = of(lines).facts
    assert facts.turns == 8  # in each of four rounds a response with calls and one without
    assert facts.instructions == 4
    assert facts.objective.startswith("Instruction 0: ")
    assert facts.session == lines[1]["sessionId"]
    assert (facts.cwd, facts.git_branch) == ("/home/sample/project", "main")
    assert (facts.model, facts.harness) == ("claude-sample-1", "claude-code 2.1.80")
    assert facts.first_at == START + timedelta(seconds=1.25)
    assert facts.last_at is not None
    assert facts.last_at > facts.first_at
    # Each response repeats its usage on every line and has the full count on the last.
    assert (facts.tokens_in, facts.tokens_out, facts.tokens_cached) == (8 * 103, 8 * 50, 8 * 1000)


def test_the_folder_is_the_one_the_run_was_started_in() -> None:
    lines = list(claude_session(2, seed=1))
    lines[-2]["cwd"] = "/home/sample/project/deeper"
    lines[-2]["gitBranch"] = "other"
    facts = of(lines).facts
    assert (facts.cwd, facts.git_branch) == ("/home/sample/project", "other")


def test_a_turn_is_a_response() -> None:
    make = Writer(1)
    call = make.call("Read", {"file_path": "/a"})
    lines = [make.user("one"), *make.response([make.thinking(), call])]
    block = {"type": "tool_result", "tool_use_id": call["id"], "content": "x"}
    lines += [make.user([block]), *make.response([{"type": "text", "text": "ok"}]), make.user("two")]
    found = of([{"type": "summary", "leafUuid": "x"}, *lines])
    assert found.items == 7
    assert found.facts.turns == 2


def test_side_conversations_do_not_move_the_turn() -> None:
    lines = inline_sidechains()
    found = of(lines)
    assert found.facts.turns == 2
    # In a file that is one side conversation, that one is what turns are counted in.
    assert of(list(claude_session(2, agent="a1"))).facts.turns == 4


def test_the_plan_as_it_stood_last() -> None:
    tasks = of(list(claude_session(3, seed=1))).tasks
    assert [(task.title, task.status) for task in tasks] == [
        ("Step 0", "completed"),
        ("Step 1", "completed"),
        ("Step 2", "in_progress"),
    ]


def test_tasks_made_one_by_one() -> None:
    tasks = TaskList()
    for number, subject in enumerate(("Build", "Test", "Ship"), 1):
        tasks.called(Call(f"t{number}", "TaskCreate", {"subject": subject, "description": "x"}))
        tasks.answered(ToolResult(f"t{number}", f"Task #{number} created successfully: {subject}", False))
    tasks.called(Call("t4", "TaskCreate", {"subject": "Never made"}))
    tasks.answered(ToolResult("t4", "refused", True))
    tasks.called(Call("u1", "TaskUpdate", {"taskId": "1", "status": "completed"}))
    tasks.called(Call("u2", "TaskUpdate", {"taskId": "2", "subject": "Test all", "status": "in_progress"}))
    tasks.called(Call("u3", "TaskUpdate", {"taskId": "3", "status": "deleted"}))
    tasks.called(Call("u4", "TaskUpdate", {"taskId": "99", "status": "completed"}))
    tasks.called(Call("u5", "TodoWrite", {"todos": "odd"}))
    assert tasks.tasks == (Task("1", "Build", "completed"), Task("2", "Test all", "in_progress"))


def test_commands_and_what_became_of_them() -> None:
    lines = list(claude_session(40, seed=4, parallel=2))
    found = of(lines)
    assert found.ran
    for ran in found.ran:
        [result] = CLAUDE.facts(lines[ran.item]).results
        assert ran.command.startswith("make test-")
        assert ran.exit_status == (2 if result.is_error else None)
        assert ran.failed == result.is_error
        assert ran.at == CLAUDE.facts(lines[ran.item]).at
    assert {ran.failed for ran in found.ran} == {True, False}


def test_exit_status_only_where_it_is_stated() -> None:
    def stated(text: str) -> int | None:
        return exit_status(ToolResult("t", text, True))

    assert stated("Exit code 127\nnot found") == 127
    assert stated("Error: Exit code 1") == 1
    assert stated("all fine") is None
    assert stated("the log says: Exit code 3") is None


def test_a_long_target_is_cut_and_told_apart() -> None:
    first = Call("t", "Bash", {"command": "x" * 5000 + "1"})
    second = first._replace(arguments={"command": "x" * 5000 + "2"})
    assert target(first) != target(second)
    assert len(target(first) or "") <= 200
    assert target(Call("t", "Novel", None)) is None


def test_the_header_of_a_request() -> None:
    body = anthropic_request(2, seed=1)
    messages = body.pop("messages")
    facts = of(messages, ANTHROPIC, header=body | {"messages": []}).facts
    assert facts.system_prompt == "You are careful.\nBe brief."
    assert facts.model == "claude-sample-1"
    assert facts.turns == 4


def test_raw_items_have_nothing_to_survey() -> None:
    found = survey(Items.of_chunks([b"some", b"text"]), get_dialect("opaque"))
    assert found.items == 0


@given(st.lists(st.sampled_from(list(claude_session(2, seed=1, images=True))), max_size=12))
@settings(max_examples=60, deadline=None)
def test_lines_in_any_order_are_surveyed(lines: list[Any]) -> None:
    found = of(lines)
    assert found.items == len(lines)
    assert found.facts.tokens_out >= 0
    CLAUDE.problems(iter(lines))
