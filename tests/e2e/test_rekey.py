"""Rewriting headers: who opens a run changes, and nothing else does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from archiver import age, layout, notes
from archiver.archive import Given, Options, Source, archive
from archiver.catalog import Catalog
from archiver.errors import (
    ArchiverError,
    ConfigError,
    ContainerError,
    DigestMismatchError,
    KeyUnavailableError,
    MissingRecordError,
    NoSuchRunError,
    RefusedError,
    UntrustedWriterError,
)
from archiver.rekey import plan, plans, rekey
from archiver.restore import restore
from archiver.setup import Setup
from archiver.store import ObjectInfo
from archiver.verify import verify
from archiver.writers import Writers, administrator_entry, entry

from .rekeying import (
    RUN,
    Counting,
    at,
    backdate,
    broken,
    done,
    keys_of,
    names,
    only,
    overwrite,
    payload_of,
    save,
    sealed_objects,
    to,
    with_stanzas,
)

NEW, OTHER = age.generate(), age.generate()


@pytest.fixture
def saved(setup: Setup, note: Path) -> Setup:
    """A store with one run of two checkpoints."""
    for _ in range(2):
        save(setup, note)
    return setup


def test_who_opens_a_run_changes_and_nothing_else(saved: Setup, tmp_path: Path) -> None:
    before = sealed_objects(saved)
    chain = Catalog(saved).chain(RUN)
    tags = {name: saved.store.head(name).retention for name in before}
    found = done(to(saved, NEW, OTHER))
    after = sealed_objects(saved)
    assert (found.rewritten, found.fitting, found.gone) == (4, 0, ())
    assert found.size == sum(map(len, before.values()))
    assert after.keys() == before.keys()
    assert all(payload_of(after[name]) == payload_of(before[name]) for name in before)
    assert {keys_of(data) for data in after.values()} == {(NEW.fingerprint, OTHER.fingerprint)}
    assert {name: saved.store.head(name).retention for name in after} == tags
    for identity in (NEW, OTHER):
        again = Catalog(only(saved, identity)).chain(RUN)
        assert [link.sha256 for link in again.links] == [link.sha256 for link in chain.links]
        restore(RUN, only(saved, identity), into=tmp_path / identity.fingerprint)
    with pytest.raises(KeyUnavailableError) as caught:
        restore(RUN, saved, into=tmp_path / "old")
    assert caught.value.fingerprints == (NEW.fingerprint, OTHER.fingerprint)


def test_it_says_in_a_signed_note_what_it_does(saved: Setup) -> None:
    setup = to(saved, NEW)
    before = {name: (keys_of(data), payload_of(data)) for name, data in sealed_objects(saved).items()}
    times = {name: saved.store.head(name).modified for name in before}
    found = done(setup, reason="the old key's holder left")
    assert list(found.notes) == names(setup, layout.NOTES)
    (examined,) = notes.Notes(setup).examined(RUN)
    assert examined.believed is not None
    note = examined.believed.note
    own = setup.require_signing_key().public
    assert (note.run, note.store, note.by, note.reason) == (
        RUN,
        setup.store_id,
        own,
        "the old key's holder left",
    )
    assert note.recipients == (NEW.fingerprint,)
    assert {one.name: one.before for one in note.objects} == {
        name: keys for name, (keys, _) in before.items()
    }
    digests = {name: age.payload_digest(BytesIO(at(setup, name).read_bytes()))[0] for name in before}
    assert {one.name: one.payload_sha256 for one in note.objects} == digests
    for one in note.objects:
        assert timedelta(0) <= times[one.name] - one.written < timedelta(milliseconds=1)
    assert setup.store.head(examined.name).retention == "hold"
    with pytest.raises(KeyUnavailableError):
        notes.decode(setup.store.read(examined.name, limit=1 << 20), saved.identities, name=examined.name)


def test_what_is_right_already_is_left_alone(saved: Setup, note: Path) -> None:
    setup = to(saved, NEW)
    done(setup)
    before = {info.name: info for info in setup.store.list()}
    again = done(setup)
    assert (again.rewritten, again.size, again.fitting, again.notes) == (0, 0, 4, ())
    assert {info.name: info for info in setup.store.list()} == before
    save(saved, note, "other")
    with pytest.raises(NoSuchRunError):
        done(setup, "none")
    assert done(setup, "other").rewritten == 2
    save(replace(saved, identities=setup.identities), note)  # a writer that has the old configuration goes on
    third = done(setup)
    assert (third.rewritten, third.fitting) == (2, 4)


def test_a_plan_changes_nothing(saved: Setup) -> None:
    before = {info.name: info for info in saved.store.list()}
    setup = to(saved, NEW)
    found = plan(RUN, setup)
    assert {target.name for target in found.targets} == set(sealed_objects(saved))
    assert found.size == sum(map(len, sealed_objects(saved).values()))
    assert {info.name: info for info in saved.store.list()} == before
    assert plan(RUN, saved).targets == ()


def test_effects_are_rewritten_too(saved: Setup) -> None:
    name = layout.effect_name(RUN, "ab" * 16)
    pieces: list[bytes] = []
    sealer = age.seal(saved.recipients_for(RUN, RUN, "effect"), pieces.append)
    sealer.write(b"what the effect was" * 10_000)
    sealer.close()
    saved.store.create(name, pieces, retention="live")
    assert done(to(saved, NEW)).rewritten == 5
    with age.unseal([NEW], BytesIO(at(saved, name).read_bytes())) as opened:
        assert opened.read() == b"what the effect was" * 10_000
    assert saved.store.head(name).retention == "live"
    overwrite(at(saved, name), at(saved, name).read_bytes()[:-1])
    with pytest.raises(ContainerError):
        done(to(saved, NEW, OTHER))


def test_a_key_behind_the_hints_back_is_taken_out(saved: Setup) -> None:
    setup = to(saved, NEW)
    done(setup)
    name = layout.record_name(RUN, 1)
    overwrite(at(setup, name), with_stanzas(at(setup, name).read_bytes(), NEW, OTHER.recipient, hint=False))
    assert done(setup).rewritten == 1
    with pytest.raises(KeyUnavailableError):
        Catalog(only(setup, OTHER)).chain(RUN)


def test_the_reason_is_redacted(saved: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    token = "ghp_" + "A1b2C3d4E5f6" * 3
    monkeypatch.setenv("DEPLOY_PASSWORD", "correct horse battery staple")
    done(to(saved, NEW), reason=f"leaked {token} and correct horse battery staple" + "x" * 1000)
    (examined,) = notes.Notes(to(saved, NEW)).examined(RUN)
    assert examined.believed is not None
    reason = examined.believed.note.reason
    assert token not in reason
    assert "horse" not in reason
    assert "[REDACTED:" in reason
    assert len(reason) <= 500


def refused(setup: Setup, kind: type[ArchiverError], match: str) -> ArchiverError:
    """The error of a rekey that is refused as a whole, and the proof that it changed nothing."""
    before = {info.name: info for info in setup.store.list()}
    with pytest.raises(kind, match=match) as caught:
        list(rekey([RUN], setup))
    assert caught.value.remedy
    assert {info.name: info for info in setup.store.list()} == before
    return caught.value


def test_nobody_locks_a_store_away_from_himself(saved: Setup) -> None:
    setup = replace(to(saved, NEW), identities=saved.identities)
    refused(setup, ConfigError, "none of your identities would open")
    with pytest.raises(ConfigError):
        plan(RUN, setup)
    refused(replace(saved, recipients=()), ConfigError, "no recipient is configured")


def test_who_is_no_administrator_is_told_before_anything_is_done(saved: Setup, tmp_path: Path) -> None:
    key = saved.require_signing_key().public
    listed = tmp_path / "writers.toml"
    listed.write_text(entry("me", key, None))
    setup = replace(to(saved, NEW), writers=Writers.load(listed, own=key))
    error = refused(setup, UntrustedWriterError, "a note of yours is signed by")
    assert administrator_entry("…", key) in (error.remedy or "")
    listed.write_text(entry("me", key, None) + administrator_entry("me", key))
    assert done(replace(setup, writers=Writers.load(listed, own=key))).rewritten == 4
    refused(replace(setup, signing_key=None), KeyUnavailableError, "no signing key")


def test_what_none_of_the_identities_opens_is_left(saved: Setup) -> None:
    before = sealed_objects(saved)
    with pytest.raises(KeyUnavailableError, match="the identity given does not open it"):
        done(only(to(saved, NEW), NEW))
    assert sealed_objects(saved) == before
    assert names(saved, layout.NOTES) == []


def test_a_run_that_does_not_hold_is_left(saved: Setup, note: Path) -> None:
    """Rewriting it would make what is wrong with it look like the administrator's work."""
    save(saved, note)
    at(saved, layout.record_name(RUN, 2)).unlink()
    before = sealed_objects(saved)
    with pytest.raises(MissingRecordError):
        done(to(saved, NEW))
    assert sealed_objects(saved) == before
    assert names(saved, layout.NOTES) == []


