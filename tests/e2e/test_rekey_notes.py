"""Who rewrote a header, and may say so: notes that are believed, and all that only look like one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from archiver import age, jsonio, layout, notes, records, sign
from archiver.catalog import Catalog
from archiver.config import load
from archiver.errors import (
    ArchiverError,
    ContainerError,
    ContextMismatchError,
    LimitExceededError,
    RecipientMismatchError,
    RecordError,
    SignatureError,
    UnsupportedSchemaError,
    UntrustedWriterError,
)
from archiver.model import Note, Rekeyed
from archiver.restore import plan, restore
from archiver.setup import Setup, initialise, open_setup
from archiver.sign import SigningKey
from archiver.verify import Finding, verify

from .rekeying import (
    RUN,
    Counting,
    at,
    backdate,
    broken,
    distrusting,
    done,
    names,
    only,
    overwrite,
    save,
    to,
    with_stanzas,
)

NEW, OTHER = age.generate(), age.generate()
OPS = SigningKey.generate()
OLD = datetime(2026, 1, 1, tzinfo=UTC)
LEAK = OLD + timedelta(days=1)


@pytest.fixture
def saved(setup: Setup, note: Path) -> Setup:
    """A run of two checkpoints, saved long ago."""
    for _ in range(2):
        save(setup, note)
    backdate(setup, OLD, "records/", "bundles/")
    return setup


@pytest.fixture
def moved(saved: Setup) -> Setup:
    """The same after an administrator has rewritten its headers; its writer is distrusted since the leak."""
    writer = saved.require_signing_key()
    ops = replace(distrusting(to(saved, NEW), LEAK, OPS.public), signing_key=OPS)
    done(ops, reason="leak")
    return replace(ops, signing_key=writer)


def note_in(setup: Setup) -> Note:
    (examined,) = notes.Notes(setup).examined(RUN)
    assert examined.believed is not None
    return examined.believed.note


def put_note(setup: Setup, note: Note, key: SigningKey, run: str | None = None) -> str:
    """Sign and put a note as whoever has the key can, under its own name or under another run's."""
    name = layout.note_name(note.at, run or note.run, "0123456789abcdef")
    sealed = notes.encode(note.model_copy(update={"by": key.public}), key, setup.recipients)
    setup.store.create(name, [sealed], retention="hold")
    return name


def drop_notes(setup: Setup) -> None:
    for name in names(setup, layout.NOTES):
        setup.store.delete(name)


def refused(setup: Setup) -> ArchiverError:
    with pytest.raises(ArchiverError) as caught:
        Catalog(setup).chain(RUN)
    return caught.value


def findings(setup: Setup, prefix: str, *, deep: bool = True) -> list[Finding]:
    return [one for one in verify(setup, RUN, deep=deep) if one.object.startswith(prefix)]


def test_old_records_of_a_distrusted_writer_stay_old(moved: Setup, tmp_path: Path) -> None:
    chain = Catalog(moved).chain(RUN)
    assert chain.writer == "ci"
    assert restore(RUN, only(moved, NEW), into=tmp_path / "out").report.writer == "ci"
    assert broken(moved) == []
    assert {one.note.partition(";")[0] for one in findings(moved, "records/")} == {"signed by ci"}
    for finding in (*findings(moved, "records/"), *findings(moved, "bundles/")):
        assert " by ops" in finding.note
        assert "; rekeyed at 20" in finding.note
    (told,) = findings(moved, "notes/")
    assert told.note == "ops signed a rekey of 4 objects: leak"


def test_without_the_note_they_count_as_new(moved: Setup) -> None:
    drop_notes(moved)
    error = refused(moved)
    assert isinstance(error, UntrustedWriterError)
    assert "distrusted after" in str(error)


def test_a_record_written_after_the_leak_stays_refused(moved: Setup, note: Path) -> None:
    """The thief goes on with the run, and vouches for its age with the key that he has."""
    head = Catalog(moved).head(RUN)
    assert head is not None
    thief = replace(moved, writers=replace(moved.writers, trusted=()))
    forged = head.record.model_copy(update={"seq": 3, "previous": head.sha256})
    assert forged.bundle is not None
    bundle = forged.bundle.model_copy(update={"name": layout.bundle_name(RUN, 3, "0" * 16)})
    forged = forged.model_copy(update={"bundle": bundle})
    sealed = records.encode(forged, thief.require_signing_key(), thief.recipients)
    thief.store.create(layout.record_name(RUN, 3), [sealed], retention="record")
    assert isinstance(refused(moved), UntrustedWriterError)
    digest = age.payload_digest(BytesIO(sealed))[0]
    said = Rekeyed(name=layout.record_name(RUN, 3), payload_sha256=digest, before=(), written=OLD)
    lie = note_in(moved).model_copy(update={"objects": (said,), "at": datetime.now(UTC)})
    name = put_note(moved, lie, thief.require_signing_key())
    assert isinstance(refused(moved), UntrustedWriterError)
    (examined, _) = notes.Notes(moved).examined(RUN)
    assert (examined.name, type(examined.error)) == (name, UntrustedWriterError)


