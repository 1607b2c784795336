"""Saving while KMS is away: sealed to the others, marked, explained, and put right by a rekey."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path

import pytest
from servers.ministack import Ministack
from servers.proxy import Fault, FaultProxy

import archiver
from archiver import age, layout, records
from archiver.archive import Given, Options, Source, archive
from archiver.catalog import Catalog
from archiver.claiming import claim, end_of
from archiver.config import load
from archiver.errors import (
    ArchiverError,
    KeyUnavailableError,
    KmsDeniedError,
    KmsKeyDisabledError,
    KmsUnreachableError,
    RecipientMismatchError,
    UntrustedWriterError,
)
from archiver.model.record import EffectCounts
from archiver.recipients import of_runs
from archiver.restore import restore
from archiver.setup import Setup, keys, open_setup
from archiver.sign import SigningKey
from archiver.verify import Finding, verify

from .rekeying import (
    RUN,
    at,
    backdate,
    broken,
    distrusting,
    done,
    keys_of,
    names,
    overwrite,
    save,
    sealed_objects,
    with_stanzas,
)

AWAY = Fault("reset before", times=None)


@dataclass(frozen=True, slots=True)
class Place:
    """A store that is sealed to KMS, behind a line that can be cut, and to a break-glass identity."""

    settings: Path
    arn: str
    glass: Path
    line: FaultProxy

    @property
    def identity(self) -> age.Identity:
        (identity,) = age.read_identities(self.glass)
        return identity

    @property
    def ours(self) -> str:
        return self.identity.fingerprint

    @property
    def kms(self) -> str:
        return age.parse_arn(self.arn).fingerprint

    def opened(self, *, without_kms: bool = True, files: bool = True) -> Setup:
        """As another process opens it; `files` says whether the break-glass identity is here."""
        settings = load(self.settings)
        (recipient,) = age.read_identities(self.glass)
        held = settings.keys.model_copy(
            update={
                "recipients": (self.arn, str(recipient.recipient)),
                "identities": (self.glass,) if files else (),
                "kms_endpoint_url": self.line.endpoint,
            }
        )
        once = settings.store.model_copy(update={"attempts": 1})
        settings = settings.model_copy(update={"keys": held, "store": once})
        return replace(open_setup(settings, need="write"), without_kms=without_kms)


@pytest.fixture
def line(ministack: Ministack) -> Iterator[FaultProxy]:
    with FaultProxy(int(ministack.endpoint.rsplit(":", 1)[1])) as proxy:
        yield proxy


@pytest.fixture
def place(
    config: Path, tmp_path: Path, ministack: Ministack, kms_caller: Callable[..., None], line: FaultProxy
) -> Place:
    glass = Path(shutil.move(keys.key_folder() / keys.IDENTITY_FILE, tmp_path / "glass.txt"))
    return Place(config, ministack.make_key(), glass, line)


def found_in(place: Place, *, deep: bool) -> tuple[list[Finding], list[Finding]]:
    """What is found of records and bundles, and what is advised."""
    findings = [one for one in verify(place.opened(), RUN, deep=deep) if "audit/" not in one.object]
    objects = [one for one in findings if one.object.startswith(("records/", "bundles/")) and not one.advice]
    return objects, [one for one in findings if one.advice]


def saved_away(place: Place, note: Path, *faults: Fault) -> None:
    place.line.script(*(faults or (AWAY,)))
    save(place.opened(), note)
    place.line.script()


def test_it_is_sealed_to_the_others_and_marked(place: Place, note: Path, tmp_path: Path) -> None:
    place.line.script(AWAY)
    record = save(place.opened(), note)
    assert (record.recipients, record.missing_recipients) == ((place.ours,), (place.kms,))
    assert {keys_of(data) for data in sealed_objects(place.opened()).values()} == {(place.ours,)}
    restore(RUN, place.opened(), into=tmp_path / "out")
    place.line.script()
    # What was returned is what was signed: the next record follows it.
    assert Catalog(place.opened()).chain(RUN).head.sha256 == records.body_sha256(record)
    on = save(place.opened(), note)
    assert (on.recipients, on.missing_recipients) == ((place.kms, place.ours), ())
    assert on.previous == records.body_sha256(record)
    assert broken(place.opened()) == []


def test_kms_is_asked_once_for_all_that_is_saved_in_a_while(place: Place, note: Path) -> None:
    place.line.script(Fault("refuse", status=500, code="InternalException", times=None))
    setup = place.opened()
    for text in ("one", "two"):
        note.write_text(text)
        assert save(setup, note).missing_recipients == (place.kms,)
    assert len(place.line.requests) == 1


def test_only_where_it_is_wanted(place: Place, note: Path) -> None:
    place.line.script(AWAY)
    with pytest.raises(KmsUnreachableError) as caught:
        save(place.opened(without_kms=False), note)
    assert "--without-kms" in (caught.value.remedy or "")
    assert not list(place.opened().store.list(layout.RECORDS))


def test_a_key_that_answers_is_not_away(
    place: Place, note: Path, ministack: Ministack, kms_caller: Callable[..., None]
) -> None:
    ministack.client().disable_key(KeyId=place.arn)
    with pytest.raises(KmsKeyDisabledError):
        save(place.opened(), note)
    ministack.client().enable_key(KeyId=place.arn)
    kms_caller(ministack.make_user("kms:Decrypt", arn=place.arn))
    with pytest.raises(KmsDeniedError):
        save(place.opened(), note)
    assert not list(place.opened().store.list(layout.RECORDS))


def test_who_has_kms_alone_is_told_what_opens_it(place: Place, note: Path) -> None:
    saved_away(place, note)
    with pytest.raises(KeyUnavailableError) as caught:
        Catalog(place.opened(files=False)).chain(RUN)
    assert type(caught.value) is KeyUnavailableError
    assert caught.value.fingerprints == (place.ours,)
    assert "rekey" in (caught.value.remedy or "")


@pytest.mark.parametrize("deep", [False, True])
def test_verify_explains_it_until_a_rekey(place: Place, note: Path, tmp_path: Path, deep: bool) -> None:
    saved_away(place, note)
    objects, (advice,) = found_in(place, deep=deep)
    told = f"sealed while KMS was away, and not to {place.kms}"
    assert [(one.ok, one.state, told in one.note) for one in objects] == [(True, "ok", True)] * 2
    assert (advice.advice, advice.state) == ("rekey", "warning")
    assert f"2 of 2 objects; 2 of them were sealed while KMS was away, and not to {place.arn}" in advice.note
    (looked,) = of_runs(place.opened(), RUN)
    assert "sealed while KMS was away" in looked.remarks
    assert [head.missing for head in Catalog(place.opened()).heads()] == [(place.kms,)]

    assert done(place.opened()).rewritten == 2
    objects, advised = found_in(place, deep=deep)
    assert [(one.ok, "away" in one.note, "rekeyed at" in one.note) for one in objects] == [
        (True, False, True)
    ] * 2
    assert advised == []
    (looked,) = of_runs(place.opened(), RUN)
    assert looked.remarks == ()
    assert [head.missing for head in Catalog(place.opened()).heads()] == [()]
    restore(RUN, place.opened(files=False), into=tmp_path / "by-kms")
    assert done(place.opened()).rewritten == 0


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("first", ["bundle", "record"])
def test_kms_goes_or_comes_while_a_checkpoint_is_saved(
    place: Place, note: Path, first: str, deep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One object is sealed to KMS and the other is not: the record is marked, and neither is damage."""
    monkeypatch.setattr(age.data_keys, "SECONDS_AWAY", 0.0)
    monkeypatch.setattr(age.kms_client, "PAUSE_SECONDS", 0.0)
    fault = Fault("reset before", skip=1, times=None) if first == "bundle" else Fault("reset before")
    saved_away(place, note, fault)
    objects, (advice,) = found_in(place, deep=deep)
    lacking = {one.object.split("/")[0] for one in objects if "KMS was away" in one.note}
    assert lacking == ({"records"} if first == "bundle" else {"bundles"})
    assert all(one.ok for one in objects)
    assert "1 of 2 objects; 1 of them" in advice.note
    assert done(place.opened()).rewritten == 1
    objects, advised = found_in(place, deep=deep)
    assert advised == []
    assert not [one for one in objects if not one.ok or "away" in one.note]