def test_a_bundle_that_nobody_signed_is_left(saved: Setup) -> None:
    (bundle, _) = names(saved, layout.BUNDLES)
    data = at(saved, bundle).read_bytes()
    overwrite(at(saved, bundle), data[:-1] + bytes([data[-1] ^ 1]))
    changed = at(saved, bundle).read_bytes()
    with pytest.raises(DigestMismatchError, match="does not hold what was signed; it was left as it is"):
        done(to(saved, NEW))
    assert at(saved, bundle).read_bytes() == changed
    overwrite(at(saved, bundle), data)
    done(to(saved, NEW))  # what was done before is not done again, and the rest is
    assert {keys_of(data) for data in sealed_objects(saved).values()} == {(NEW.fingerprint,)}
    assert broken(to(saved, NEW)) == []


def test_a_bundle_that_is_gone_is_passed_over(saved: Setup) -> None:
    (bundle, _) = names(saved, layout.BUNDLES)
    saved.store.delete(bundle)
    found = done(to(saved, NEW))
    assert (found.rewritten, found.gone) == (3, (bundle,))


def test_uncommitted_bundles_are_nothing(saved: Setup) -> None:
    orphan = layout.bundle_name(RUN, 3, "0" * 16)
    saved.store.create(orphan, [b"not even an age file"], retention="live")
    assert done(to(saved, NEW)).rewritten == 4