def test_a_distrusted_writer_who_is_an_administrator_too_vouches_for_nothing(saved: Setup) -> None:
    key = saved.require_signing_key().public
    setup = distrusting(to(saved, NEW), LEAK, key)
    with pytest.raises(UntrustedWriterError, match="distrusted after"):
        done(setup)
    believing = replace(to(saved, NEW))
    done(believing)  # before the leak was known
    assert isinstance(refused(setup), UntrustedWriterError)


def test_a_note_speaks_of_one_payload_under_one_name(moved: Setup) -> None:
    note = note_in(moved)
    drop_notes(moved)
    first, second = (one for one in note.objects if one.name.startswith("records/"))
    for objects in (
        (first,),
        (first, second.model_copy(update={"payload_sha256": first.payload_sha256})),
        (first, second.model_copy(update={"name": layout.record_name(RUN, 7)})),
    ):
        put_note(moved, note.model_copy(update={"objects": objects}), OPS)
        error = refused(moved)
        assert isinstance(error, UntrustedWriterError), objects
        drop_notes(moved)
    put_note(moved, note, OPS)
    Catalog(moved).chain(RUN)


def other_store(setup: Setup, note: Note) -> Note:
    return note.model_copy(update={"store": "ab" * 16})


def other_run_inside(setup: Setup, note: Note) -> Note:
    objects = tuple(
        one.model_copy(update={"name": one.name.replace("/r/", "/other/")}) for one in note.objects
    )
    return note.model_copy(update={"objects": objects})


def a_store_document(setup: Setup, note: Note) -> Note:
    one = note.objects[0].model_copy(update={"name": layout.STORE})
    return note.model_copy(update={"objects": (one,)})


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (other_store, ContextMismatchError),
        (other_run_inside, RecordError),
        (a_store_document, RecordError),
    ],
)
def test_a_note_of_an_administrator_that_is_about_something_else(
    moved: Setup, change: Callable[[Setup, Note], Note], kind: type[ArchiverError]
) -> None:
    note = note_in(moved)
    drop_notes(moved)
    name = put_note(moved, change(moved, note), OPS)
    assert isinstance(refused(moved), UntrustedWriterError)
    writing = replace(moved, writers=distrusting(moved, datetime.now(UTC), OPS.public).writers)
    assert {(one.object, type(one.error)) for one in findings(writing, "notes/")} == {(name, kind)}


def test_a_note_that_was_moved_or_copied(moved: Setup, note: Path) -> None:
    (name,) = names(moved, layout.NOTES)
    data = at(moved, name).read_bytes()
    drop_notes(moved)
    elsewhere = layout.note_name(note_at(name) + timedelta(seconds=1), RUN, "0" * 16)
    moved.store.create(elsewhere, [data], retention="hold")
    assert isinstance(refused(moved), UntrustedWriterError)
    (examined,) = notes.Notes(moved).examined(RUN)
    assert isinstance(examined.error, ContextMismatchError)
    assert "was moved or copied" in str(examined.error)
    moved.store.create(layout.note_name(note_at(name), "other", "0" * 16), [data], retention="hold")
    (examined,) = notes.Notes(moved).examined("other")
    assert isinstance(examined.error, ContextMismatchError)
    moved.store.create(layout.note_name(note_at(name), RUN, "0" * 16), [data], retention="hold")
    Catalog(moved).chain(RUN)  # the same note twice says the same


def note_at(name: str) -> datetime:
    moment = layout.parse(name).at
    assert moment is not None
    return moment


def test_a_note_whose_administrator_nobody_trusts(moved: Setup) -> None:
    stranger = distrusting(moved, LEAK, SigningKey.generate().public)
    assert isinstance(refused(stranger), UntrustedWriterError)
    believed = replace(moved, writers=distrusting(moved, datetime.now(UTC), None).writers)
    errors = {one.object.partition("/")[0]: one.error for one in broken(believed)}
    assert isinstance(errors["notes"], UntrustedWriterError)
    assert "[[administrator]]" in (errors["notes"].remedy or "")
    assert isinstance(errors["records"], RecipientMismatchError)
    assert "there are notes that are not believed" in str(errors["records"])


