"""Where a bucket keeps versions, the first version of a record is the record."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from archiver import age, layout, restore
from archiver.age import X25519Identity
from archiver.archive import Given, Options, Source, archive
from archiver.aws.door import client
from archiver.aws.options import AwsOptions
from archiver.catalog import MAX_WARNINGS, Catalog
from archiver.config import load
from archiver.errors import (
    BundleMissingError,
    ContextMismatchError,
    MissingRecordError,
    NoSuchRunError,
    RolledBackError,
    StoreDeniedError,
)
from archiver.export import export
from archiver.history import MAX_VERSIONS
from archiver.model import Record
from archiver.rekey import rekey
from archiver.setup import Setup, fencing, initialise, open_setup
from archiver.store import ObjectVersion, Versioned
from archiver.verify import Finding, verify
from archiver.witnessed import Witnessed
from e2e.rekeying import Counting, only, to

REGION = "us-east-1"
RUN = "r"


@dataclass
class Place:
    """A store in a bucket of an imitation, and what others do there who may write to it."""

    raw: Any
    setup: Setup
    config: Path
    note: Path

    def key(self, name: str) -> dict[str, str]:
        return {"Bucket": "bucket", "Key": f"p/{name}"}

    def get(self, name: str) -> bytes:
        body: bytes = self.raw.get_object(**self.key(name))["Body"].read()
        return body

    def put(self, name: str, data: bytes) -> str:
        return str(self.raw.put_object(**self.key(name), Body=data).get("VersionId"))

    def hide(self, name: str) -> str:
        return str(self.raw.delete_object(**self.key(name)).get("VersionId"))

    def remove_for_good(self, name: str) -> None:
        """All versions of it; a marker stays."""
        self.hide(name)
        for version in self.versions(name):
            if not version.deleted:
                self.raw.delete_object(**self.key(name), VersionId=version.version)

    def versions(self, name: str) -> list[ObjectVersion]:
        assert isinstance(self.setup.store, Versioned)
        return list(self.setup.store.versions(name))

    def save(self, run: str = RUN, note: str = "") -> Record:
        options = Options(given=Given(run_id=run, note=note))
        return archive(Source(paths=(self.note,)), self.setup, options=options).record


@pytest.fixture
def make(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, note: Path
) -> Iterator[Callable[[bool], Place]]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "A")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "S")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("ARCHIVER_STORE__REGION", REGION)
    monkeypatch.setattr(fencing, "RACERS", 1)  # the imitation lets several creators of one moment win

    def made(versioned: bool) -> Place:
        raw = client("s3", AwsOptions(region=REGION))
        raw.create_bucket(Bucket="bucket")
        if versioned:
            raw.put_bucket_versioning(Bucket="bucket", VersioningConfiguration={"Status": "Enabled"})
        config = tmp_path / "archiver.toml"
        initialise("s3://bucket/p", config, settings=load(), now=datetime.now(UTC))
        return Place(raw, open_setup(load(config), need="write"), config, note)

    with mock_aws():
        yield made


@pytest.fixture
def place(make: Callable[[bool], Place]) -> Place:
    """With versions, and a run of three checkpoints."""
    made = make(True)
    for note in ("one", "two", "three"):
        made.save(note=note)
    return made


def record(seq: int, run: str = RUN) -> str:
    return layout.record_name(run, seq)


def notes(setup: Setup, run: str = RUN) -> list[str]:
    return [link.record.note for link in Catalog(setup).chain(run).links]


def warned(setup: Setup, run: str = RUN) -> list[Finding]:
    return [finding for finding in verify(setup, run) if finding.state == "warning"]


def test_a_run_that_nobody_touched_has_nothing_to_be_said(place: Place) -> None:
    chain = Catalog(place.setup).chain(RUN)
    assert (chain.warnings, [link.remarks for link in chain.links]) == ((), [(), (), ()])
    assert not warned(place.setup)
    assert all(link.written == link.info.modified for link in chain.links)


def test_an_overwritten_record_is_not_believed(place: Place) -> None:
    before = notes(place.setup)
    strange = place.put(record(2), b"garbage")
    assert notes(place.setup) == before
    (warning,) = Catalog(place.setup).chain(RUN).warnings
    assert record(2) in warning
    assert strange in warning
    (finding,) = warned(place.setup)
    assert (finding.object, finding.seq, finding.ok) == (record(2), 2, True)
    assert "not believed" in finding.note
    assert all(finding.ok for finding in verify(place.setup, RUN, deep=True))
    assert warning in restore.plan(RUN, place.setup).warnings


@pytest.mark.parametrize("how", ["other keys", "no proof"])
def test_a_header_that_opens_nothing_hides_no_record(place: Place, how: str, tmp_path: Path) -> None:
    """Whoever may write can put any header before the payload that is there; what it hides is read."""
    good = place.get(record(2))
    header = age.read_header(BytesIO(good)).marshal()
    if how == "other keys":
        made: list[bytes] = []
        sealer = age.seal([X25519Identity.generate().recipient], made.append, digest=False)
        sealer.close()
        other = age.read_header(BytesIO(b"".join(made))).marshal()
    else:
        other = header[:-2] + (b"A" if header[-2:-1] != b"A" else b"B") + b"\n"
        assert len(age.read_header(BytesIO(other + good[len(header) :])).marshal()) == len(header)
    strange = place.put(record(2), other + good[len(header) :])
    assert notes(place.setup) == ["one", "two", "three"]
    (warning,) = Catalog(place.setup).chain(RUN).warnings
    assert f"another header in version {strange}, and no identity here opens it" in warning
    assert all(finding.ok for finding in verify(place.setup, RUN))
    export(RUN, place.setup, into=tmp_path / "export")
    assert (tmp_path / "export" / "objects" / record(2)).read_bytes() == good


def test_an_authentic_record_over_another_is_not_believed_either(place: Place) -> None:
    """One that the writer signed itself, for the same number: the first is the record all the same."""
    place.save("other")
    place.put(record(3), place.get(record(2)))
    place.put(record(1, "other"), place.get(record(1)))
    assert notes(place.setup) == ["one", "two", "three"]
    assert notes(place.setup, "other") == [""]


def test_a_first_version_that_is_not_the_record_is_damage_whatever_follows(place: Place) -> None:
    good = place.get(record(3))
    for version in place.versions(record(3)):
        place.raw.delete_object(**place.key(record(3)), VersionId=version.version)
    place.put(record(3), place.get(record(2)))
    place.put(record(3), good)
    with pytest.raises(ContextMismatchError):
        Catalog(place.setup).chain(RUN)


@pytest.mark.parametrize("seq", [1, 2, 3])
def test_a_record_hidden_by_a_delete_marker_is_there(place: Place, seq: int) -> None:
    marker = place.hide(record(seq))
    assert notes(place.setup) == ["one", "two", "three"]
    (warning,) = Catalog(place.setup).chain(RUN).warnings
    assert marker in warning
    assert "hidden" in warning
    assert [finding.object for finding in warned(place.setup)] == [record(seq)]
    assert Catalog(place.setup).numbers(RUN) == [1, 2, 3]


def test_a_hidden_end_is_not_written_anew(place: Place) -> None:
    """A conditional put succeeds where a marker lies; the number is taken all the same."""
    place.hide(record(3))
    assert place.save(note="four").seq == 4
    assert notes(place.setup) == ["one", "two", "three", "four"]
    assert [version.deleted for version in place.versions(record(3))] == [True, False]


def test_a_run_that_is_hidden_altogether_goes_on(place: Place) -> None:
    for seq in (1, 2, 3):
        place.hide(record(seq))
    assert notes(place.setup) == ["one", "two", "three"]
    assert len(Catalog(place.setup).chain(RUN).warnings) == 3
    assert place.save(note="four").seq == 4


def test_a_list_goes_by_what_is_there_unless_more_was_seen(place: Place) -> None:
    """Then it looks for the versions: what is hidden or overwritten is no roll-back."""
    place.save("other")

    def listed() -> list[tuple[str, int, str | None]]:
        witnessed = Witnessed(place.setup, datetime.now(UTC))
        heads = list(witnessed.heads(Catalog(place.setup).heads()))
        heads += witnessed.vanished({head.run for head in heads})
        return sorted((head.run, head.seq, head.error and str(head.error)) for head in heads)

    whole = [("other", 1, None), (RUN, 3, None)]
    assert listed() == whole
    place.put(record(3), place.get(record(2)))
    assert listed() == whole
    place.hide(record(3))
    assert listed() == whole
    for seq in (1, 2):
        place.hide(record(seq))
    assert listed() == whole
    found = [finding for finding in verify(place.setup) if finding.run == RUN]
    assert all(finding.ok for finding in found)
    assert [finding.seq for finding in found if finding.object.startswith("bundles/")] == [1, 2, 3]
    place.remove_for_good(record(3))
    ((_, seq, error),) = [one for one in listed() if one[0] == RUN]
    assert seq == 2
    assert "was rolled back or its end removed" in str(error)


def test_an_overwritten_and_hidden_record_is_the_first(place: Place) -> None:
    place.put(record(2), b"garbage")
    place.put(record(2), place.get(record(1)))
    place.hide(record(2))
    assert notes(place.setup) == ["one", "two", "three"]
    first, second = Catalog(place.setup).chain(RUN).links[1].remarks
    assert "hidden" in first
    assert "and 1 more" in second


def test_a_record_that_was_removed_for_good_is_missing(place: Place) -> None:
    place.remove_for_good(record(2))
    with pytest.raises(MissingRecordError, match="record 2 is missing"):
        Catalog(place.setup).chain(RUN)
    beginning = Catalog(place.setup).beginning(RUN)
    assert any(record(2) in remark and "removed for good" in remark for remark in beginning.remarks)


def test_a_marker_where_nothing_was_takes_no_number(place: Place) -> None:
    """Whoever may delete can leave one anywhere; it must not keep the run from going on."""
    for name in (record(99_999_999), record(1, "never")):
        place.put(name, b"")
        place.remove_for_good(name)
    assert Catalog(place.setup).chain(RUN).newest == 3
    assert any(record(99_999_999) in warning for warning in Catalog(place.setup).chain(RUN).warnings)
    assert place.save(note="four").seq == 4
    with pytest.raises(NoSuchRunError):
        Catalog(place.setup).chain("never")


def test_a_rekeyed_record_is_read_as_its_newest_header_says(place: Place) -> None:
    other = X25519Identity.generate()
    first = Catalog(place.setup).chain(RUN).links[0].written
    (done,) = rekey([RUN], to(place.setup, other))
    assert done.error is None
    assert len(place.versions(record(1))) == 2
    alone = only(to(place.setup, other), other)
    chain = Catalog(alone).chain(RUN)
    assert [link.record.note for link in chain.links] == ["one", "two", "three"]
    assert chain.warnings == ()
    assert chain.links[0].written == first
    place.put(record(1), b"garbage over what was rekeyed")
    place.hide(record(2))
    chain = Catalog(alone).chain(RUN)
    assert [link.record.note for link in chain.links] == ["one", "two", "three"]
    assert len(chain.warnings) == 2


def test_a_first_version_that_was_rekeyed_counts_as_written_then(place: Place) -> None:
    """Also where the key is distrusted since: judged is the time of the first version."""
    entry = Catalog(place.setup).chain(RUN).links[0]
    other = X25519Identity.generate()
    list(rekey([RUN], to(place.setup, other)))
    versions = [version for version in place.versions(record(1)) if not version.deleted]
    later = Catalog(to(place.setup, other)).chain(RUN).links[0]
    assert later.written == entry.written == versions[-1].modified
    assert later.info.etag == versions[0].etag


def test_very_many_versions_end(place: Place) -> None:
    for number in range(MAX_VERSIONS + 3):
        place.put(record(2), b"garbage %d" % number)
    assert notes(place.setup) == ["one", "two", "three"]


def test_many_warnings_are_a_few_and_a_way_to_the_rest(make: Callable[[bool], Place]) -> None:
    made = make(True)
    for _ in range(MAX_WARNINGS + 2):
        made.save("-r; x")
    for seq in range(1, MAX_WARNINGS + 3):
        made.put(record(seq, "-r; x"), b"x")
    warnings = Catalog(made.setup).chain("-r; x").warnings
    assert len(warnings) == MAX_WARNINGS + 1
    assert warnings[-1] == "2 more: `archiver verify -- '-r; x'` lists them"
    assert len(warned(made.setup, "-r; x")) == MAX_WARNINGS + 2


def test_a_bucket_without_versions_is_as_ever(make: Callable[[bool], Place]) -> None:
    made = make(False)
    made.save(note="one")
    made.save(note="two")
    assert (notes(made.setup), Catalog(made.setup).chain(RUN).warnings) == (["one", "two"], ())
    made.hide(record(1))
    with pytest.raises(MissingRecordError, match="record 1 is missing"):
        Catalog(made.setup).chain(RUN)


def test_it_takes_no_request_more(place: Place, make: Callable[[bool], Place]) -> None:
    counting = Counting(place.setup.store)
    Catalog(replace(place.setup, store=counting)).chain(RUN)
    assert sorted(verb for verb, _ in counting.calls) == ["read", "read", "read", "versions"]


class Denying:
    """A store whose versions this identity may not list, or not read."""

    def __init__(self, store: Any, *verbs: str) -> None:
        self._store = store
        self._verbs = verbs
        self.asked = 0

    def __getattr__(self, verb: str) -> Any:
        if verb in self._verbs:

            def denied(*_: Any, **__: Any) -> Any:
                self.asked += 1
                raise StoreDeniedError(f"{verb} is not allowed")

            return denied
        return getattr(self._store, verb)


def test_where_versions_may_not_be_listed_what_is_there_counts_and_that_is_said(place: Place) -> None:
    store = Denying(place.setup.store, "versions")
    catalog = Catalog(replace(place.setup, store=store))
    chain = catalog.chain(RUN)
    assert [link.record.note for link in chain.links] == ["one", "two", "three"]
    (warning,) = chain.warnings
    assert "s3:ListBucketVersions" in warning
    assert catalog.chain(RUN).warnings == chain.warnings
    assert store.asked == 1, "it is asked once"
    place.hide(record(2))
    with pytest.raises(MissingRecordError):
        catalog.chain(RUN)
    assert warning in [finding.note for finding in warned(replace(place.setup, store=store))]


def test_a_hidden_end_under_a_writer_that_may_not_list_versions(place: Place) -> None:
    """Its own witness keeps it from using the number again; without one it does, and readers find it."""
    blind = replace(place.setup, store=Denying(place.setup.store, "versions"))
    options = Options(given=Given(run_id=RUN))
    place.hide(record(3))
    with pytest.raises(RolledBackError):
        archive(Source(paths=(place.note,)), blind, options=options)
    blind = replace(blind, witness=None)
    for seq in (3, 4):
        assert archive(Source(paths=(place.note,)), blind, options=options).record.seq == seq
    beginning = Catalog(place.setup).beginning(RUN)
    assert [link.record.note for link in beginning.links] == ["one", "two", "three"]
    assert "does not follow" in str(beginning.error)
    assert restore.plan(RUN, place.setup, at=3).seq == 3


def test_where_versions_may_not_be_read_the_newest_counts_and_that_is_said(place: Place) -> None:
    setup = replace(place.setup, store=Denying(place.setup.store, "read_version"))
    place.put(record(2), place.get(record(2)))
    chain = Catalog(setup).chain(RUN)
    assert [link.record.note for link in chain.links] == ["one", "two", "three"]
    assert "s3:GetObjectVersion" in chain.warnings[0]
    place.hide(record(2))
    with pytest.raises(StoreDeniedError):
        Catalog(setup).chain(RUN)


def test_a_hidden_bundle_is_gone_and_its_version_is_named(place: Place) -> None:
    bundle = place.save(note="four").bundle
    assert bundle is not None
    (body,) = place.versions(bundle.name)
    marker = place.hide(bundle.name)
    with pytest.raises(BundleMissingError) as caught:
        restore.plan(RUN, place.setup)
    assert body.version in str(caught.value.remedy)
    assert marker in str(caught.value.remedy)
    assert "checkpoint 3 is the newest that is still whole" in str(caught.value.remedy)
    place.raw.delete_object(**place.key(bundle.name), VersionId=marker)
    assert restore.plan(RUN, place.setup).seq == 4


def test_a_clock_that_is_ahead_makes_nothing_expire_where_the_store_has_its_own(place: Place) -> None:
    """Neither a bundle nor what was seen of a run: there the server says what time it is."""
    ahead = datetime(2090, 1, 1, tzinfo=UTC)
    bundle = place.save(note="four").bundle
    assert bundle is not None
    place.hide(bundle.name)
    with pytest.raises(BundleMissingError, match="its class keeps it until"):
        restore.plan(RUN, place.setup, now=ahead)
    assert [finding.object for finding in verify(place.setup, now=ahead) if not finding.ok] == [bundle.name]
    for seq in (1, 2, 3, 4):
        place.remove_for_good(record(seq))
    with pytest.raises(RolledBackError):
        restore.plan(RUN, place.setup, now=ahead)
    found = [finding.error for finding in verify(place.setup, now=ahead) if finding.run == RUN]
    assert any(isinstance(error, RolledBackError) for error in found)


def test_an_interior_gap_is_an_error_on_s3(place: Place, make: Callable[[bool], Place]) -> None:
    (version,) = place.versions(record(2))
    place.raw.delete_object(**place.key(record(2)), VersionId=version.version)
    with pytest.raises(MissingRecordError, match="record 2 is missing before the newest, 3"):
        restore.plan(RUN, place.setup)
    found = [finding for finding in verify(place.setup, RUN) if not finding.ok]
    assert [type(finding.error) for finding in found] == [MissingRecordError]


def test_the_command_says_it(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    from archiver.cli import program

    place.put(record(2), b"garbage")
    assert program.run("archiver", ["verify", RUN, "--config", str(place.config), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (found,) = [one for one in document["findings"] if one["state"] == "warning"]
    assert (found["object"], found["seq"], found["error"]) == (record(2), 2, None)
    assert program.run("archiver", ["verify", RUN, "--config", str(place.config)]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert ["warning", record(2), RUN, "2"] in [row[:4] for row in rows]