def test_of_many_runs_what_is_wrong_with_one_stays_with_it(saved: Setup, note: Path) -> None:
    save(saved, note, "a")
    save(saved, note, "z")
    overwrite(at(saved, layout.record_name("a", 1)), b"garbage")
    setup = to(saved, NEW)
    planned = {one.run: one for one in plans(Catalog(setup).runs(), setup)}
    assert {run: len(one.targets) for run, one in planned.items()} == {"a": 0, "r": 4, "z": 2}
    assert isinstance(planned["a"].error, ContainerError)
    found = {one.run: one for one in rekey(list(Catalog(setup).runs()), setup)}
    assert {run: one.rewritten for run, one in found.items()} == {"a": 0, "r": 4, "z": 2}
    assert isinstance(found["a"].error, ContainerError)
    assert {len(one.notes) for one in found.values()} == {0, 1}


def test_many_objects_take_several_notes(saved: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "_PART", 200)
    found = done(to(saved, NEW))
    assert (found.rewritten, len(found.notes)) == (4, 4)
    assert broken(to(saved, NEW)) == []
    said = [one.believed.note for one in notes.Notes(to(saved, NEW)).examined(RUN) if one.believed]
    assert sorted(one.name for note in said for one in note.objects) == sorted(sealed_objects(saved))


