"""Links of sub-agents that lead nowhere are mended, but not where an agent goes on from its session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from archiver.mending import check, mend

SESSION = "0b0c1b5e-51a7-4f36-8d0e-6c9f5b8f2a47"


def line(own: str, parent: str | None, kind: str, agent: str | None) -> dict[str, Any]:
    content = [{"type": "text", "text": own}]
    return {
        "parentUuid": parent,
        "uuid": own,
        "sessionId": SESSION,
        "isSidechain": agent is not None,
        **({} if agent is None else {"agentId": agent}),
        "type": kind,
        "message": {"role": kind, "content": content},
    }


def session(folder: Path, agent: str, lost: str | None) -> Path:
    main = [line("u1", None, "user", None), line("u2", "u1", "assistant", None)]
    side = [
        line("s1", None, "user", agent),
        line("s2", "s1", "assistant", agent),
        line("s3", lost, "user", agent),
    ]
    path = folder / f"{SESSION}.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in main))
    agents = folder / SESSION / "subagents"
    agents.mkdir(parents=True)
    (agents / f"agent-{agent}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in side))
    return path


@pytest.mark.parametrize("agent", ["aa84377", "5f3a2b1c"])
def test_a_link_of_an_agent_that_leads_nowhere_is_mended(agent: str, tmp_path: Path) -> None:
    path = session(tmp_path, agent, "gone")
    (found,) = check(path).findings
    assert (found.code, found.line, found.file.name) == ("dangling_parent", 3, f"agent-{agent}.jsonl")
    result = mend(path, into=tmp_path / "mended")
    assert [one.action for one in result.actions] == ["relinked"]
    mended = tmp_path / "mended" / SESSION / "subagents" / f"agent-{agent}.jsonl"
    assert json.loads(mended.read_text().splitlines()[2])["parentUuid"] == "s2"
    assert check(tmp_path / "mended" / path.name).findings == ()


@pytest.mark.parametrize("agent", ["acompact-70d8e7", "aprompt_suggestion-1a2b3c"])
def test_one_that_goes_on_from_the_session_has_its_parents_there(agent: str, tmp_path: Path) -> None:
    assert check(session(tmp_path, agent, "u2")).findings == ()
    assert mend(tmp_path / f"{SESSION}.jsonl", dry_run=True).actions == ()
