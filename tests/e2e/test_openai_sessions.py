"""Generated runs of Codex and Responses, there and back: redacted, compacted, mended, in their own form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from transcripts.samples import line_of, write_jsonl
from transcripts.samples_codex import codex_flat, codex_session
from transcripts.samples_responses import ItemWriter, response_body, response_chain, response_request

from archiver.archive import Options, Source, archive
from archiver.restore import Restored, restore
from archiver.setup import Setup
from archiver.transcripts import get_dialect

TOKEN = "ghp_" + "k9Xw2Lq7Rt" * 4
"""In the form of a credential that redaction knows; nobody's."""
SECRET = TOKEN[:40]


def crlf(path: Path, lines: list[Any]) -> Path:
    path.write_bytes(b"".join(line_of(line) + b"\r\n" for line in lines))
    return path


def leaking(lines: list[Any]) -> list[Any]:
    """The lines with a credential in what a person typed first."""
    text = json.dumps(lines, ensure_ascii=False).replace("Instruction 0:", f"Instruction 0: {SECRET}")
    made: list[Any] = json.loads(text)
    return made


def enveloped(path: Path) -> Path:
    lines = leaking(list(codex_session(30, seed=1, images=True, compaction=True, result_bytes=900)))
    return write_jsonl(path / "rollout-2026-01-31T14-00-00-s.jsonl", lines)


def flat(path: Path) -> Path:
    return crlf(path / "rollout-flat.jsonl", leaking(codex_flat(30, seed=1, result_bytes=900)))


def request(path: Path) -> Path:
    body = response_request(30, seed=1, images=True, result_bytes=900)
    (path / "request.json").write_text(json.dumps({**body, "input": leaking(body["input"])}))
    return path / "request.json"


def log(path: Path) -> Path:
    write = ItemWriter(5)
    body = {
        "request": response_request(25, seed=1, result_bytes=900),
        "response": response_body([write.reasoning()]),
    }
    body["request"]["input"] = leaking(body["request"]["input"])
    (path / "log.json").write_text(json.dumps(body))
    return path / "log.json"


def chain(path: Path) -> Path:
    exchanges = response_chain(30, seed=1)
    exchanges[0]["request"]["input"][0]["content"][0]["text"] = f"Instruction 0: {SECRET}"
    return write_jsonl(path / "chain.jsonl", exchanges)


FORMS: list[Callable[[Path], Path]] = [enveloped, flat, request, log, chain]


def sealed(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("encrypted_content", "id", "call_id", "previous_response_id") and isinstance(
                inner, str
            ):
                yield key, inner
            yield from sealed(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from sealed(inner)


def values(path: Path) -> list[Any]:
    text = path.read_text(encoding="utf-8")
    return [json.loads(text)] if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]


def of_transcript(restored: Restored) -> list[str]:
    """The warnings that name a part of the transcript."""
    names = [part.name for part in restored.checkpoint.transcript.parts]
    return [warning for warning in restored.report.warnings if warning.startswith(tuple(names))]


def there_and_back(path: Path, setup: Setup, into: Path) -> Restored:
    done = archive(Source(paths=(path,)), setup, options=Options())
    return restore(done.record.run, setup, into=into, accept=("age", "git_commit"))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_it_comes_back_smaller_valid_and_with_its_seals(
    form: Callable[[Path], Path], setup: Setup, tmp_path: Path
) -> None:
    path = form(tmp_path)
    restored = there_and_back(path, setup, tmp_path / "out")
    transcript = restored.checkpoint.transcript
    assert transcript.dialect == ("codex" if "rollout" in path.name else "openai-responses")
    assert get_dialect(transcript.dialect).problems(iter(transcript.parts[0].items)) == []
    assert (restored.report.repairs, of_transcript(restored)) == ((), [])
    native = tmp_path / "out" / "transcript" / path.name
    # What stands around the items comes back with its keys in another order.
    in_order = sorted if path.suffix == ".json" else list
    assert in_order(sealed(values(native))) == in_order(sealed(values(path)))
    assert SECRET not in native.read_text()
    assert sum(restored.report.record.findings.values()) > 0
    if form is not chain:  # of whose calls nobody knows what they were about
        assert "[archived result: " in native.read_text()
        assert native.stat().st_size < path.stat().st_size
    if form is flat:
        assert native.read_bytes().count(b"\r\n") == path.read_bytes().count(b"\n")


def test_a_run_of_codex_that_died_goes_on(setup: Setup, tmp_path: Path) -> None:
    lines = list(codex_session(3, seed=1, events=False))
    last = max(place for place, line in enumerate(lines) if line["payload"].get("type") == "function_call")
    broken = lines[: last + 1]
    for line in broken:
        if line["payload"].get("type") == "reasoning":
            line["payload"]["encrypted_content"] = "REDACTED"
    restored = there_and_back(write_jsonl(tmp_path / "session.jsonl", broken), setup, tmp_path / "out")
    kept = values(tmp_path / "out" / "transcript" / "session.jsonl")
    sound = [line for line in broken if line["payload"].get("type") != "reasoning"]
    bound = [one.item for one in restored.report.repairs if one.code == "bound_id"]
    assert bound
    for item in bound:
        del broken[item]["payload"]["id"]  # it would ask for the reasoning
    assert kept[: len(sound)] == sound
    added = kept[len(sound) :]
    assert added
    assert all("outcome is unknown" in line["payload"]["output"] for line in added)
    assert of_transcript(restored) == []
    gone = [action for action in restored.report.repairs if action.code == "broken_seal"]
    assert len(gone) == len(broken) - len(sound)
    assert "whose seal is broken" in (tmp_path / "out" / "REPORT.md").read_text()
    session = broken[0]["payload"]["id"]
    _, copy, resume = restored.report.next_steps
    assert copy.endswith(f"/rollout-2026-01-31T14-00-01-{session}.jsonl")
    assert resume == f"cd /home/sample/project && codex resume {session}"