def test_a_writer_at_the_same_time_loses_nothing(saved: Setup, note: Path, tmp_path: Path) -> None:
    """A save between the note and the headers, and one that begins before and commits after."""
    setup = to(saved, NEW)

    class Interleave:
        """Saves a checkpoint as soon as headers are rewritten."""

        def stage(self, name: str, total: int | None = None) -> None:
            save(setup, note)

        def advance(self, count: int) -> None:
            """Only stages matter."""

    assert done(setup, progress=Interleave()).rewritten == 4

    class Rekeying:
        """Rewrites the headers while a save is under way."""

        def stage(self, name: str, total: int | None = None) -> None:
            if name == "store":
                done(to(setup, OTHER))

        def advance(self, count: int) -> None:
            """Only stages matter."""

    archive(Source(paths=(note,)), setup, options=Options(given=Given(run_id=RUN)), progress=Rekeying())
    everybody = to(setup, OTHER)
    assert broken(everybody) == []
    assert restore(RUN, everybody, into=tmp_path / "out").report.seq == 4
    assert done(everybody).rewritten == 2
    assert restore(RUN, only(everybody, OTHER), into=tmp_path / "other").report.seq == 4


def test_a_bundle_that_comes_while_others_are_listed_is_not_gone(saved: Setup, note: Path) -> None:
    class Late(Counting):
        """Another checkpoint is saved right after the bundles were listed."""

        def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
            yield from list(super().list(prefix))
            if prefix == layout.bundles_prefix(RUN):
                save(saved, note)

    setup = to(saved, NEW)
    found = plan(RUN, replace(setup, store=Late(setup.store)))
    assert (len(found.targets), found.gone) == (6, ())


def test_two_at_the_same_time_do_it_once(saved: Setup) -> None:
    found, errors = in_parallel(lambda _: done(to(saved, NEW)), 3)
    # One that reads while another rewrites may be told to run again.
    assert all(isinstance(error, RefusedError) for error in errors), errors
    assert found
    assert errors or sum(one.rewritten for one in found) == 4
    assert done(to(saved, NEW)).rewritten == 0 or errors
    assert {keys_of(data) for data in sealed_objects(saved).values()} == {(NEW.fingerprint,)}
    assert broken(to(saved, NEW)) == []


def test_two_with_different_recipients_leave_a_store_that_holds(saved: Setup, tmp_path: Path) -> None:
    everybody = replace(saved, identities=(*saved.identities, NEW, OTHER))
    setups = (to(everybody, NEW), to(everybody, OTHER))
    _, errors = in_parallel(lambda number: done(setups[number % 2]), 4)
    assert all(isinstance(error, RefusedError) for error in errors), errors
    assert broken(everybody) == []
    restore(RUN, everybody, into=tmp_path / "out")
    done(setups[0])
    assert broken(setups[0]) == []
    restore(RUN, only(everybody, NEW), into=tmp_path / "new")


def in_parallel(work: Callable[[int], Any], count: int) -> tuple[list[Any], list[ArchiverError]]:
    results: list[Any] = []
    errors: list[ArchiverError] = []
    start = threading.Barrier(count)

    def one(number: int) -> None:
        start.wait()
        try:
            results.append(work(number))
        except ArchiverError as error:
            errors.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results, errors


def test_a_rewritten_object_looks_new_and_says_so(saved: Setup) -> None:
    """The point of the note: the store's own time is that of the header."""
    began = datetime.now(UTC) - timedelta(seconds=1)
    old = datetime(2026, 1, 1, tzinfo=UTC)
    backdate(saved, old, "records/", "bundles/")
    setup = to(saved, NEW)
    done(setup)
    assert all(saved.store.head(name).modified > began for name in sealed_objects(saved))
    said = notes.Notes(setup)
    for link in Catalog(setup).chain(RUN).links:
        written = said.written(RUN, link.info.name, link.seal.payload_sha256, link.info.modified)
        assert written == old
    done(to(setup, OTHER))  # the second note keeps the first time, and those who can read only it see it
    later = only(to(setup, OTHER), OTHER)
    said = notes.Notes(later)
    for link in Catalog(later).chain(RUN).links:
        assert said.written(RUN, link.info.name, link.seal.payload_sha256, link.info.modified) == old
    assert [finding.note for finding in verify(later, RUN) if "not opened" in finding.note]