def test_an_administrator_is_judged_by_the_time_of_the_store(moved: Setup) -> None:
    """A stolen administrator's key backdates as any other: its notes say what they like."""
    (name,) = names(moved, layout.NOTES)
    (ops,) = moved.writers.administrators
    now = datetime.now(UTC)
    gone = ops.model_copy(update={"distrusted_after": now + timedelta(hours=1)})
    setup = replace(moved, writers=replace(moved.writers, administrators=(gone,)))
    Catalog(setup).chain(RUN)
    backdate(setup, now + timedelta(hours=2), layout.NOTES)
    assert isinstance(refused(setup), UntrustedWriterError)
    (examined,) = notes.Notes(setup).examined(RUN)
    assert (examined.name, type(examined.error)) == (name, UntrustedWriterError)


def forged_body(note: Note) -> bytes:
    document = note.document()
    document["objects"][0]["written"] = "2020-01-01T00:00:00.000Z"
    frame = sign.sign(OPS, notes.PAYLOAD_TYPE, jsonio.canonical(note.document()))
    return frame[: frame.index(b"\n") + 1] + jsonio.canonical(document)


def a_records_signature(note: Note) -> bytes:
    return sign.sign(OPS, records.PAYLOAD_TYPE, jsonio.canonical(note.document()))


def a_later_format(note: Note) -> bytes:
    return sign.sign(OPS, notes.PAYLOAD_TYPE, jsonio.canonical({**note.document(), "format": 2}))


def an_unknown_field(note: Note) -> bytes:
    return sign.sign(OPS, notes.PAYLOAD_TYPE, jsonio.canonical({**note.document(), "more": 1}))


def another_signer(note: Note) -> bytes:
    return sign.sign(SigningKey.generate(), notes.PAYLOAD_TYPE, jsonio.canonical(note.document()))


def no_json(note: Note) -> bytes:
    return sign.sign(OPS, notes.PAYLOAD_TYPE, b"words")


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        (forged_body, SignatureError),
        (a_records_signature, SignatureError),
        (a_later_format, UnsupportedSchemaError),
        (an_unknown_field, RecordError),
        (another_signer, RecordError),
        (no_json, RecordError),
    ],
)
def test_a_note_is_authentic_before_it_is_read(
    moved: Setup, frame: Callable[[Note], bytes], kind: type[ArchiverError]
) -> None:
    (name,) = names(moved, layout.NOTES)
    pieces: list[bytes] = []
    sealer = age.seal(moved.recipients, pieces.append)
    sealer.write(frame(note_in(moved)))
    sealer.close()
    overwrite(at(moved, name), b"".join(pieces))
    assert isinstance(refused(moved), UntrustedWriterError)
    (examined,) = notes.Notes(moved).examined(RUN)
    assert type(examined.error) is kind


