"""An agent loop with Anthropic's SDK that may be killed at any moment: started again, it goes on.

    archiver init                                              # once: a store and keys
    python examples/anthropic_loop.py --fake --die-after 2     # kills itself after its second turn
    python examples/anthropic_loop.py --fake                   # goes on with the third

Without `--fake` it asks the real model: ANTHROPIC_API_KEY, and --model if you like.
"""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import fake_models
from anthropic import Anthropic
from anthropic.types import MessageParam, ToolParam, ToolResultBlockParam, ToolUseBlock

import archiver

TASK = "Look at the price feed of 2026-03-02, check what looks wrong, and tell buyers@shop.example."
TODAY = {"tea": 320.0, "coffee": 9.5, "sugar": 1.2}
LAST_MONTH = {"tea": 3.1, "coffee": 9.4, "sugar": 1.2}
OUTBOX = Path("outbox.txt")


def tool(name: str, description: str, *needs: str) -> ToolParam:
    texts = {one: {"type": "string"} for one in needs}
    schema: dict[str, object] = {"type": "object", "properties": texts, "required": list(needs)}
    return {"name": name, "description": description, "input_schema": schema}


TOOLS = [
    tool("read_feed", "The prices of one day.", "day"),
    tool("check_price", "What one item cost last month.", "item"),
    tool("send_mail", "Sends a mail.", "to", "text"),
]


def read_feed(day: str) -> str:
    return f"{day}: {TODAY}"


def check_price(item: str) -> str:
    return f"{item} cost {LAST_MONTH[item]} last month"


# The model may find other words when it is asked again after a kill: it is the same mail all the same.
@archiver.effect("mail.send", key="mail to {to}", without=("text",))
def send_mail(to: str, text: str) -> str:
    """Cannot be taken back: it is done once, whatever dies when; asked again, it says what it said then."""
    with OUTBOX.open("a", encoding="utf-8") as outbox:
        outbox.write(f"{to}: {text}\n")
    return "sent"


def was_sent(effect: archiver.Effect) -> archiver.Outcome:
    """Killed between the mail and the note that it went out, nobody knows, but the outbox does."""
    lines = OUTBOX.read_text(encoding="utf-8").splitlines() if OUTBOX.is_file() else []
    return "done" if any(effect.key == f"mail to {line.split(':')[0]}" for line in lines) else "not-done"


FUNCTIONS: dict[str, Callable[..., str]] = {one.__name__: one for one in (read_feed, check_price, send_mail)}


def answer(call: ToolUseBlock) -> ToolResultBlockParam:
    print(f"{call.name} {call.input}")
    return {"type": "tool_result", "tool_use_id": call.id, "content": FUNCTIONS[call.name](**call.input)}


def work(client: Anthropic, run_id: str, model: str, die_after: int) -> None:
    turns = 0
    with archiver.run(
        "price-watch",
        run_id=run_id,
        harness="anthropic-loop 1",
        model=model,
        budget=archiver.Budget(tokens=500_000),
        policy=archiver.Policy(profile="every-step", floor=0),  # it is small: a real run leaves this out
        check=was_sent,
    ) as run:
        messages: list[MessageParam] = run.messages or [{"role": "user", "content": TASK}]
        while messages[-1]["role"] == "user":
            response = client.messages.create(
                model=model, max_tokens=4096, thinking={"type": "adaptive"}, tools=TOOLS, messages=messages
            )
            run.spend(tokens_in=response.usage.input_tokens, tokens_out=response.usage.output_tokens)
            messages.append({"role": "assistant", "content": response.content})
            calls = [block for block in response.content if block.type == "tool_use"]
            if calls:
                messages.append({"role": "user", "content": [answer(call) for call in calls]})
            run.checkpoint(messages, phase="looking" if calls else "told")
            turns += 1
            if turns == die_after:
                os.kill(os.getpid(), signal.SIGKILL)
        run.finish("succeeded")
    print(f"done, turns: {turns}")


def main() -> None:
    options = argparse.ArgumentParser(description="An agent loop with Anthropic's SDK that survives a kill.")
    options.add_argument("--fake", action="store_true", help="ask a model on this machine, by a script")
    options.add_argument("--run", default="price-watch-anthropic", help="another id begins another run")
    options.add_argument("--model", default="claude-sonnet-5-5")
    options.add_argument("--die-after", type=int, default=0, metavar="TURNS", help="SIGKILL, to see it go on")
    given = options.parse_args()
    with ExitStack() as stack:
        url = stack.enter_context(fake_models.serve()).url if given.fake else None
        client = Anthropic(base_url=url, api_key="fake") if given.fake else Anthropic()
        work(client, given.run, given.model, given.die_after)


if __name__ == "__main__":
    main()
