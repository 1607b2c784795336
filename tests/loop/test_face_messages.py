"""What a loop says as messages, in whatever form: it comes back, and is never read as what it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import archiver
from archiver.setup import Setup
from loop.test_face import ALWAYS

TALK = [{"role": "user", "content": "Look."}, {"role": "assistant", "content": "I do."}]
CHAT: list[Any] = [
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "found"},
]
RESPONSES: list[Any] = [
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "found"},
]


@pytest.mark.parametrize(("later", "found"), [(CHAT, "openai-chat"), (RESPONSES, "openai-responses")])
def test_a_conversation_that_had_only_begun_is_read_as_what_it_turns_out_to_be(
    setup: Setup, reopen: Callable[[], Setup], later: list[Any], found: str
) -> None:
    with archiver.run("t", setup=setup, policy=ALWAYS) as run:
        run.checkpoint(TALK)  # of any provider
    with archiver.run("t", setup=reopen(), policy=ALWAYS) as run:
        run.checkpoint([*run.messages, *later])
    with archiver.run("t", setup=reopen(), policy=ALWAYS) as run:
        assert run.messages == [*TALK, *later], "no result of a tool is lost"
        run.checkpoint()
        assert run._state.before == found
        assert run.rewind(run.seq) == [*TALK, *later]


def test_a_conversation_is_read_by_all_that_shows_its_form_however_late(setup: Setup) -> None:
    from archiver.loop.state import ITEMS_TO_LOOK_AT, State

    with archiver.run("t", setup=setup, policy=ALWAYS) as run:
        run.checkpoint([*TALK * ITEMS_TO_LOOK_AT, *CHAT, *TALK])
        state: State = run._state
        assert state.maker(())().transcript.dialect == "openai-chat"


def test_numbers_and_texts_that_few_languages_have(setup: Setup, reopen: Callable[[], Setup]) -> None:
    odd = [{"role": "user", "content": "whole", "id": 2**70}, {"n": [10**25, -(10**19), 1.5]}]
    with archiver.run("t", setup=setup, policy=ALWAYS) as run:
        run.checkpoint(odd)
        assert run.messages == odd
        assert run.step("n", lambda: 2**70) == 2**70
        assert run.effect("t", key="n", arguments=2**70).do(lambda: 2**70) == 2**70
    with archiver.run("t", setup=reopen(), policy=ALWAYS) as run:
        assert run.messages == odd
        assert run.step("n", lambda: 0) == 2**70
        assert run.effect("t", key="n", arguments=2**70).do(lambda: 0) == 2**70
        half = [{"role": "user", "content": "half \ud800"}]
        assert run.checkpoint(half).saved
    with archiver.run("t", setup=reopen(), policy=ALWAYS) as run:
        assert run.messages == half


def test_no_message_raises_into_the_loop(setup: Setup) -> None:
    class Broken:
        def model_dump(self, **_: Any) -> Any:
            raise KeyError("a")

    around: list[Any] = []
    around.append(around)
    with archiver.run("t", setup=setup, policy=ALWAYS) as run:
        for bad in ([Broken()], around, [{1: 2}], [b"bytes"], "text", {"role": "user"}, 5):
            ticket = run.checkpoint(bad)  # type: ignore[arg-type]
            assert ticket.status == "failed", bad
            assert isinstance(ticket.error, archiver.ArchiverError)
        assert run.checkpoint(TALK).saved
