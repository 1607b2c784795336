"""Chat Completions from file to file: what stands around messages is redacted, kept and put back too."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

import pytest
from transcripts.samples_openai_chat import chat_log, chat_messages, chat_request, chat_trajectories

from archiver.archive import Archived, Source, archive
from archiver.restore import Restored, restore
from archiver.setup import Setup
from archiver.transcripts import get_dialect

DIALECT = get_dialect("openai-chat")
CREDENTIAL = "ghp_" + secrets.token_hex(18)


def there_and_back(path: Path, setup: Setup, into: Path) -> tuple[Archived, Restored]:
    done = archive(Source(paths=(path,)), setup)
    return done, restore(done.record.run, setup, into=into, accept=("age", "git_commit"))


def handed_over(restored: Restored, into: Path) -> bytes:
    """The one file of a restored transcript, whose items are those that it holds."""
    (part,) = restored.checkpoint.transcript.parts
    assert DIALECT.problems(iter(part.items)) == []
    return (into / "transcript" / part.name).read_bytes()


def test_a_seal_around_messages_stays_and_a_credential_goes(setup: Setup, tmp_path: Path) -> None:
    seal = secrets.token_hex(150) + "-" + CREDENTIAL  # by chance, sealed text may hold anything
    log = chat_log(1)
    message = log["response"]["choices"][0]["message"]
    message["thinking_blocks"] = [{"type": "thinking", "thinking": "hm", "signature": seal}]
    log["note"] = seal
    path = tmp_path / "log.json"
    for number, value in enumerate((log, [log, log])):
        path.write_text(json.dumps(value))
        _, restored = there_and_back(path, setup, tmp_path / f"out{number}")
        back = json.loads(handed_over(restored, tmp_path / f"out{number}"))
        for one in back if isinstance(back, list) else [back]:
            assert one["response"] == log["response"]
            assert one["note"].startswith(seal[:300])
            assert "[REDACTED:github-token:" in one["note"]
            one["note"] = seal
        assert back == value


@pytest.mark.parametrize("lines", [True, False])
def test_a_file_of_conversations_keeps_its_form(setup: Setup, tmp_path: Path, lines: bool) -> None:
    values: list[Any] = (
        [chat_request(turns) for turns in (1, 25, 2)] if lines else chat_trajectories(4, turns=25)
    )
    for value in values:
        value["note"] = f"token={CREDENTIAL}"
        messages = value.get("traj") or value["messages"]
        messages[2]["content"] = f"I use {CREDENTIAL}."
        for message in messages:
            message["content"] = message["content"] and message["content"] * (
                1 + 9 * (message["role"] == "tool")
            )
    path = tmp_path / "file"
    texts = [json.dumps(value) for value in values]
    path.write_text("\n".join(texts) if lines else "[" + ",\n".join(texts) + "]")
    done, restored = there_and_back(path, setup, tmp_path / "out")
    assert sum(done.compaction.stubs.values()) > 0
    assert restored.report.repairs == ()
    text = handed_over(restored, tmp_path / "out")
    assert CREDENTIAL.encode() not in text
    back = [json.loads(line) for line in text.splitlines()] if lines else json.loads(text)
    for before, after in zip(values, back, strict=True):
        old, new = (value.pop("traj", None) or value.pop("messages") for value in (before, after))
        assert before.pop("note") != after.pop("note")
        assert before == after
        assert [message.get("tool_calls") for message in new] == [
            message.get("tool_calls") for message in old
        ]
        assert [one.get("tool_call_id") for one in new] == [one.get("tool_call_id") for one in old]
    step, look = restored.report.next_steps
    assert look.startswith("cat -v ")
    assert step == "# of these conversations, send the one that goes on with its next request"


def test_a_run_that_died_in_a_call_can_go_on(setup: Setup, tmp_path: Path) -> None:
    path = tmp_path / "file"
    died = chat_messages(2)[:-2]
    path.write_text(json.dumps({"session_id": "run-7", "model": "gpt-sample-1", "messages": died}))
    done, restored = there_and_back(path, setup, tmp_path / "out")
    assert (done.record.run, restored.checkpoint.environment.model) == ("run-7", "gpt-sample-1")
    back = json.loads(handed_over(restored, tmp_path / "out"))
    assert back["messages"][:-1] == died
    file = tmp_path / "out" / "transcript" / "file"
    assert restored.report.next_steps == ("# send these messages with the next request", f"cat -v {file}")
    assert back["messages"][-1]["tool_call_id"] == died[-2]["tool_calls"][1]["id"]
    original = json.loads((tmp_path / "out" / "original" / "transcript" / "file").read_bytes())
    assert original["messages"] == died


def test_a_registered_secret_leaves_ids_equal(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = chat_messages(1)
    own = messages[2]["tool_calls"][0]["id"]
    monkeypatch.setenv("SAMPLE_API_TOKEN", own[5:])
    path = tmp_path / "file"
    path.write_text(json.dumps(messages))
    _, restored = there_and_back(path, setup, tmp_path / "out")
    text = handed_over(restored, tmp_path / "out")
    assert own.encode() not in text
    back = json.loads(text)
    assert back[2]["tool_calls"][0]["id"] == back[3]["tool_call_id"]
