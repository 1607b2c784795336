"""Generated items of the OpenAI Responses API, the same for the same seed, and what stands around them."""

from __future__ import annotations

import json
from typing import Any

from transcripts.samples import Writer

MODEL = "gpt-sample-5"
_BASE64 = str.maketrans("+/", "-_")


class ItemWriter:
    """Makes items as the API gives them: ids of one response share a number."""

    def __init__(self, seed: int) -> None:
        self.make = Writer(seed)

    def id(self, prefix: str) -> str:
        return f"{prefix}_{self.make.random.getrandbits(192):048x}"

    def sealed(self, size: int = 200) -> str:
        """What only the provider can read: a token as Fernet writes it."""
        return "gAAAAA" + self.make.blob(size).translate(_BASE64)

    def user(self, text: str, pictures: int = 0) -> dict[str, Any]:
        content = [{"type": "input_text", "text": text}, *(self.picture() for _ in range(pictures))]
        return {"type": "message", "role": "user", "content": content}

    def picture(self, size: int = 600) -> dict[str, Any]:
        return {"type": "input_image", "image_url": f"data:image/png;base64,{self.make.blob(size)}"}

    def developer(self, text: str) -> dict[str, Any]:
        return {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": text}]}

    def reasoning(self, summary: str = "") -> dict[str, Any]:
        parts = [{"type": "summary_text", "text": summary}] if summary else []
        return {
            "type": "reasoning",
            "id": self.id("rs"),
            "summary": parts,
            "encrypted_content": self.sealed(),
        }

    def say(self, text: str) -> dict[str, Any]:
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        return {
            "type": "message",
            "id": self.id("msg"),
            "status": "completed",
            "role": "assistant",
            "content": [part],
        }

    def call(self, name: str, arguments: Any) -> dict[str, Any]:
        given = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        return {
            "type": "function_call",
            "id": self.id("fc"),
            "call_id": self.make.token("call_"),
            "name": name,
            "arguments": given,
        }

    def patch(self, file: str) -> dict[str, Any]:
        patch = f"*** Begin Patch\n*** Update File: {file}\n@@\n-a\n+{self.make.words(3)}\n*** End Patch"
        return {
            "type": "custom_tool_call",
            "id": self.id("ctc"),
            "status": "completed",
            "call_id": self.make.token("call_"),
            "name": "apply_patch",
            "input": patch,
        }

    def result(self, call: dict[str, Any], output: Any) -> dict[str, Any]:
        return {"type": f"{call['type']}_output", "call_id": call["call_id"], "output": output}

    def commands(self, turn: int, number: int) -> dict[str, Any]:
        """A call of one of some kinds."""
        file = f"/home/sample/project/src/file{(turn + number) % 7}.py"
        kinds = (
            lambda: self.call("read_file", {"path": file}),
            lambda: self.call("exec_command", {"cmd": f"make test-{turn % 5}"}),
            lambda: self.patch(file),
            lambda: self.call("write_file", {"path": file, "content": self.make.output(200)}),
        )
        return kinds[(turn + number) % 4]()

    def turn(
        self, number: int, *, parallel: int, images: bool = False, result_bytes: int = 120
    ) -> list[dict[str, Any]]:
        """A person asks, the model thinks, makes calls, gets results, thinks and answers."""
        asked = self.user(f"Instruction {number}: {self.make.words(8)}", pictures=int(images))
        calls = [self.commands(number, place) for place in range(parallel)]
        results = [self.result(call, self.make.output(result_bytes)) for call in calls]
        if images and results:
            parts = [{"type": "input_text", "text": "picture"}, self.picture()]
            results[-1]["output"] = parts
        first = [self.reasoning(self.make.words(12)), self.say(self.make.words(6)), *calls]
        return [asked, *first, *results, self.reasoning(), self.say(self.make.words(9))]


def response_items(
    turns: int, *, seed: int = 0, parallel: int = 2, images: bool = False, result_bytes: int = 120
) -> list[dict[str, Any]]:
    """The items of a request that has all that was said."""
    write = ItemWriter(seed)
    items = [write.developer("You are careful.")]
    for number in range(turns):
        items += write.turn(number, parallel=parallel, images=images, result_bytes=result_bytes)
    return items


def hosted_items(seed: int = 0) -> list[dict[str, Any]]:
    """A response with a call of each tool that the provider runs itself."""
    write = ItemWriter(seed)
    picture = {"type": "image", "url": f"data:image/png;base64,{write.make.blob(600)}"}
    search = {"type": "search", "query": "how"}
    return [
        write.user("Use what you have."),
        {"type": "mcp_list_tools", "id": write.id("mcpl"), "server_label": "wiki", "tools": []},
        write.reasoning(),
        {"type": "web_search_call", "id": write.id("ws"), "status": "completed", "action": search},
        {
            "type": "file_search_call",
            "id": write.id("fs"),
            "status": "completed",
            "queries": ["a"],
            "results": None,
        },
        {
            "type": "code_interpreter_call",
            "id": write.id("ci"),
            "status": "completed",
            "code": "print(1)",
            "container_id": write.id("cntr"),
            "outputs": [{"type": "logs", "logs": "1"}, picture],
        },
        {
            "type": "image_generation_call",
            "id": write.id("ig"),
            "status": "completed",
            "revised_prompt": "a cat",
            "result": write.make.blob(600),
        },
        {
            "type": "mcp_call",
            "id": write.id("mcp"),
            "server_label": "wiki",
            "name": "ask",
            "arguments": '{"question": "what"}',
            "output": "an answer",
            "error": None,
        },
        write.say("I have used them."),
    ]


def response_request(
    turns: int, *, seed: int = 0, images: bool = False, result_bytes: int = 120
) -> dict[str, Any]:
    """The body of a request."""
    return {
        "model": MODEL,
        "instructions": "Be brief.",
        "input": response_items(turns, seed=seed, images=images, result_bytes=result_bytes),
        "include": ["reasoning.encrypted_content"],
        "store": False,
    }


def response_body(
    output: list[dict[str, Any]], *, seed: int = 0, previous: str | None = None
) -> dict[str, Any]:
    """The body of a response."""
    write = ItemWriter(seed)
    return {
        "id": write.id("resp"),
        "object": "response",
        "created_at": 1769868000,
        "status": "completed",
        "model": MODEL,
        "output": output,
        "previous_response_id": previous,
        "usage": {
            "input_tokens": 1000,
            "input_tokens_details": {"cached_tokens": 600},
            "output_tokens": 50,
            "total_tokens": 1050,
        },
    }


def response_chain(turns: int, *, seed: int = 0) -> list[dict[str, Any]]:
    """Exchanges of which each request names the response before and has only what is new."""
    write = ItemWriter(seed)
    exchanges: list[dict[str, Any]] = []
    previous, new = None, [write.user("Begin.")]
    for number in range(turns):
        call = write.commands(number, 1)
        response = response_body([write.reasoning(), call], seed=seed + number, previous=previous)
        request = {"model": MODEL, "previous_response_id": previous, "input": new}
        exchanges.append({"request": request, "response": response})
        previous, new = response["id"], [write.result(call, write.make.output(200))]
    return exchanges
