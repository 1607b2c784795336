"""What compaction keeps, what it replaces, and what it says of it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from transcripts.samples import inline_sidechains

from archiver import jsonio
from archiver.compact import (
    Compacted,
    CompactOptions,
    Outline,
    SummaryFacts,
    compact,
    default_summary,
    read_stub,
)
from archiver.errors import UsageError
from archiver.model import Checkpoint, Evidence, Items, Plan, Step, Transcript, TranscriptPart
from archiver.scratch import Scratch
from archiver.transcripts import get_dialect
from archiver.transcripts.dialect import ToolResult
from compact.sessions import (
    BLOCKS,
    DIALECTS,
    Turn,
    Use,
    Written,
    call_id,
    checkpoint,
    items_of,
    lines_of,
    picture,
    redacted,
    write,
)

LONG = "a line of output\n" * 60
HUGE = "".join(f"line {number} of a very long log\n" for number in range(4000))
ONE = CompactOptions(keep_turns=1)


@pytest.fixture
def scratch() -> Iterator[Scratch]:
    with Scratch() as made:
        yield made


def _compact(value: Checkpoint, scratch: Scratch, options: CompactOptions = ONE, **more: Any) -> Compacted:
    return compact(redacted(value), None, options, scratch, **more)


def _session(written: Written, scratch: Scratch, options: CompactOptions = ONE) -> Compacted:
    return _compact(checkpoint(written.dialect, written.lines), scratch, options)


def _results(compacted: Compacted) -> dict[str, ToolResult]:
    value = compacted.checkpoint.value
    dialect = get_dialect(value.transcript.dialect)
    return {result.call_id: result for item in items_of(value) for result in dialect.facts(item).results}


def _body(compacted: Compacted, path: str) -> bytes:
    (member,) = [member for member in compacted.members.value if member.path == path]
    assert isinstance(member.source, Path)
    data = member.source.read_bytes()
    assert (len(data), hashlib.sha256(data).hexdigest()) == (member.size, member.sha256)
    return data


def _run(*outputs: Use) -> list[Turn]:
    return [*(Turn(uses=(use,)) for use in outputs), Turn(say="done")]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_old_result_becomes_a_stub_that_says_what_it_was(dialect: str, scratch: Scratch) -> None:
    output = f"Exit code 2\n{LONG}2 failed, 10 passed\n"
    written = write(_run(Use("Bash", {"command": "make test"}, output, failed=True)), dialect)
    compacted = _session(written, scratch)
    (result,) = _results(compacted).values()
    data = output.encode()
    assert result.text == (
        '[archived result: Bash "make test"; exit 2; last line "2 failed, 10 passed"; '
        f"{len(data)} bytes; sha256 {hashlib.sha256(data).hexdigest()}; older than the last 1 turns]"
    )
    assert result.is_error
    assert compacted.report.stubs == {"older": 1}
    assert (
        compacted.report.bytes_after
        < compacted.report.bytes_before
        == sum(map(len, written.lines)) + len(written.lines)
    )


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("earlier", "later", "reason"),
    [
        ({"file_path": "/a"}, Use("Read", {"file_path": "/a"}, LONG), "superseded"),
        ({"file_path": "/a"}, Use("Write", {"file_path": "/a", "content": "x"}), "superseded"),
        ({"file_path": "/a", "offset": 1}, Use("Read", {"file_path": "/a"}, LONG), "superseded"),
        ({"file_path": "/a", "offset": 1}, Use("Read", {"file_path": "/a", "offset": 1}, LONG), "superseded"),
        ({"file_path": "/a"}, Use("Read", {"file_path": "/a", "offset": 1}, LONG), "older"),
        ({"file_path": "/a", "offset": 1}, Use("Read", {"file_path": "/a", "offset": 9}, LONG), "older"),
        ({"file_path": "/a"}, Use("Read", {"file_path": "/b"}, LONG), "older"),
        ({"file_path": "/a"}, Use("Read", {"file_path": "/a"}, "gone", failed=True), "older"),
        ({"file_path": "/a"}, Use("Read", {"file_path": "/a"}, answered=False), "older"),
    ],
)
def test_only_a_later_success_on_the_same_target_supersedes(
    dialect: str, earlier: dict[str, Any], later: Use, reason: str, scratch: Scratch
) -> None:
    compacted = _session(write(_run(Use("Read", earlier, LONG), later), dialect), scratch)
    stub = read_stub(_results(compacted)[call_id(1, 0)].text)
    assert stub is not None
    assert stub.reason == reason


@pytest.mark.parametrize("dialect", DIALECTS)
def test_small_results_and_the_last_turns_stay_as_they_are(dialect: str, scratch: Scratch) -> None:
    session = _run(Use("Read", {"file_path": "/a"}, "x" * 400), Use("Read", {"file_path": "/a"}, LONG))
    compacted = _session(write(session, dialect), scratch, CompactOptions(keep_turns=2))
    assert [result.text for result in _results(compacted).values()] == ["x" * 400, LONG]
    assert not compacted.report.stubs


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_result_that_is_no_longer_than_its_stub_stays(dialect: str, scratch: Scratch) -> None:
    output = "y" * 410
    use = Use("Bash", {"command": "z" * 200}, output)
    compacted = _session(write(_run(use), dialect), scratch)
    assert _results(compacted)[call_id(1, 0)].text == output


@pytest.mark.parametrize("dialect", BLOCKS)
def test_older_reasoning_goes_and_the_last_stays(dialect: str, scratch: Scratch) -> None:
    session = [
        Turn(ask="start", thinking="first", say="a", uses=(Use("Bash", {"command": "ls"}),)),
        Turn(thinking="second", say="b", uses=(Use("Bash", {"command": "ls"}),)),
        Turn(thinking="third", say="c"),
    ]
    written = write(session, dialect)
    compacted = _session(written, scratch, CompactOptions(keep_turns=2))
    text = b"\n".join(lines_of(compacted.checkpoint.value))
    assert b"first" not in text
    assert text.count(b'"thinking":"second"') == text.count(b'"thinking":"third"') == 1
    assert compacted.report.reasoning_dropped == 1
    assert compacted.report.items_dropped == (1 if dialect == "claude-code" else 0)


def test_lines_that_followed_dropped_reasoning_follow_its_parent(scratch: Scratch) -> None:
    session = [Turn(ask="start", thinking="hm", say="a"), Turn(ask="more", thinking="so", say="b")]
    written = write(session, "claude-code")
    compacted = _session(written, scratch)
    kept = items_of(compacted.checkpoint.value)
    asked, thought, said = written.items[:3]
    assert [item["uuid"] for item in kept[:2]] == [asked["uuid"], said["uuid"]]
    assert thought["uuid"] == said["parentUuid"]
    assert kept[1]["parentUuid"] == asked["uuid"]


def test_a_line_that_something_earlier_links_to_is_not_dropped(scratch: Scratch) -> None:
    written = write([Turn(ask="start", thinking="hm", say="a"), Turn(ask="more", say="b")], "claude-code")
    leaf = {"type": "summary", "summary": "s", "leafUuid": written.items[1]["uuid"]}
    lines = [json.dumps(leaf).encode(), *written.lines]
    compacted = _compact(checkpoint("claude-code", lines), scratch)
    assert compacted.report.items_dropped == 0
    later = _compact(checkpoint("claude-code", [*written.lines, lines[0]]), scratch)
    assert later.report.items_dropped == 1
    assert items_of(later.checkpoint.value)[-1]["leafUuid"] == written.items[0]["uuid"]


def test_a_line_whose_parent_is_lost_is_not_dropped(scratch: Scratch) -> None:
    written = write([Turn(ask="start", thinking="hm", say="a"), Turn(ask="more", say="b")], "claude-code")
    compacted = _compact(checkpoint("claude-code", written.lines[1:]), scratch)
    assert compacted.report.items_dropped == 0
    assert lines_of(compacted.checkpoint.value) == written.lines[1:]


def test_a_response_of_nothing_but_reasoning_stays(scratch: Scratch) -> None:
    for dialect in DIALECTS:
        written = write([Turn(ask="start", thinking="hm", say="a"), Turn(ask="more", say="b")], dialect)
        if dialect == "claude-code":
            del written.items[2]
        elif dialect in BLOCKS:
            del written.items[1]["content"][1]
        else:
            written.items[2]["content"] = None
        compacted = _session(written, scratch)
        assert lines_of(compacted.checkpoint.value) == written.lines


def test_copies_go_outside_the_last_turns_only(scratch: Scratch) -> None:
    session = _run(Use("Bash", {"command": "ls"}, "short"), Use("Bash", {"command": "ls"}, LONG))
    written = write(session, "claude-code")
    compacted = _session(written, scratch, CompactOptions(keep_turns=2))
    held = ["toolUseResult" in item for item in items_of(compacted.checkpoint.value)]
    assert held.count(True) == 1
    assert held.index(True) == len(held) - 2
    assert compacted.report.folded == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_huge_output_in_the_last_turns_keeps_head_and_tail(dialect: str, scratch: Scratch) -> None:
    written = write([Turn(uses=(Use("Bash", {"command": "make log"}, HUGE),))], dialect)
    compacted = _session(written, scratch)
    (result,) = _results(compacted).values()
    digest = hashlib.sha256(HUGE.encode()).hexdigest()
    (artifact,) = compacted.checkpoint.value.artifacts
    head, note, tail = result.text.rpartition("\n")[0].partition("\n[archived output: ")
    assert HUGE.startswith(head)
    assert len(head) == 2048
    assert f"{len(HUGE)} bytes; sha256 {digest}; artifacts {digest}; " in note + tail
    assert HUGE.endswith(result.text.partition("left out here]\n")[2])
    assert (artifact.sha256, artifact.size, artifact.media_type) == (digest, len(HUGE), "text/plain")
    assert artifact.summary == "Bash make log: ok; line 3999 of a very long log"
    assert _body(compacted, f"artifacts/{digest}").decode() == HUGE
    assert b"toolUseResult" not in b"".join(lines_of(compacted.checkpoint.value))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_huge_output_that_is_old_is_a_stub_that_names_its_artifact(dialect: str, scratch: Scratch) -> None:
    use = Use("Bash", {"command": "make log"}, HUGE)
    cut = _session(write([Turn(uses=(use,))], dialect), scratch)
    again = Use("Bash", {"command": "make log"}, _results(cut)[call_id(1, 0)].text)
    digest = hashlib.sha256(HUGE.encode()).hexdigest()
    for old in (use, again):
        compacted = _session(write(_run(old), dialect), scratch)
        stub = read_stub(_results(compacted)[call_id(1, 0)].text)
        assert stub is not None
        assert (stub.content.size, stub.content.sha256) == (len(HUGE), digest)
        assert stub.content.artifacts == (digest,)
        assert stub.conclusion.last == "line 3999 of a very long log"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_pictures_become_artifacts_once_everywhere(dialect: str, scratch: Scratch) -> None:
    see = Use("Read", {"file_path": "/p.png"}, "a picture", image=6000)
    small = Use("Read", {"file_path": "/s.png"}, "a small one", image=300)
    compacted = _session(write(_run(see, small, see), dialect), scratch, CompactOptions(keep_turns=2))
    digest = hashlib.sha256(base64.b64decode(picture(6000))).hexdigest()
    (artifact,) = compacted.checkpoint.value.artifacts
    assert (artifact.sha256, artifact.media_type) == (digest, "image/png")
    assert _body(compacted, f"artifacts/{digest}") == base64.b64decode(picture(6000))
    text = b"\n".join(lines_of(compacted.checkpoint.value)).decode()
    assert text.count(f"[archived attachment: image/png; {artifact.size} bytes; sha256 {digest}") == 2
    assert picture(6000) not in text
    assert text.count(picture(300)) == 1


def test_a_small_picture_beside_a_large_one_stays(scratch: Scratch) -> None:
    pictures = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": picture(size)}}
        for size in (6000, 300)
    ]
    lines = [json.dumps({"role": "user", "content": pictures}).encode()]
    compacted = _compact(checkpoint("anthropic-messages", lines), scratch)
    (item,) = items_of(compacted.checkpoint.value)
    assert [block["type"] for block in item["content"]] == ["text", "image"]
    assert item["content"][1] == pictures[1]


def test_a_picture_that_stands_in_a_copy_too_is_kept_once(scratch: Scratch) -> None:
    written = write([Turn(uses=(Use("Read", {"file_path": "/p.png"}, "seen", image=6000),))], "claude-code")
    written.items[-1]["toolUseResult"] = {
        "type": "image",
        "file": {"base64": picture(6000), "type": "image/png"},
    }
    compacted = _session(written, scratch)
    assert picture(6000).encode() not in b"".join(lines_of(compacted.checkpoint.value))
    assert len(compacted.checkpoint.value.artifacts) == compacted.report.artifacts == 1
    (result,) = _results(compacted).values()
    assert result.text.startswith("seen\n[archived attachment: image/png; ")


def test_two_results_of_one_call_in_one_item_are_left_for_repair(scratch: Scratch) -> None:
    items = write(_run(Use("Read", {"file_path": "/a"}, LONG)), "anthropic-messages").items
    items[2]["content"].insert(1, {**items[2]["content"][0], "content": "another " * 100})
    lines = [json.dumps(item).encode() for item in items]
    compacted = _compact(checkpoint("anthropic-messages", lines), scratch)
    assert lines_of(compacted.checkpoint.value) == lines


def test_a_payload_that_is_not_plain_base64_is_kept_as_it_stands(scratch: Scratch) -> None:
    data = picture(6000) + "\n"
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    lines = [json.dumps({"role": "user", "content": [{"type": "text", "text": "see"}, block]}).encode()]
    compacted = _compact(checkpoint("anthropic-messages", lines), scratch)
    (artifact,) = compacted.checkpoint.value.artifacts
    assert artifact.media_type == "text/plain"
    assert _body(compacted, f"artifacts/{artifact.sha256}").decode() == data


def test_a_stub_names_the_pictures_of_its_result(scratch: Scratch) -> None:
    use = Use("Shot", {"url": "http://x"}, LONG, image=6000)
    compacted = _session(write(_run(use), "anthropic-messages"), scratch)
    stub = read_stub(_results(compacted)[call_id(1, 0)].text)
    assert stub is not None
    assert stub.content.artifacts == (compacted.checkpoint.value.artifacts[0].sha256,)


def test_a_stub_stays_when_another_result_of_its_item_is_replaced(scratch: Scratch) -> None:
    uses = tuple(Use("Shot", {"url": f"http://{n}/" + "x" * 150}, LONG, image=6000 + 64 * n) for n in (1, 2))
    written = write([Turn(uses=uses), Turn(say="done")], "anthropic-messages")
    texts = _results(_session(written, scratch))
    assert len(texts[call_id(1, 0)].text) > ONE.small_result
    written.items[2]["content"][0]["content"] = texts[call_id(1, 0)].text
    assert _results(_session(written, scratch)) == texts


def test_a_cut_never_goes_through_a_placeholder(scratch: Scratch) -> None:
    placeholder = "[REDACTED:token:0123456789ab]"
    output = ("a" * 2040 + placeholder + "b" * 70_000 + placeholder + "c" * 2030) + "\nend"
    compacted = _session(write([Turn(uses=(Use("Bash", {"command": "x"}, output),))], DIALECTS[0]), scratch)
    (result,) = _results(compacted).values()
    assert result.text.startswith("a" * 2040 + "\n[archived output: ")
    assert result.text.endswith("here]\n" + "c" * 2030 + "\nend")
    (artifact,) = compacted.checkpoint.value.artifacts
    assert "[REDACTED" not in artifact.head + artifact.tail


def test_untouched_lines_keep_their_bytes(scratch: Scratch) -> None:
    lines = [
        b'{"role": "user",  "content": "hi", "n": 1.0, "big": 123456789012345678901234567890}',
        b'{"role":"assistant","content":[{"type":"text","text":"\\u00e9\\ud83d"}]}',
    ]
    compacted = _compact(checkpoint("anthropic-messages", lines), scratch)
    assert lines_of(compacted.checkpoint.value) == lines
    assert compacted.report.bytes_after == compacted.report.bytes_before


def test_every_conversation_of_a_part_keeps_its_own_last_turns(scratch: Scratch) -> None:
    main = write(
        [Turn(ask="go", uses=(Use("Task", {"prompt": "p"}, LONG),)), Turn(say="done")], "claude-code"
    )
    side = write(_run(*[Use("Read", {"file_path": f"/{n}"}, LONG) for n in range(3)]), "claude-code")
    side.items = json.loads(
        json.dumps(side.items).replace("toolu_", "toolu_s").replace("00000000-", "11111111-")
    )
    for item in side.items:
        item.update(isSidechain=True, agentId="a1")
    lines = [json.dumps(item).encode() for item in [*main.items[:2], *side.items, *main.items[2:]]]
    compacted = _compact(checkpoint("claude-code", lines), scratch, CompactOptions(keep_turns=2))
    texts = {key: result.text for key, result in _results(compacted).items()}
    assert texts[call_id(1, 0)] == LONG
    assert [read_stub(texts[f"toolu_s000{n}_00"]) is not None for n in (1, 2, 3)] == [True, True, False]


def test_side_conversations_without_a_name_are_told_apart(scratch: Scratch) -> None:
    lines = [json.dumps(item).encode() for item in inline_sidechains()]
    compacted = _compact(checkpoint("claude-code", lines), scratch, CompactOptions(keep_turns=2))
    assert lines_of(compacted.checkpoint.value) == lines
    assert compacted.report.folded == 0


def test_opaque_and_raw_parts_are_kept_whole(scratch: Scratch) -> None:
    transcript = Transcript(
        parts=(
            TranscriptPart(name="a.json", items=Items.of([{"role": "user"}] * 3)),
            TranscriptPart(name="b.md", media="raw", items=Items.of_chunks([b"# ai", b"der\xff"])),
        )
    )
    value = checkpoint("opaque", []).model_copy(update={"transcript": transcript})
    compacted = _compact(value, scratch)
    parts = compacted.checkpoint.value.transcript.parts
    assert [part.segments for part in parts] == [("transcript/0001.jsonl",), ("transcript/0002.bin",)]
    assert _body(compacted, "transcript/0002.bin") == b"# aider\xff"
    assert parts[0].items == transcript.parts[0].items
    assert compacted.report.kept_whole == ("a.json", "b.md")


def test_keep_full_archives_the_redacted_transcript_beside_the_compacted_one(scratch: Scratch) -> None:
    written = write(_run(Use("Read", {"file_path": "/a"}, LONG)), "claude-code")
    options = CompactOptions(keep_turns=1, keep_full=True)
    compacted = _session(written, scratch, options)
    full = compacted.checkpoint.value.full_transcript
    assert full is not None
    assert list(full.parts[0].items.lines()) == written.lines
    assert full.parts[0].segments == ("full/0001.jsonl",)
    assert _body(compacted, "full/0001.jsonl") == b"".join(line + b"\n" for line in written.lines)
    again = compact(compacted.checkpoint, None, options, scratch)
    assert again.checkpoint.value.full_transcript == full
    assert _session(written, scratch).checkpoint.value.full_transcript is None


def test_artifacts_of_an_earlier_bundle_are_carried_on(scratch: Scratch) -> None:
    first = _session(write([Turn(uses=(Use("Bash", {"command": "x"}, HUGE),))], "claude-code"), scratch)
    value = first.checkpoint.value.model_copy(update={"transcript": Transcript()})
    alone = compact(redacted(value), None, ONE, scratch)
    assert alone.checkpoint.value.artifacts == first.checkpoint.value.artifacts
    assert alone.members.value == ()
    carried = compact(redacted(value), None, ONE, scratch, carried=first.members.value)
    assert [member.path for member in carried.members.value] == [
        f"artifacts/{artifact.sha256}" for artifact in value.artifacts
    ]


def _told() -> list[Turn]:
    todos = [{"content": "write it", "status": "completed"}, {"content": "test it", "status": "in_progress"}]
    return [
        Turn(ask="go", uses=(Use("Write", {"file_path": "/a.py", "content": "1"}),)),
        Turn(uses=(Use("Write", {"file_path": "/b.py", "content": "1"}, "no", failed=True),)),
        Turn(uses=(Use("TodoWrite", {"todos": todos}),)),
        Turn(uses=(Use("Bash", {"command": "make test"}, f"Exit code 2\n{LONG}1 failed", failed=True),)),
        Turn(uses=(Use("Bash", {"command": "make test"}, LONG + "5 passed"),)),
        Turn(uses=(Use("Bash", {"command": "make lint"}, answered=False),)),
        Turn(say="All done.\nSee /a.py"),
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("keep", [1, 20])
def test_the_default_summary_says_what_the_transcript_states(
    dialect: str, keep: int, scratch: Scratch
) -> None:
    value = checkpoint(
        dialect,
        write(_told(), dialect).lines,
        objective="make it\nwork",
        plan=Plan(remaining=(Step(id="1", title="ship"),)),
        evidence=(Evidence(command="make all", exit_status=0, summary="fine"),),
    )
    compacted = _compact(value, scratch, CompactOptions(keep_turns=keep))
    assert compacted.checkpoint.value.summary.splitlines() == [
        "Objective:",
        "- make it work",
        "Files written:",
        "- /a.py",
        "Commands, latest run of each:",
        "- make test: ok; 5 passed",
        "- make lint: no result recorded",
        "Plan:",
        "- [ ] ship",
        "- [x] write it",
        "- [>] test it",
        "Evidence:",
        "- make all: exit 0; fine",
        "Last said:",
        "- All done. See /a.py",
    ]
    assert compacted.report.summary == "default"


def test_what_a_side_conversation_says_is_not_the_last_word(scratch: Scratch) -> None:
    written = write([Turn(say="main said"), Turn(say="side said")], "claude-code")
    written.items[-1].update(isSidechain=True, agentId="a1")
    assert _session(written, scratch).checkpoint.value.summary == "Last said:\n- main said"


def test_a_given_summary_stays_and_a_callable_comes_before_it(scratch: Scratch) -> None:
    value = checkpoint("claude-code", write(_told(), "claude-code").lines, summary="said by the caller")
    kept = _compact(value, scratch)
    assert (kept.checkpoint.value.summary, kept.report.summary) == ("said by the caller", "given")
    seen: list[SummaryFacts] = []

    def summarise(facts: SummaryFacts) -> str:
        seen.append(facts)
        return f"{len(facts.transcript.parts[0].items)} items"

    made = _compact(value, scratch, summarise=summarise)
    assert made.checkpoint.value.summary == "13 items"
    assert made.report.summary == "callable"
    assert seen[0].previous == "said by the caller"
    assert seen[0].files_written == ("/a.py",)


@pytest.mark.parametrize(
    "wrong", [lambda _: 7, lambda _: "\ud83d", lambda _: "x" * (2 << 20), lambda _: 1 // 0]
)
def test_a_callable_that_fails_costs_the_summary_not_the_checkpoint(wrong: Any, scratch: Scratch) -> None:
    value = checkpoint("claude-code", write(_told(), "claude-code").lines)
    compacted = _compact(value, scratch, summarise=wrong)
    assert compacted.checkpoint.value.summary == _compact(value, scratch).checkpoint.value.summary
    assert compacted.report.summary == "default"
    assert compacted.report.summary_error in ("UsageError", "ZeroDivisionError")


def test_an_empty_checkpoint_has_an_empty_summary(scratch: Scratch) -> None:
    compacted = _compact(checkpoint("opaque", []), scratch)
    assert compacted.checkpoint.value.summary == ""
    assert compacted.members.value == ()


def test_a_long_list_is_cut_at_its_older_end() -> None:
    facts = SummaryFacts("", tuple(f"/{n}" for n in range(40)), (), (), Plan(), (), "", "", Transcript())
    assert default_summary(facts).splitlines()[:3] == [
        "Files written:",
        "- (10 earlier ones are not shown)",
        "- /10",
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"keep_turns": 0},
        {"head": 10},
        {"tail": 100},
        {"output_limit": 5000},
        {"blob_limit": 0},
        {"small_result": -1},
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        CompactOptions(**options)  # type: ignore[arg-type]  # sizes only


def test_outlines_of_another_transcript_are_refused(scratch: Scratch) -> None:
    value = checkpoint("claude-code", write(_told(), "claude-code").lines)
    outline = Outline(get_dialect("claude-code"), ONE)
    for outlines in ([], [outline]):
        with pytest.raises(UsageError):
            compact(redacted(value), outlines, ONE, scratch)


def _thinking(name: str) -> dict[str, Any]:
    block = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    message = {"role": "assistant", "id": "msg_1", "content": [block]}
    return {"type": "assistant", "uuid": name, "parentUuid": None, "sessionId": "s", "message": message}


def _spoken(name: str, message: str, parent: str | None) -> dict[str, Any]:
    said = {"role": "assistant", "id": message, "content": [{"type": "text", "text": "well"}]}
    return {"type": "assistant", "uuid": name, "parentUuid": parent, "sessionId": "s", "message": said}


@pytest.mark.parametrize(
    "items",
    [
        [_thinking("a"), {}, _spoken("b", "msg_1", "a"), _spoken("c", "msg_2", "b")],
        [
            _spoken("z", "msg_0", None),
            _thinking("a"),
            _spoken("b", "msg_1", "a"),
            _thinking("a"),
            _spoken("c", "msg_2", "a"),
        ],
    ],
)
def test_reasoning_at_the_beginning_or_named_twice_stays_a_line(scratch: Scratch, items: list[Any]) -> None:
    compacted = _compact(checkpoint("claude-code", [jsonio.dumps(item) for item in items]), scratch)
    assert compacted.report.items_dropped == 0
