"""Every way to be invalid that conversations with OpenAI can have: found, mended, and nothing else touched.

Each is made in every form in which a file may hold such a conversation, read from that file, mended twice,
and written again.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from archiver import mending
from archiver.repair import RepairReport, repair
from archiver.scratch import Scratch
from archiver.transcripts import get_dialect
from archiver.transcripts.reader import read

from .repairing import checkpoint, codes, mend
from .samples_invalid_openai import (
    BASE,
    CASES,
    CHAT,
    CODEX,
    FOREIGN,
    FORMS,
    RESPONSES,
    WAYS,
    Way,
    base_of,
    chat,
    made,
)


@pytest.mark.parametrize("form", FORMS)
def test_a_sound_conversation_is_not_touched(form: str, tmp_path: Path) -> None:
    dialect, name, _ = FORMS[form]
    path = tmp_path / name
    path.write_bytes(made(form, base_of(form)))
    value = checkpoint(path, dialect)
    assert codes(dialect, list(value.transcript.parts[0].items.values())) == []
    assert mend(value)[2] == RepairReport()


@pytest.mark.parametrize(("form", "way"), CASES)
def test_each_way_is_found_and_mended(form: str, way: Way, tmp_path: Path) -> None:
    dialect, name, _ = FORMS[form]
    path = tmp_path / name
    original = made(form, way.damage(base_of(form)))
    path.write_bytes(original)
    value = checkpoint(path, dialect)
    before = list(value.transcript.parts[0].items.lines())
    found = get_dialect(dialect).problems(value.transcript.parts[0].items.values())
    assert sorted(problem.code for problem in found) == sorted(way.codes)
    mended, lines, report, file = mend(value)
    assert path.read_bytes() == original
    assert sorted(codes(dialect, mended)) == sorted(way.left)
    assert sorted(action.code for action in report.left) == sorted(way.left)
    assert set(way.codes) <= {action.code for action in (*report.actions, *report.left)}
    touched = {problem.item for problem in found} | {action.item for action in report.actions}
    touched |= {item for problem in found for item, _ in problem.answers}
    _keeps([line for index, line in enumerate(before) if index not in touched], lines, "numbered" in form)
    again = tmp_path / f"again-{name}"
    again.write_bytes(file)
    assert list(checkpoint(again, dialect).transcript.parts[0].items.values()) == mended


def _keeps(kept: list[bytes], lines: list[bytes], numbered: bool) -> None:
    """The lines that nothing was wrong with are there, byte for byte and in their order."""
    if numbered:  # those behind a new line have other numbers
        kept, lines = list(map(_unnumbered, kept)), list(map(_unnumbered, lines))
    rest = iter(lines)
    missing = [line for line in kept if line not in rest]
    assert missing == []


def _unnumbered(line: bytes) -> bytes:
    value = json.loads(line)
    value.pop("ordinal", None)
    return json.dumps(value).encode()


def test_every_way_that_can_occur_is_made() -> None:
    cannot = {
        CHAT: {8, 13, 14, 17, 18},  # 13 is a matter of files, see below; the others cannot occur
        RESPONSES: {13, 14, 17, 18},
        CODEX: {13, 14, 17, 18},  # 14, 17 and 18 are those of the file, see below
    }
    for dialect, ways in WAYS.items():
        assert {way.number for way in ways} == set(range(1, 19)) - cannot[dialect]


def test_any_order_of_roles_is_taken() -> None:
    assert codes(CHAT, chat()[5:]) == []
    assert codes(CHAT, [chat()[7], chat()[0], chat()[7], chat()[1], chat()[1]]) == []
    assert codes(RESPONSES, BASE[8:]) == []
    assert codes(RESPONSES, [BASE[10], BASE[8], BASE[0]]) == []


def test_a_torn_line_costs_only_itself(tmp_path: Path) -> None:
    for form in ("chat lines", "responses lines", "codex", "codex flat"):
        dialect, name, _ = FORMS[form]
        path = tmp_path / name
        whole = made(form, base_of(form))
        path.write_bytes(whole + b'{"timestamp":"2026-01-31T14:00:00Z","type":"respo')
        reading = read([path])
        assert codes(dialect, list(reading.transcript.parts[0].items.values())) == []
        assert [dropped.place for dropped in reading.dropped] == ["tail"]


# Any of them together.

few = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("form", FORMS)
@few
@given(data=st.data())
def test_any_ways_together_are_mended(form: str, data: st.DataObject, tmp_path_factory: Any) -> None:
    dialect, name, _ = FORMS[form]
    ways = data.draw(st.lists(st.sampled_from(_SAFE[dialect]), min_size=1, max_size=4), label="ways")
    items = base_of(form)
    for way in ways:
        items = way.damage(items)
    path = tmp_path_factory.mktemp("any") / name
    path.write_bytes(made(form, items))
    assume(read([path]).transcript.dialect == dialect)
    mended, _, report, _ = mend(checkpoint(path, dialect))
    assert Counter(codes(dialect, mended)) == Counter(left.code for left in report.left)
    unclear = {"duplicate_call", "misplaced_result", "duplicate_result", "broken_seal"}
    ended = {"bad_role"} if items[-1].get("role") == "exit" else set()  # its call may be open by design
    assert {left.code for left in report.left} <= unclear | ended


_SAFE = {
    dialect: [way for way in ways if way.number != 12 and way is not FOREIGN]
    for dialect, ways in WAYS.items()
}

# Files: what cannot be read of them, and what is public.

TORN: dict[str, Callable[[list[bytes], int], list[bytes]]] = {
    "torn at the end": lambda lines, at: [*lines, b'{"timestamp":"2026-01-31T14:00:00Z","type":"respo'],
    "torn in the middle": lambda lines, at: [*lines[:at], b'{"timestamp":"20\n', *lines[at:]],
    "torn at the start": lambda lines, at: [b'{"timestamp":"20\n', *lines],
    "two on one line": lambda lines, at: [*lines[: at - 1], lines[at - 1].rstrip(b"\r\n"), *lines[at:]],
    "padded with NUL": lambda lines, at: [*lines, bytes(4096)],
    "NUL in between": lambda lines, at: [*lines[:at], bytes(64), *lines[at:]],
    "not UTF-8": lambda lines, at: [line.replace(b"What is", b"What\xffis") for line in lines],
}
"""13: what becomes of the lines of a file, some of them in the middle."""


@pytest.mark.parametrize("kind", TORN)
@pytest.mark.parametrize("form", [form for form, (_, name, _) in FORMS.items() if name.endswith("l")])
def test_a_line_that_cannot_be_read_is_found_and_mended(form: str, kind: str, tmp_path: Path) -> None:
    dialect, name, _ = FORMS[form]
    lines = made(form, base_of(form)).splitlines(keepends=True)
    path = tmp_path / name
    path.write_bytes(b"".join(TORN[kind](lines, len(lines) // 2)))
    original = path.read_bytes()
    checked = mending.check(path)
    assert checked.dialect == dialect
    assert {finding.code for finding in checked.findings} == {"broken_line"}
    done = mending.mend(path)
    assert {action.code for action in done.actions} == {"broken_line"}
    assert path.read_bytes() == original
    (written,) = done.written
    assert mending.check(written).findings == ()
    if kind != "not UTF-8":
        kept = written.read_bytes().splitlines(keepends=True)
        assert list(map(json.loads, kept)) == list(map(json.loads, lines))
        if "nested" not in form:  # what was on a damaged line may have another end
            assert sum(new != old for new, old in zip(kept, lines, strict=True)) <= 2
    assert mending.mend(written).written == ()


SHARED = Path(os.environ.get("ARCHIVER_SHARED", Path(__file__).parents[3] / "shared")) / "transcripts"
INVALID = {
    # A redaction took what only the provider could write, also of the compaction, which cannot go.
    "codex/02-agentv-0.142.2-enc.jsonl": ({"broken_seal": 65, "bound_id": 73}, {"broken_seal": 1}),
    # As well, and a person interrupted while the model reasoned.
    "codex/03-agentv-0.142.5-enc.jsonl": (
        {"broken_seal": 57, "lone_reasoning": 1, "bound_id": 139},
        {"broken_seal": 1},
    ),
    # Both were killed while two commands ran.
    "codex/04-agentv-0.142.0-ends-open2.jsonl": ({"unanswered_call": 2}, {}),
    "codex/05-agentv-0.140-small-open.jsonl": ({"unanswered_call": 2}, {}),
    # The harness noted the end of the run as a message of its own, which no API takes.
    "openai_chat/10-hermes-large.json": ({"bad_role": 1}, {}),
    # A message of a person in which nothing stands; most providers of this API refuse it.
    "mini_swe_agent/03-tests-local.traj.json": ({"empty_text": 1}, {}),
}
"""Public transcripts that are not valid: what is found, and what of it nothing can mend."""


@pytest.mark.skipif(not SHARED.exists(), reason=f"no public transcripts at {SHARED}")
def test_public_transcripts_are_valid_or_known_not_to_be() -> None:
    seen: Counter[str] = Counter()
    for path in sorted(path for path in SHARED.rglob("*") if path.is_file()):
        transcript = read([path]).transcript
        if transcript.dialect not in WAYS:
            continue
        seen[transcript.dialect] += 1
        found, left = INVALID.get(str(path.relative_to(SHARED)), ({}, {}))
        part = transcript.parts[0]
        problems = Counter(codes(transcript.dialect, list(part.items.values())))
        assert problems == found, path
        value = checkpoint(path, transcript.dialect)
        if not found:
            with Scratch() as scratch:
                assert repair(value, scratch) == (value, RepairReport())
            continue
        mended, _, report, _ = mend(value)
        assert Counter(codes(transcript.dialect, mended)) == left, path
        assert Counter(one.code for one in report.left) == left, path
    assert min(seen[dialect] for dialect in WAYS) > 3
