"""What every dialect must do: a class of tests that runs for the dialect that a subclass names.

class TestMine(DialectContract):
    name = "mine"

    def conversation(self, seed: int = 0) -> list[Any]:
        return my_items(seed)
"""

from __future__ import annotations

import base64
import copy
import json
import secrets
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archiver.compact import CompactOptions, compact
from archiver.model import Checkpoint, Items, Transcript, TranscriptPart
from archiver.redact import Redactor, new_key
from archiver.redact.exact import ExactValue
from archiver.repair import repair
from archiver.scratch import Scratch
from archiver.transcripts import DIALECTS, Dialect, get_dialect
from archiver.transcripts.dialect import Call
from archiver.transcripts.native import write_native
from archiver.transcripts.places import at
from archiver.transcripts.reader import read
from archiver.transcripts.survey import survey

from .samples import START, line_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
SMALL = CompactOptions(keep_turns=1, small_result=20, blob_limit=64)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Every text inside a value, with its path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*path, index))
    elif isinstance(value, str):
        yield path, value


@pytest.fixture
def scratch() -> Iterator[Scratch]:
    with Scratch() as made:
        yield made


class DialectContract:
    """Needs `name` and `conversation`; `write` and `keys` fit most formats."""

    name: str
    keys: tuple[str, ...] = ()
    """Keys under which items of the format hold ids, signatures and encrypted texts."""

    def conversation(self, seed: int = 0) -> list[Any]:
        """The items of a valid file: instructions, parallel calls with results, reasoning and a picture."""
        raise NotImplementedError

    def write(self, path: Path, items: list[Any]) -> None:
        """Write a native file that holds the items."""
        path.write_bytes(b"".join(line_of(item) + b"\n" for item in items))

    @property
    def dialect(self) -> Dialect:
        return get_dialect(self.name)

    def test_it_has_a_name_by_which_it_is_found(self) -> None:
        assert DIALECTS[self.name].name == self.name

    def test_a_valid_conversation_says_what_it_is(self) -> None:
        facts = [self.dialect.facts(item) for item in self.conversation()]
        calls = [call for one in facts for call in one.calls if not call.answered_elsewhere]
        results = [result for one in facts for result in one.results]
        assert len(calls) > 1
        assert Counter(call.id for call in calls) == Counter(result.call_id for result in results)
        assert all(call.name and isinstance(call.arguments, dict) for call in calls)
        assert any(one.instruction for one in facts)
        assert any(one.text for one in facts if one.role == "assistant")
        assert any(one.has_reasoning for one in facts)
        assert self.problems(self.conversation()) == []

    def test_its_file_is_known_by_its_content_and_comes_back(self, tmp_path: Path) -> None:
        items = self.conversation()
        path = tmp_path / "file"
        self.write(path, items)
        transcript = read([path]).transcript
        assert transcript.dialect == self.name
        part = transcript.parts[0]
        assert list(part.items) == items
        pieces: list[bytes] = []
        write_native(part, pieces.append)
        again = tmp_path / "again"
        again.write_bytes(b"".join(pieces))
        back = read([again]).transcript
        assert (back.dialect, list(back.parts[0].items)) == (self.name, items)
        assert survey(part.items, self.dialect, part.header).facts.turns > 0

    @given(JSON)
    @settings(
        max_examples=60, deadline=None, suppress_health_check=[HealthCheck.differing_executors]
    )  # each subclass is one
    def test_an_item_of_any_shape_is_read(self, item: Any) -> None:
        dialect = self.dialect
        dialect.facts(item)
        dialect.link(item)
        list(dialect.blobs(item))
        dialect.fold(item)
        dialect.problems(iter([item]))
        for path, _ in leaves(item):
            assert dialect.opaque(path, item) in (True, False)
            assert dialect.opaque(path) in (True, False)

    def edits(self, item: Any) -> Iterator[Any]:
        """What each edit makes of an item."""
        dialect = self.dialect
        facts = dialect.facts(item)
        ids = [result.call_id for result in facts.results] or ["call_none"]
        yield dialect.stub_result(item, ids[0], "[stub]")
        yield dialect.fold(item)
        yield dialect.without_reasoning(item)
        yield dialect.without_result(item, ids[0])
        yield dialect.with_sound_text(item)
        yield dialect.relinked(item, {str(dialect.link(item)[0]): None})
        yield dialect.error_results([Call(ids[0], "bash", {})], item, "[lost]")
        yield dialect.user_note("[lost]", item)
        for blob in dialect.blobs(item):
            yield dialect.replace_blob(item, blob.path, "[blob]")

    def test_edits_leave_their_argument_alone(self) -> None:
        for item in self.conversation():
            before = copy.deepcopy(item)
            for made in self.edits(item):
                assert item == before
                assert made is item or made is None or line_of(made) != line_of(before)

    def test_a_result_is_found_stubbed_and_taken_out(self) -> None:
        dialect = self.dialect
        for item in self.conversation():
            for result in dialect.facts(item).results:
                stubbed = dialect.stub_result(item, result.call_id, "[stub]")
                found = {one.call_id: one.text for one in dialect.facts(stubbed).results}
                assert found[result.call_id] == "[stub]"
                left = dialect.without_result(item, result.call_id)
                if left is not None:
                    assert result.call_id not in {one.call_id for one in dialect.facts(left).results}

    def test_a_synthetic_result_answers_its_call_and_is_no_success(self) -> None:
        dialect = self.dialect
        for item in self.conversation():
            for call in dialect.facts(item).calls:
                if not call.answered_elsewhere:
                    made = dialect.error_results([call], item, "[lost]")
                    (result,) = dialect.facts(made).results
                    assert (result.call_id, result.is_error) == (call.id, True)
                    assert "[lost]" in result.text

    def test_reasoning_goes_whole(self) -> None:
        for item in self.conversation():
            left = self.dialect.without_reasoning(item)
            if left is not None:
                assert not self.dialect.facts(left).has_reasoning
                before, after = self.dialect.facts(item), self.dialect.facts(left)
                assert (before.calls, before.text) == (after.calls, after.text)

    def test_pictures_are_found_opaque_and_replaced(self) -> None:
        dialect = self.dialect
        seen = 0
        for item in self.conversation():
            for blob in list(dialect.blobs(item)):
                seen += 1
                assert base64.b64decode(blob.data)
                assert at(item, blob.path).endswith(blob.data)
                assert dialect.opaque(blob.path, item)
                replaced = dialect.replace_blob(item, blob.path, "[blob]")
                assert blob.path not in {left.path for left in dialect.blobs(replaced)}
                assert "[blob]" in json.dumps(replaced)
        assert seen

    def test_ids_are_opaque_and_texts_are_not(self) -> None:
        dialect = self.dialect
        for item in self.conversation():
            facts = dialect.facts(item)
            ids = {call.id for call in facts.calls} | {result.call_id for result in facts.results}
            texts = {facts.text, facts.instruction, *(result.text for result in facts.results)} - {""}
            for path, leaf in leaves(item):
                if leaf in ids or path[-1] in self.keys:
                    assert dialect.opaque(path, item), path
                if leaf in texts:
                    assert not dialect.opaque(path, item), path

    def test_redaction_spares_what_is_opaque_and_nothing_else(self, scratch: Scratch) -> None:
        secret = "ghp_" + secrets.token_hex(18)
        items = self.conversation()
        held = [self.planted(item, secret) for item in items]
        assert held != items
        redactor = Redactor.load(new_key(), exact=[ExactValue("TOKEN", secret)])
        made = redactor.transcript(self.transcript(held), scratch).value
        again = list(made.parts[0].items)
        assert secret not in json.dumps(again)
        assert self.sealed(again) == self.sealed(items)
        assert self.problems(again) == []

    def planted(self, item: Any, secret: str) -> Any:
        """The item with a secret behind the text of its results."""
        for result in self.dialect.facts(item).results:
            item = self.dialect.stub_result(item, result.call_id, f"{result.text} {secret}")
        return item

    def test_compaction_keeps_it_valid_with_its_ids(self, scratch: Scratch) -> None:
        items = self.conversation()
        made = self.compacted(items, scratch)
        assert self.problems(made) == []
        assert self.sealed(made) <= self.sealed(items)
        ids = Counter(call.id for item in items for call in self.dialect.facts(item).calls)
        assert Counter(call.id for item in made for call in self.dialect.facts(item).calls) == ids
        said = [one.instruction for item in items if (one := self.dialect.facts(item)).instruction]
        kept = [one.instruction for item in made if (one := self.dialect.facts(item)).instruction]
        assert [text.split("\n")[0] for text in kept] == [text.split("\n")[0] for text in said]
        assert len(json.dumps(made)) < len(json.dumps(items))
        assert self.compacted(made, scratch) == made

    def compacted(self, items: list[Any], scratch: Scratch) -> list[Any]:
        redactor = Redactor.load(new_key())
        transcript = redactor.transcript(self.transcript(items), scratch).value
        value = redactor.checkpoint(self.checkpoint(transcript))
        return list(compact(value, None, SMALL, scratch).checkpoint.value.transcript.parts[0].items)

    def test_a_run_that_died_is_repaired_wherever_it_died(self, scratch: Scratch) -> None:
        items = self.conversation()
        for end in range(1, len(items) + 1):
            cut = items[:end]
            value = self.checkpoint(self.transcript(cut))
            after, report = repair(value, scratch)
            mended = list(after.transcript.parts[0].items)
            assert self.problems(mended) == [], end
            assert report.left == ()
            assert (after is value) == (self.problems(cut) == [])
            assert self.sealed(self.kept(cut)) <= self.sealed(mended)
            results = [result for item in mended for result in self.dialect.facts(item).results]
            known = {result.call_id for item in cut for result in self.dialect.facts(item).results}
            assert all(result.is_error for result in results if result.call_id not in known)
            assert repair(after, scratch)[0] is after

    def kept(self, cut: list[Any]) -> list[Any]:
        """What has to stay of a file that ends so."""
        return cut

    def problems(self, items: list[Any]) -> list[str]:
        return [problem.code for problem in self.dialect.problems(iter(items))]

    def sealed(self, items: list[Any]) -> set[str]:
        """Every opaque leaf but pictures, which compaction may keep elsewhere."""
        found = set()
        for item in items:
            pictures = {blob.path for blob in self.dialect.blobs(item)}
            found |= {
                leaf
                for path, leaf in leaves(item)
                if path not in pictures and self.dialect.opaque(path, item)
            }
        return found

    def transcript(self, items: list[Any]) -> Transcript:
        part = TranscriptPart(name="main", items=Items.of_lines(line_of(item) for item in items))
        return Transcript(dialect=self.name, parts=(part,))

    def checkpoint(self, transcript: Transcript) -> Checkpoint:
        return Checkpoint(
            run_id="run", task_id="task", created_at=START, checkpoint_at=START, transcript=transcript
        )
