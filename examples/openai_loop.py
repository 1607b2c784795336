"""An agent loop with OpenAI's SDK that may be killed at any moment: started again, it goes on.

    archiver init                                           # once: a store and keys
    python examples/openai_loop.py --fake --die-after 2     # kills itself after its second turn
    python examples/openai_loop.py --fake                   # goes on with the third

Without `--fake` it asks the real model: OPENAI_API_KEY, and --model if you like.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import fake_models
from openai import OpenAI
from openai.types.chat import ChatCompletionFunctionToolParam

import archiver

TASK = "Look at the price feed of 2026-03-02, check what looks wrong, and tell buyers@shop.example."
TODAY = {"tea": 320.0, "coffee": 9.5, "sugar": 1.2}
LAST_MONTH = {"tea": 3.1, "coffee": 9.4, "sugar": 1.2}
OUTBOX = Path("outbox.txt")


def tool(name: str, description: str, *needs: str) -> ChatCompletionFunctionToolParam:
    texts = {one: {"type": "string"} for one in needs}
    schema: dict[str, object] = {"type": "object", "properties": texts, "required": list(needs)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


TOOLS = [
    tool("read_feed", "The prices of one day.", "day"),
    tool("check_price", "What one item cost last month.", "item"),
    tool("send_mail", "Sends a mail.", "to", "text"),
]


def send_mail(to: str, text: str) -> str:
    with OUTBOX.open("a", encoding="utf-8") as outbox:
        outbox.write(f"{to}: {text}\n")
    return "sent"


def was_sent(effect: archiver.Effect) -> archiver.Outcome:
    """Killed between the mail and the note that it went out, nobody knows, but the outbox does."""
    lines = OUTBOX.read_text(encoding="utf-8").splitlines() if OUTBOX.is_file() else []
    return "done" if any(effect.key == f"mail to {line.split(':')[0]}" for line in lines) else "not-done"


def answer(run: archiver.Run, name: str, arguments: dict[str, str]) -> str:
    print(f"{name} {arguments}")
    if name == "read_feed":
        return f"{arguments['day']}: {TODAY}"
    if name == "check_price":
        return f"{arguments['item']} cost {LAST_MONTH[arguments['item']]} last month"
    # Cannot be taken back. The block runs once, whatever dies when; a result that is recorded stands for it.
    # Its words are not part of it: the model may find others when it is asked again after a kill.
    with run.effect("mail.send", key=f"mail to {arguments['to']}") as effect:
        effect.confirm(send_mail(**arguments))
    return str(effect.result)


def work(client: OpenAI, run_id: str, model: str, die_after: int) -> None:
    turns = 0
    with archiver.run(
        "price-watch",
        run_id=run_id,
        harness="openai-loop 1",
        model=model,
        budget=archiver.Budget(tokens=500_000),
        policy=archiver.Policy(profile="every-step", floor=0),  # it is small: a real run leaves this out
        check=was_sent,
    ) as run:
        messages: list[Any] = run.messages or [{"role": "user", "content": TASK}]
        told = messages[-1]["role"] == "assistant"  # it was killed after its last answer
        while not told:
            response = client.chat.completions.create(model=model, messages=messages, tools=TOOLS)
            if response.usage:
                run.spend(tokens_in=response.usage.prompt_tokens, tokens_out=response.usage.completion_tokens)
            message = response.choices[0].message
            messages.append(message)
            for call in message.tool_calls or ():
                if call.type == "function":
                    result = answer(run, call.function.name, json.loads(call.function.arguments))
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
            told = not message.tool_calls
            run.checkpoint(messages, phase="told" if told else "looking")
            turns += 1
            if turns == die_after:
                os.kill(os.getpid(), signal.SIGKILL)
        run.finish("succeeded")
    print(f"done, turns: {turns}")


def main() -> None:
    options = argparse.ArgumentParser(description="An agent loop with OpenAI's SDK that survives a kill.")
    options.add_argument("--fake", action="store_true", help="ask a model on this machine, by a script")
    options.add_argument("--run", default="price-watch-openai", help="another id begins another run")
    options.add_argument("--model", default="gpt-6-sol")
    options.add_argument("--die-after", type=int, default=0, metavar="TURNS", help="SIGKILL, to see it go on")
    given = options.parse_args()
    with ExitStack() as stack:
        url = stack.enter_context(fake_models.serve()).url if given.fake else ""
        client = OpenAI(base_url=f"{url}/v1", api_key="fake") if url else OpenAI()
        work(client, given.run, given.model, given.die_after)


if __name__ == "__main__":
    main()
