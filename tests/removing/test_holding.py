"""Hold and release: every version, bases first, again after an interruption, whatever the clock says."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from archiver import holding, layout, notes, noting
from archiver.catalog import Catalog
from archiver.cli import program
from archiver.errors import NoSuchRunError, RunErasedError, RunHeldError, UntrustedWriterError
from archiver.notes import Notes
from archiver.removing import erase, look, remove
from archiver.setup import Setup
from archiver.verify import verify
from removing.doing import RUN, everything, put_effect, save, tags, there, with_stranger

NOW = datetime.now(UTC)


def test_a_hold_covers_all_of_the_run_and_release_gives_the_computed_classes_back(
    setup: Setup, note: Path
) -> None:
    everything(setup, note)
    before = tags(setup)
    done = holding.hold(RUN, setup, reason="audit")
    assert set(tags(setup).values()) == {"hold"}
    # The audit object of the hold itself is one more.
    assert done.changed == done.versions == len(before) + 1
    assert "on hold since" in done.note
    assert done.note.endswith(": audit")
    released = holding.release(RUN, setup, reason="over")
    assert released.changed == done.versions
    after = tags(setup)
    assert {name: after[name] for name in before} == {
        (name, version): "success" if name.startswith("bundles/") else "record" for name, version in before
    }


def test_again_does_nothing_new_and_covers_what_was_saved_since(setup: Setup, note: Path) -> None:
    save(setup, note, outcome="running")
    holding.hold(RUN, setup, reason="one")
    save(setup, note, outcome="running")
    holding.hold(RUN, setup, reason="two")
    assert set(tags(setup).values()) == {"hold"}
    signed = [one.note for one in Notes(setup).of(RUN)]
    assert [(one.kind, one.reason) for one in signed] == [("hold", "one")]


@pytest.mark.parametrize("act", [erase, remove])
def test_a_removal_that_saw_no_hold_is_said(
    act: Callable[..., object], setup: Setup, note: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(setup, note)
    write_down = holding.audit.note

    def overtaken(*given: Any, **named: Any) -> tuple[str, ...]:
        with monkeypatch.context() as plain:
            plain.setattr(holding.audit, "note", write_down)
            act(RUN, setup)  # through, before the note of the hold is there
            return write_down(*given, **named)

    monkeypatch.setattr(holding.audit, "note", overtaken)
    if act is remove:
        assert any("removed meanwhile" in one for one in holding.hold(RUN, setup, reason="x").warnings)
        return
    with pytest.raises(RunErasedError) as caught:
        holding.hold(RUN, setup, reason="x")
    assert f"archiver verify {RUN}" in str(caught.value.remedy)


def test_a_dry_run_changes_nothing(setup: Setup, note: Path) -> None:
    save(setup, note)
    before, names = tags(setup), there(setup)
    done = holding.hold(RUN, setup, reason="x", dry_run=True)
    assert (done.changed, done.versions) == (2, 2)
    assert (tags(setup), there(setup)) == (before, names)


@pytest.mark.parametrize("days", [-4000, 0, 4000])
def test_a_release_ends_a_hold_whatever_the_clock_says(setup: Setup, note: Path, days: int) -> None:
    save(setup, note)
    holding.hold(RUN, setup, reason="x", now=NOW)
    holding.release(RUN, setup, now=NOW + timedelta(days=days))
    assert Notes(setup).standing(RUN).held is None
    holding.hold(RUN, setup, reason="y", now=NOW + timedelta(days=-days))
    assert Notes(setup).standing(RUN).held is not None
    assert set(tags(setup).values()) == {"hold"}


@pytest.mark.parametrize("ahead", [-60, 60])
@pytest.mark.parametrize("first", ["hold", "release"])
def test_a_hold_and_a_release_at_once_are_a_hold(
    setup: Setup, note: Path, monkeypatch: pytest.MonkeyPatch, first: str, ahead: int
) -> None:
    """`first` has looked when the other one does all of it, by a clock that is `ahead` seconds."""
    save(setup, note)
    effect = layout.effect_name(RUN, "ab" * 16)
    setup.store.create(effect, [b"sealed"], retention="record")
    setup.store.retag(effect, "hold")  # there is something to be released
    now, inner = datetime.now(UTC), holding._put
    acts = {
        "hold": lambda at: holding.hold(RUN, setup, reason="a court", now=at),
        "release": lambda at: holding.release(RUN, setup, now=at),
    }
    (other,) = acts.keys() - {first}

    def overtaken(call: holding._Call, *given: str) -> None:
        monkeypatch.undo()
        encoded = notes.encode

        def late(*named: object) -> bytes:
            monkeypatch.undo()
            acts[other](now)
            return encoded(*named)  # type: ignore[arg-type]

        monkeypatch.setattr(notes, "encode", late)
        inner(call, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(holding, "_put", overtaken)
    try:
        acts[first](now + timedelta(seconds=ahead))
    except RunHeldError:
        assert first == "release"
    held = Notes(setup).newest(RUN, "hold")
    assert Notes(setup).standing(RUN).held is not None
    assert held is not None
    assert held.note.reason == "a court"


def test_two_notes_of_one_millisecond_are_told_apart(setup: Setup, note: Path) -> None:
    save(setup, note)
    at = NOW.replace(microsecond=123_100)
    held = noting.put_note(setup, RUN, RUN, "hold", last=1, now=at)
    ended = noting.put_note(setup, RUN, RUN, "release", last=1, now=at.replace(microsecond=123_900))
    first, second = Notes(setup).of(RUN)
    assert (first.note.kind, second.note.kind) == ("release", "hold")
    assert first.note.at > second.note.at
    assert ended.at > held.at
    assert Notes(setup).standing(RUN).held is None


def test_a_note_of_somebody_who_is_not_trusted_changes_nothing_and_is_said(setup: Setup, note: Path) -> None:
    save(setup, note)
    stranger = with_stranger(setup)
    noting.put_note(stranger, RUN, RUN, "hold", last=1)
    assert Notes(setup).standing(RUN).held is None
    found = look(RUN, setup, "remove", NOW)
    assert "changes nothing" in found.warnings[0]
    assert "not a trusted administrator" in found.warnings[0]
    with pytest.raises(UntrustedWriterError):
        holding.hold(RUN, with_writers_of(setup, stranger), reason="x")
    (finding,) = [one for one in verify(setup, RUN) if one.object.startswith("notes/")]
    assert isinstance(finding.error, UntrustedWriterError)


def with_writers_of(setup: Setup, stranger: Setup) -> Setup:
    return replace(setup, signing_key=stranger.signing_key)


def test_what_is_on_hold_is_neither_removed_nor_erased(setup: Setup, note: Path) -> None:
    save(setup, note)
    holding.hold(RUN, setup, reason="a court")
    before = there(setup)
    for act in (remove, erase):
        with pytest.raises(RunHeldError, match="a court"):
            act(RUN, setup)
    assert there(setup) == before


def test_a_tag_of_somebody_else_holds_as_well(setup: Setup, note: Path) -> None:
    record = save(setup, note)
    put_effect(setup, RUN)
    setup.store.retag(layout.effect_name(RUN, "ab" * 16), "hold")
    for act in (remove, erase):
        with pytest.raises(RunHeldError, match="has the tag `hold`"):
            act(RUN, setup)
    assert record.bundle is not None
    setup.store.head(record.bundle.name)
    done = holding.release(RUN, setup)
    assert done.changed == 1
    assert "hold" not in tags(setup).values()


def test_only_a_run_that_is_there_is_held(setup: Setup) -> None:
    with pytest.raises(NoSuchRunError):
        holding.hold("nobody", setup, reason="x")
    assert there(setup, "nobody") == []


def test_verify_and_show_say_it_in_plain_words(
    setup: Setup, note: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(setup, note)
    flag = ["--config", str(config)]
    assert program.run("archiver", ["hold", RUN, *flag, "--reason", "a court", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["objects"], document["changed"], document["dry_run"]) == (3, 3, False)
    assert program.run("archiver", ["verify", RUN, *flag]) == 0
    said = capsys.readouterr().out
    assert "signed: on hold since" in said
    assert "signed a rekey" not in said
    assert program.run("archiver", ["show", RUN, *flag]) == 0
    assert "on hold since" in capsys.readouterr().out
    assert program.run("archiver", ["release", RUN, *flag]) == 0
    assert capsys.readouterr().out.split("\t")[3] == "3"
    assert program.run("archiver", ["hold", RUN, *flag, "--reason", " "]) == 2
    assert Catalog(setup).notes.standing(RUN).held is None


def test_a_rekey_takes_none_of_these_notes_for_one_of_its_own(setup: Setup, note: Path) -> None:
    everything(setup, note)
    holding.hold(RUN, setup, reason="x")
    findings = [one for one in verify(setup, RUN) if one.object.startswith("notes/")]
    said = sorted(one.note for one in findings if one.ok)
    assert sum("signed a rekey of 4 objects: new keys" in one for one in said) == 1
    assert sum("on hold since" in one for one in said) == 1


Away = Callable[[str, Setup], object]


@pytest.mark.parametrize("away", [remove, erase])
def test_a_hold_that_was_signed_before_the_note_of_a_removal_stops_it(
    setup: Setup, note: Path, away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tags are not there yet: the second look, after the own note, sees what the first could not."""
    save(setup, note)
    before = there(setup, RUN, "bundle", "record")
    put = noting.put_note

    def late(*who: Any, **words: Any) -> Any:
        put(*who[:3], "hold", reason="a court", last=1)
        return put(*who, **words)

    monkeypatch.setattr(noting, "put_note", late)
    with pytest.raises(RunHeldError, match="a court"):
        away(RUN, setup)
    assert there(setup, RUN, "bundle", "record") == before


@pytest.mark.parametrize("away", [remove, erase])
def test_what_gets_the_tag_of_a_hold_while_others_go_stays(
    setup: Setup, note: Path, away: Callable[..., object]
) -> None:
    for outcome in ("running", "running", "succeeded"):
        save(setup, note, outcome=outcome)
    bundles = there(setup, RUN, "bundle")
    tagged = []

    def tick() -> None:
        if not tagged:
            tagged.extend(name for name in bundles if name in there(setup, RUN, "bundle"))
            for name in tagged:
                setup.store.retag(name, "hold")

    with pytest.raises(RunHeldError):
        away(RUN, setup, tick=tick)
    assert tagged == bundles[:2]  # the newest goes first: nothing outlives what it needs
    assert there(setup, RUN, "bundle") == tagged
    assert len(there(setup, RUN, "record")) == 3