def test_the_time_of_writing_outlives_a_rekey(place: Place, note: Path) -> None:
    """The record gets the very recipients that its bundle had: only the note says that it is older."""
    old, future = datetime(2026, 1, 1, tzinfo=UTC), datetime(2090, 1, 1, tzinfo=UTC)
    saved_away(place, note, Fault("reset before", skip=1, times=None))
    backdate(place.opened(), old, "records/", "bundles/")
    ops = SigningKey.generate()
    both = replace(distrusting(place.opened(), future, ops.public), signing_key=ops)
    assert done(both).rewritten == 1
    assert Catalog(both).chain(RUN).head.seal.recipients == (place.kms, place.ours)
    later = distrusting(place.opened(), future, ops.public, valid_from=old + timedelta(days=1))
    with pytest.raises(UntrustedWriterError):  # as it was before it looked new
        Catalog(later).chain(RUN)


def test_a_bundle_that_has_expired_is_known_by_it_too(place: Place, note: Path) -> None:
    old = datetime(2026, 1, 1, tzinfo=UTC)
    given = Options(given=Given(run_id=RUN))
    for _ in range(2):
        place.line.script(Fault("reset before", skip=1, times=None))
        archive(Source(paths=(note,)), place.opened(), options=given, now=lambda: old)
        place.line.script()
    setup = place.opened()
    backdate(setup, old, "records/", "bundles/")
    assert done(setup).rewritten == 2
    first, _ = names(setup, layout.BUNDLES)
    at(setup, first).unlink()
    (gone,) = [one for one in verify(setup, RUN) if one.object == first]
    assert gone.state == "expired"