def test_notes_that_are_garbage_or_too_large_or_too_many(
    moved: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    for random, data in (("0" * 16, b"garbage"), ("1" * 16, b"\0" * (notes.MAX_NOTE + 1))):
        moved.store.create(layout.note_name(datetime.now(UTC), RUN, random), [data], retention="hold")
    moved.store.create(f"{layout.notes_prefix(RUN)}junk", [b""], retention="hold")
    Catalog(moved).chain(RUN)  # the one good note is found all the same
    errors = {type(one.error) for one in findings(moved, "notes/")}
    assert errors == {type(None), LimitExceededError, *(kind for kind in errors if is_container(kind))}
    assert sum(is_container(kind) for kind in errors) == 1
    assert "notes/r/junk" in {one.object for one in verify(moved) if not one.ok}
    monkeypatch.setattr(notes, "MAX_NOTES", 2)
    assert isinstance(refused(moved), LimitExceededError)


def is_container(kind: type[Any]) -> bool:
    return issubclass(kind, ContainerError)


def test_a_header_that_an_insider_rewrote(saved: Setup, tmp_path: Path) -> None:
    """Who opens a run can let others in, if he can write to the store; nothing else changes."""
    (mine,) = saved.identities
    name = layout.record_name(RUN, 1)
    honest = at(saved, name).read_bytes()
    for hint, said in ((True, "opens with the keys"), (False, "1 more that its header does not name")):
        recipients = (saved.recipients[0], OTHER.recipient) if hint else (OTHER.recipient,)
        overwrite(at(saved, name), with_stanzas(honest, mine, *recipients, hint=hint))
        (finding,) = broken(saved, deep=False)
        assert (finding.object, type(finding.error)) == (name, RecipientMismatchError)
        assert said in str(finding.error)
        assert finding.error is not None
        assert finding.error.exit_code == 4
        restore(RUN, saved, into=tmp_path / f"out-{hint}")  # what is inside is what was signed
    done(saved)
    assert broken(saved, deep=False) == []


def test_a_bundle_that_an_insider_rewrote_is_found_when_it_is_opened(saved: Setup) -> None:
    (mine,) = saved.identities
    (name, _) = names(saved, layout.BUNDLES)
    data = with_stanzas(at(saved, name).read_bytes(), mine, mine.recipient, OTHER.recipient, hint=True)  # type: ignore[attr-defined]
    overwrite(at(saved, name), data)
    assert broken(saved, deep=False) == []
    (finding,) = broken(saved)
    assert (finding.object, type(finding.error)) == (name, RecipientMismatchError)


def test_a_note_explains_only_the_recipients_that_it_names(moved: Setup) -> None:
    name = layout.record_name(RUN, 2)
    data = at(moved, name).read_bytes()
    rewritten = with_stanzas(data, NEW, NEW.recipient, OTHER.recipient, hint=True)
    overwrite(at(moved, name), rewritten)
    assert [(one.object, type(one.error)) for one in broken(moved)] == [(name, RecipientMismatchError)]
    overwrite(at(moved, name), with_stanzas(data, NEW, NEW.recipient, hint=True))
    assert broken(moved) == []


def test_a_note_without_its_headers_says_nothing_against_them(saved: Setup) -> None:
    """As a rekey leaves it that dies right after the note."""
    setup = to(saved, NEW)
    before = {name: at(saved, name).read_bytes() for name in names(saved, "records/", "bundles/")}
    done(setup)
    for name, data in before.items():
        overwrite(at(saved, name), data)
    assert broken(setup) == []


def test_a_run_from_another_store_with_its_notes(moved: Setup, tmp_path: Path, note: Path) -> None:
    config = tmp_path / "other.toml"
    initialise(str(tmp_path / "other"), config, settings=load(), now=datetime.now(UTC))
    other = open_setup(load(config), need="write")
    save(other, note, "own")
    shutil.copytree(at(moved, "notes"), at(other, "notes"))
    reader = replace(other, identities=(*other.identities, NEW), writers=moved.writers)
    (examined,) = notes.Notes(reader).examined(RUN)
    assert isinstance(examined.error, ContextMismatchError)
    assert "belongs to store" in str(examined.error)


def asked(setup: Setup, **named: Any) -> list[tuple[str, str]]:
    store = Counting(setup.store)
    plan(RUN, replace(setup, store=store, **named))
    return store.calls


def test_an_ordinary_plan_asks_for_no_notes(saved: Setup) -> None:
    ordinary = asked(saved)
    assert not [call for call in ordinary if call[1].startswith(layout.NOTES)]
    timed = distrusting(saved, LEAK, OPS.public)
    # Whether each record is still the one that was listed matters where its time does.
    looks = [("head", layout.record_name(RUN, seq)) for seq in (1, 2)]
    assert [call for call in asked(timed) if tuple(call[:2]) not in looks] == ordinary
    setup = to(saved, NEW)
    done(setup)
    assert [call[0] for call in asked(setup)] == [call[0] for call in ordinary]


def test_notes_are_asked_for_once_where_the_time_matters(moved: Setup) -> None:
    calls = [call for call in asked(moved) if call[1].startswith(layout.NOTES)]
    assert calls == [("list", layout.notes_prefix(RUN)), ("read", names(moved, layout.NOTES)[0])]


def test_a_rewritten_record_is_not_trusted_from_the_day_of_its_header(saved: Setup) -> None:
    """A key that is trusted only since then must not gain the past by a rekey."""
    done(to(saved, NEW))
    key = saved.require_signing_key().public
    since = distrusting(to(saved, NEW), datetime.now(UTC) + timedelta(days=1), key, valid_from=LEAK)
    error = refused(since)
    assert isinstance(error, UntrustedWriterError)
    assert "trusted only from" in str(error)


def advised(setup: Setup, *, deep: bool = False) -> list[str]:
    return [one.note for one in verify(setup, RUN, deep=deep) if one.advice == "rekey"]


def test_other_recipients_than_the_configured_ones_are_mentioned(saved: Setup) -> None:
    assert advised(saved) == []
    other = to(saved, NEW)
    assert advised(other) == ["sealed to other recipients than the configured ones: 2 of 2 objects"]
    assert advised(other, deep=True)[0].endswith("4 of 4 objects")
    done(other)
    assert advised(other) == []
    more = to(saved, NEW, OTHER)
    done(more)
    # Who names no recipients need not know all of them; his own must be among them.
    unnamed = more.settings.keys.model_copy(update={"recipients": ()})
    reader = replace(
        only(more, OTHER),
        recipients=(OTHER.recipient,),
        settings=more.settings.model_copy(update={"keys": unnamed}),
    )
    assert advised(reader) == []
    rotated = replace(reader, recipients=(OTHER.recipient, age.generate().recipient))
    assert len(advised(rotated)) == 1
