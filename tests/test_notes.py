"""Notes stay within their limits, however many objects and recipients there are."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver import age, jsonio, layout, notes
from archiver.errors import LimitExceededError
from archiver.model import Note, Rekeyed
from archiver.sign import SigningKey

KEY = SigningKey.from_seed(b"\1" * 32)
AT = datetime(2026, 3, 1, tzinfo=UTC)
ANNA = age.generate()
SCHEMAS = Path(__file__).parent.parent / "schemas"
LONGEST = "x" * layout.MAX_RUN


def noted(number: int, keys: int) -> Rekeyed:
    """An object with the longest name there is."""
    return Rekeyed(
        name=layout.bundle_name(LONGEST, number, "0" * 16),
        payload_sha256=f"{number:064x}",
        before=tuple(f"{key:032x}" for key in range(keys)),
        written=AT,
    )


def note(objects: tuple[Rekeyed, ...], keys: int = 1) -> Note:
    return Note(
        store="ab" * 16,
        run=LONGEST,
        task="t",
        at=AT,
        by=KEY.public,
        reason="ä" * 500,
        recipients=tuple(f"{key:032x}" for key in range(keys)),
        objects=objects,
    )


@given(st.lists(st.integers(0, 3), max_size=40))
def test_portions_hold_every_object_once_and_in_order(sizes: list[int]) -> None:
    objects = [noted(number, keys) for number, keys in enumerate(sizes, start=1)]
    portions = list(notes.parts(objects))
    assert [one for portion in portions for one in portion] == objects
    assert all(portions)


def test_thousands_of_objects_with_many_recipients_fit_into_few_notes() -> None:
    objects = [noted(number, 50) for number in range(1, 1501)]
    portions = list(notes.parts(objects))
    assert 2 <= len(portions) <= 10
    for portion in portions:
        sealed = notes.encode(note(portion, 500), KEY, [ANNA.recipient])
        assert len(sealed) <= notes.MAX_NOTE
        name = layout.note_name(AT, LONGEST, "0" * 16)
        assert notes.decode(sealed, [ANNA], name=name).objects == portion


def test_the_schema_describes_a_note() -> None:
    schema = jsonio.loads((SCHEMAS / "v2" / "note.schema.json").read_bytes())
    document = note((noted(1, 2),), 2).document()
    jsonschema.validate(document, schema)
    for wrong in ({"kind": "other"}, {"reason": "x" * 501}, {"recipients": ["age1"]}, {"more": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**document, **wrong}, schema)


def test_one_object_with_all_the_recipients_a_header_holds_fits() -> None:
    (portion,) = notes.parts([noted(1, 1000)])
    assert len(notes.encode(note(portion, 1000), KEY, [ANNA.recipient])) < notes.MAX_NOTE


def test_a_note_past_its_limit_is_not_written() -> None:
    objects = tuple(noted(number, 20) for number in range(1, 3000))
    with pytest.raises(LimitExceededError, match="more than 2097152"):
        notes.encode(note(objects), KEY, [ANNA.recipient])