@pytest.mark.parametrize("how", ["added", "taken"])
def test_another_change_of_a_header_is_still_damage(place: Place, note: Path, how: str) -> None:
    saved_away(place, note)
    setup = place.opened()
    stranger, (bundle,) = age.generate(), names(setup, layout.BUNDLES)
    others = (place.identity.recipient, stranger.recipient) if how == "added" else (stranger.recipient,)  # type: ignore[attr-defined]
    overwrite(
        at(setup, bundle), with_stanzas(at(setup, bundle).read_bytes(), place.identity, *others, hint=True)
    )
    reader = replace(setup, identities=(*setup.identities, stranger))
    for deep in (False, True):
        (finding,) = broken(reader, deep=deep)
        assert type(finding.error) is RecipientMismatchError


def test_a_bundle_that_does_not_open_here_is_said(
    place: Place, note: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(age.data_keys, "SECONDS_AWAY", 0.0)
    monkeypatch.setattr(age.kms_client, "PAUSE_SECONDS", 0.0)
    saved_away(place, note, Fault("reset before"))
    findings = list(verify(place.opened(files=False), RUN))
    (bundle,) = [one for one in findings if one.object.startswith("bundles/")]
    assert (bundle.ok, bundle.state) == (True, "warning")
    assert "does not open here" in bundle.note
    assert place.ours in bundle.note


def test_a_claim_is_marked_of_its_own(place: Place, note: Path) -> None:
    """It is made of a record that may be marked, and sealed at another time."""
    saved_away(place, note)

    def claimed() -> tuple[tuple[str, ...], tuple[str, ...]]:
        setup = place.opened()
        catalog = Catalog(setup)
        chain = catalog.chain(RUN)
        head = chain.head.record
        made, _ = claim(head, end_of(chain, head, catalog), setup, effects=EffectCounts())
        return made.recipients, made.missing_recipients

    assert claimed() == ((place.kms, place.ours), ())
    place.line.script(AWAY)
    assert claimed() == ((place.ours,), (place.kms,))
    place.line.script()
    assert broken(place.opened()) == []


def test_what_was_not_marked_reads_as_before(place: Place, note: Path) -> None:
    record = save(place.opened(), note)
    assert b"missing_recipients" not in records.jsonio.canonical(record.document())
    assert b"missing_recipients" in records.jsonio.canonical(
        record.model_copy(update={"missing_recipients": (place.kms,)}).document()
    )


def test_other_objects_of_the_run_are_reached_likewise(place: Place) -> None:
    """Whatever is sealed asks the same function: what is missing comes with whom to seal to."""
    place.line.script(AWAY)
    setup = place.opened()
    reached = setup.seal_to(RUN, "t", "effect")
    assert (reached.fingerprints, reached.missing) == ((place.ours,), (place.kms,))
    pieces: list[bytes] = []
    age.seal(reached.recipients, pieces.append).close()
    with age.unseal([place.identity], BytesIO(b"".join(pieces))) as opened:
        assert opened.read() == b""
    with pytest.raises(ArchiverError):
        replace(setup, recipients=setup.recipients[:1]).seal_to(RUN, "t", "effect")


EXPIRED = Fault(
    "refuse",
    times=None,
    status=400,
    body=b'{"__type":"ExpiredTokenException","message":"The security token is expired"}',
)


@pytest.mark.parametrize("fault", [AWAY, EXPIRED], ids=["away", "expired"])
def test_a_loop_goes_on_without_kms_from_its_beginning_to_its_end(
    place: Place, tmp_path: Path, fault: Fault
) -> None:
    """Checkpoints, claim, intent and outcome: all of it in the store, and nothing of it asks for more."""
    place.line.script(fault)
    for text in ("first", "second"):  # the second resumes the first, which has not finished
        with archiver.run(RUN, setup=place.opened(without_kms=False)) as run:
            run.checkpoint([{"role": "user", "content": text}], phase="built", milestone="build")
            with run.effect("deploy", key=text) as effect:
                effect.confirm("done")
    place.line.script()
    setup = place.opened()
    links = Catalog(setup).chain(RUN).links
    assert {link.record.kind for link in links} == {"checkpoint", "claim"}
    assert {link.record.missing_recipients for link in links} == {(place.kms,)}
    assert len(names(setup, layout.EFFECTS)) == 4
    assert {keys_of(data) for data in sealed_objects(setup).values()} == {(place.ours,)}
    assert broken(setup) == []
    assert done(setup).rewritten == len(sealed_objects(setup))
    alone = restore(RUN, place.opened(files=False), into=tmp_path / "by-kms")
    assert [effect.status for effect in alone.state.effects] == ["confirmed"] * 2
