"""The models of the examples refuse what the real ones refuse: else a broken resume would pass unseen."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import fake_models

Messages = list[dict[str, Any]]


def claude() -> Messages:
    """A conversation after one turn with its result."""
    messages: Messages = [{"role": "user", "content": "go"}]
    said = fake_models.anthropic({"model": "m", "messages": messages})["content"]
    result = {"type": "tool_result", "tool_use_id": "toolu_0_0", "content": "x"}
    return [*messages, {"role": "assistant", "content": said}, {"role": "user", "content": [result]}]


def gpt() -> Messages:
    messages: Messages = [{"role": "user", "content": "go"}]
    said = fake_models.openai({"model": "m", "messages": messages})["choices"][0]["message"]
    return [*messages, said, {"role": "tool", "tool_call_id": "call_0_0", "content": "x"}]


def refused(answer: Callable[[dict[str, Any]], Any], messages: Messages) -> str:
    with pytest.raises(fake_models.RefusedError) as caught:
        answer({"model": "m", "messages": messages})
    return str(caught.value)


def test_both_go_on_with_what_is_sound() -> None:
    assert fake_models.anthropic({"model": "m", "messages": claude()})["id"] == "msg_1"
    assert fake_models.openai({"model": "m", "messages": gpt()})["id"] == "chatcmpl-1"


def _without_result(messages: Messages) -> None:
    messages[2]["content"] = [{"type": "text", "text": "and?"}]


def _without_call(messages: Messages) -> None:
    del messages[1]["content"][2]


def _twice(messages: Messages) -> None:
    messages[2]["content"] *= 2


def _other_thought(messages: Messages) -> None:
    messages[1]["content"][0]["thinking"] += "!"


def _blank(messages: Messages) -> None:
    messages[1]["content"][1]["text"] = " "


def _tool_role(messages: Messages) -> None:
    messages[2]["role"] = "tool"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_without_result, "messages.1: `tool_use` ids were found without `tool_result`"),
        (_without_call, "messages.2: unexpected `tool_use_id`"),
        (_twice, "single result"),
        (_other_thought, "Invalid `signature`"),
        (_blank, "non-empty"),
        (_tool_role, "Input should be 'user' or 'assistant'"),
        (lambda messages: messages.pop(0), "first message must use the `user` role"),
        (lambda messages: messages.pop(), "must end with a user message"),
        (lambda messages: messages[2].update(content=[]), "non-empty content"),
    ],
)
def test_messages_refuses(spoil: Callable[[Messages], None], said: str) -> None:
    messages = copy.deepcopy(claude())
    spoil(messages)
    if messages[-1]["role"] == "tool":
        messages.append({"role": "user", "content": "go on"})
    assert said in refused(fake_models.anthropic, messages)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda messages: messages.pop(), "did not have response messages: call_0_0"),
        (lambda messages: messages[2].update(role="user"), "did not have response messages: call_0_0"),
        (lambda messages: messages.pop(1), "must be a response to a preceding message"),
        (lambda messages: messages.append(messages[2]), "must be a response to a preceding message"),
        (lambda messages: messages[0].update(tool_calls=None), "Invalid type for 'messages[0].tool_calls'"),
        (lambda messages: messages[1].update(function_call=None), "Invalid type for 'messages[1].function"),
        (lambda messages: messages[0].update(role="human"), "Invalid value: 'human'"),
        (lambda messages: messages[0].update(content=""), "messages[0] has no content"),
    ],
)
def test_chat_completions_refuses(spoil: Callable[[Messages], None], said: str) -> None:
    messages = copy.deepcopy(gpt())
    spoil(messages)
    assert said in refused(fake_models.openai, messages)
