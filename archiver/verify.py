"""Is what the store holds whole, authentic and complete?"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from archiver import bundles, layout, noting, rollback
from archiver.audit import seen
from archiver.catalog import Beginning, Catalog, Entry
from archiver.errors import (
    ArchiverError,
    BundleExpiredError,
    BundleRemovedError,
    InvalidNameError,
    KeyUnavailableError,
    NoSuchRunError,
    RecipientMismatchError,
    RunErasedError,
)
from archiver.gate import told
from archiver.gone import Gone
from archiver.ledger import Reading
from archiver.model import utc_text
from archiver.model.effect_entry import EffectEntry
from archiver.model.manifest import Manifest
from archiver.model.record import Record
from archiver.notes import Believed, Notes
from archiver.parallel import in_order
from archiver.progress import Progress, Silent
from archiver.recipients import fits
from archiver.rollback import Sight
from archiver.sampling import Sample
from archiver.scratch import Scratch
from archiver.signed import Seal
from archiver.witnessed import Witnessed

if TYPE_CHECKING:
    from archiver.setup import Setup

DEEP_WORKERS = 4
"""Runs whose bundles are opened at the same time; each needs room on disk for one of them."""

_PRESENT = "present"
_UNCOMMITTED = "no record commits it: an interrupted or lost save"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at and, when something is wrong, the error."""

    object: str
    run: str | None = None
    seq: int | None = None
    error: ArchiverError | None = None
    note: str = ""
    state: Literal["ok", "warning", "expired", "removed"] = "ok"
    """`expired` for a bundle that is gone and may be, `removed` for one that an administrator has taken away;
    `warning` for what is not as it should be."""
    advice: Literal["rekey"] | None = None
    """The command that should be run on this run although nothing is wrong; such a finding is no object."""
    again: bool = False
    """Whether the object has a finding already; such a finding is no object either."""

    @property
    def ok(self) -> bool:
        return self.error is None


def verify(
    setup: Setup,
    run: str | None = None,
    *,
    deep: bool = False,
    sample: Sample | None = None,
    progress: Progress | None = None,
    now: datetime | None = None,
) -> Iterator[Finding]:
    """Check every run (or one): the chain, and that each bundle is there with the length that was signed.

    `deep` opens every bundle and checks payload digest, members and manifest; with a `sample`, those that it
    picks, after everything else was looked at. Each header that is opened must be for those who were signed,
    or for those whom the note of an administrator names. One finding an object, good or bad; damage in one
    run does not keep the others from being looked at. A bundle that is gone is damage unless its class lets
    it be gone at `now`. What the witness has seen is compared, and the end of a run that is whole remembered.
    Raises `NoSuchRunError` for a run that is not there, and what keeps the store from being read at all. Of
    many runs several are looked at at the same time; `progress` is told of one run's bundles only.
    """
    look = _Look(setup, deep and sample is None, progress if run is not None else None, now)
    findings = look.one(run) if run is not None else look.all()
    yield from findings if sample is None else _sampled(findings, sample)
    if sample is not None:
        yield from look.opened(sample.picked())


def _sampled(findings: Iterator[Finding], sample: Sample) -> Iterator[Finding]:
    for finding in findings:
        if (
            finding.note.startswith(_PRESENT)
            and finding.ok
            and finding.run is not None
            and finding.seq is not None
        ):
            sample.add(finding.run, finding.seq)
        yield finding


class _Look:
    """One look at a store."""

    def __init__(self, setup: Setup, deep: bool, progress: Progress | None, now: datetime | None) -> None:
        self._setup = setup
        self._deep = deep
        self._progress = progress or Silent()
        self._now = now or datetime.now(UTC)
        self._unremembered: list[str] = []
        self._catalog = Catalog(setup)
        self._one_by_one = Catalog(setup, workers=1)

    def one(self, run: str) -> Iterator[Finding]:
        """The findings of one run, of its effects, of the notes about it and of its audit."""
        yield from self._run(run, self._catalog, only=True)
        yield from self._memory(run)
        yield from _effects(run, self._setup, self._catalog.notes)
        yield from _notes(run, self._catalog.notes)
        yield from _audit(run, self._setup)

    def all(self) -> Iterator[Finding]:
        """The findings of all runs, and of what belongs to none."""
        newest: dict[str, int] = {}

        def numbered() -> Iterator[str]:
            for name, seq in self._catalog.newest_numbers():
                newest[name] = seq
                yield name

        def look(name: str) -> list[Finding]:
            return list(self._run(name, self._one_by_one))

        workers = min(self._catalog.workers, DEEP_WORKERS) if self._deep else self._catalog.workers
        for findings in in_order(look, numbered(), workers=workers):
            yield from findings
        witnessed = Witnessed(self._setup, self._now)
        for head in witnessed.vanished(newest):
            if head.error is None:
                newest[head.run] = head.seq
                yield from self._run(head.run, self._one_by_one)
            else:
                yield Finding(layout.records_prefix(head.run), head.run, error=head.error)
        yield from self._memory(None, *witnessed.warnings)
        yield from _others(self._setup, newest, self._catalog.notes)

    def _memory(self, run: str | None, *warnings: str) -> Iterator[Finding]:
        """What of the witness could not be used, once for all runs: mostly it is one thing."""
        where = layout.RECORDS if run is None else layout.records_prefix(run)
        more = f" and {len(self._unremembered) - 1} more" if len(self._unremembered) > 1 else ""
        for text in (*warnings, *(f"{one}{more}" for one in self._unremembered[:1])):
            yield Finding(where, run, note=text, state="warning", again=True)

    def opened(self, picked: Mapping[str, Collection[int]]) -> Iterator[Finding]:
        """The findings of the bundles of these runs and numbers, each opened."""

        def look(run: str) -> list[Finding]:
            try:
                chain = self._one_by_one.chain(run)
            except ArchiverError as error:
                return [Finding(layout.records_prefix(run), run, error=error, again=True)]
            return [
                replace(self._opened_whole(link, link.record.bundle.name, chain.records), again=True)
                for link in chain.links
                if link.record.seq in picked[run] and link.record.bundle is not None
            ]

        for findings in in_order(look, picked, workers=min(self._catalog.workers, DEEP_WORKERS)):
            yield from findings

    def _run(self, run: str, catalog: Catalog, *, only: bool = False) -> Iterator[Finding]:
        tombstone = catalog.notes.tombstone(run)
        if tombstone is not None:
            yield _left(noting.erased(run, tombstone), run, only)
        else:
            yield from self._there(run, catalog, only)

    def _there(self, run: str, catalog: Catalog, only: bool) -> Iterator[Finding]:
        where = layout.records_prefix(run)
        sight = None
        try:
            sight = rollback.look(run, self._setup)
        except ArchiverError as error:
            yield Finding(where, run, error=error, again=True)
        try:
            beginning = catalog.beginning(run)
        except ArchiverError as error:
            if isinstance(error, NoSuchRunError) and sight is not None:
                error = sight.gone(error, 0, now=self._now)
            if only and error.exit_code == NoSuchRunError.exit_code:
                raise error from None
            yield Finding(where, run, error=error)
            return
        if beginning.error is not None:
            yield Finding(where, run, error=beginning.error)
        yield from self._seen(sight, beginning)
        yield from _remarks(run, beginning.remarks, beginning.links)
        if beginning.error is not None:
            return
        seals: list[tuple[Record, Seal]] = []
        sizes = {info.name: info.size for info in self._setup.store.list(layout.bundles_prefix(run))}
        gone = Gone(beginning.links, self._setup, catalog.notes, self._now)
        records = [link.record for link in beginning.links]
        with bundles.Standing(records, self._setup.settings.limits) as standing:
            for link in beginning.links:
                record = link.record
                seals.append((record, link.seal))
                yield _compared(record, link.info.name, link.seal, catalog.notes, f"signed by {link.writer}")
                bundle = record.bundle
                if bundle is not None:
                    size = sizes.pop(bundle.name, None)
                    looked = self._bundle(link, bundle.name, size, gone, seals, standing)
                    yield _based(looked, standing.found(record, looked.wrong, looked.manifest))
        for name in sizes:
            yield Finding(name, run, note=_UNCOMMITTED)
        yield from _advice(run, seals, self._setup)

    def _seen(self, sight: Sight | None, beginning: Beginning) -> Iterator[Finding]:
        """What speaks against the chain although it may hold together: the witness has seen another."""
        try:
            standing = sight.verified(beginning, self._now) if sight is not None else rollback.Standing()
        except ArchiverError as error:
            yield Finding(layout.records_prefix(beginning.run), beginning.run, error=error, again=True)
        else:
            self._unremembered.extend(standing.warnings)

    def _bundle(
        self,
        link: Entry,
        name: str,
        size: int | None,
        gone: Gone,
        seals: list[tuple[Record, Seal]],
        standing: bundles.Standing,
    ) -> _Looked:
        """What is found of a bundle alone, whatever it is based on."""
        run, seq = link.record.run, link.record.seq
        if size is None:
            return _absent(Finding(name, run, seq), gone.error(link.record))
        try:
            bundles.check_size(link.record, size)
        except ArchiverError as error:
            return _Looked(Finding(name, run, seq, error=error), error)
        if not self._deep and not link.record.missing_recipients:
            return _Looked(Finding(name, run, seq, note=_PRESENT))
        manifest = None
        if self._deep:
            finding, seal, manifest = self._open(link, name, standing)
        else:
            finding, seal = self._marked(link, name)
        if seal is not None:
            seals.append((link.record, seal))
        return _Looked(finding, finding.error, manifest)

    def _marked(self, link: Entry, name: str) -> tuple[Finding, Seal | None]:
        """Whom a bundle is sealed to whose record says that somebody is missing; only its header is read."""
        record = link.record
        try:
            seal = bundles.seal(record, self._setup)
        except KeyUnavailableError as error:
            note = f"{_PRESENT}; sealed while KMS was away, and does not open here: {error}"
            return Finding(name, record.run, record.seq, note=note, state="warning"), None
        except ArchiverError as error:
            return Finding(name, record.run, record.seq, error=error), None
        return _compared(record, name, seal, self._catalog.notes, _PRESENT), seal

    def _open(
        self, link: Entry, name: str, standing: bundles.Standing
    ) -> tuple[Finding, Seal | None, Manifest | None]:
        """What is found in a bundle itself, whom it is sealed to if it can be opened, and its manifest."""
        record = link.record
        try:
            with Scratch() as scratch:
                into = scratch.path / "bundle"
                manifest = bundles.fetch_own(record, self._setup, into, self._progress, standing)
            seal = bundles.seal(record, self._setup)
        except ArchiverError as error:
            return Finding(name, record.run, record.seq, error=error), None, None
        return _compared(record, name, seal, self._catalog.notes, "opened"), seal, manifest

    def _opened_whole(self, link: Entry, name: str, known: Sequence[Record]) -> Finding:
        """What is found in a bundle with all that it takes from others."""
        record = link.record
        try:
            with Scratch() as scratch:
                bundles.fetch(record, self._setup, scratch.path / "bundle", self._progress, known)
            seal = bundles.seal(record, self._setup)
        except ArchiverError as error:
            return Finding(name, record.run, record.seq, error=error)
        return _compared(record, name, seal, self._catalog.notes, "opened")


@dataclass(frozen=True, slots=True)
class _Looked:
    """What is said of a bundle alone, what is wrong with it, and its manifest where it was opened."""

    finding: Finding
    wrong: ArchiverError | None = None
    manifest: Manifest | None = None


def _absent(finding: Finding, error: ArchiverError) -> _Looked:
    """Of a bundle that is not there: damage, unless it may be gone."""
    if isinstance(error, BundleExpiredError | BundleRemovedError):
        state: Literal["expired", "removed"]
        state = "expired" if isinstance(error, BundleExpiredError) else "removed"
        return _Looked(replace(finding, note=str(error), state=state, error=None), error)
    return _Looked(replace(finding, error=error), error)


def _based(looked: _Looked, wrong: ArchiverError | None) -> Finding:
    """The finding of a bundle that cannot be had without others, with what is wrong with these."""
    return looked.finding if wrong is None else _absent(looked.finding, wrong).finding


def _left(erased: RunErasedError, run: str, only: bool) -> Finding:
    """What is said where something of an erased run is left; raised where that run alone is asked for."""
    if only:
        raise erased
    return Finding(
        layout.records_prefix(run), run, note=noting.with_leavings(erased, run), state="warning", again=True
    )


def _remarks(run: str, remarks: tuple[str, ...], links: tuple[Entry, ...]) -> Iterator[Finding]:
    for remark in remarks:
        yield Finding(layout.records_prefix(run), run, note=remark, state="warning", again=True)
    for link in links:
        for remark in link.remarks:
            yield Finding(link.info.name, run, link.record.seq, note=remark, state="warning", again=True)


def _compared(record: Record | EffectEntry, name: str, seal: Seal, notes: Notes, note: str) -> Finding:
    """The finding of an object that is whole: is it sealed to those to whom its writer sealed it?"""
    run, seq = record.run, record.seq if isinstance(record, Record) else None
    marked = seal.is_for(record.recipients, record.missing_recipients)
    lacking = seal.lacks(record.missing_recipients)
    if marked and lacking:
        note += f"; sealed while KMS was away, and not to {', '.join(lacking)}"
        return Finding(name, run, seq, note=note)
    if seal.is_for(record.recipients):
        return Finding(name, run, seq, note=note)
    try:
        by = notes.explains(run, name, seal)
        doubtful = any(one.error for one in notes.examined(run))
    except ArchiverError as error:
        return Finding(name, run, seq, error=error)
    if by is not None:
        note += f"; rekeyed at {utc_text(by.note.at)} by {by.administrator}"
    if by is not None or marked:  # marked, and sealed to them: KMS came back while the checkpoint was saved
        return Finding(name, run, seq, note=note)
    return Finding(name, run, seq, error=_mismatch(name, seal, record, doubtful))


def _mismatch(name: str, seal: Seal, record: Record | EffectEntry, doubtful: bool) -> RecipientMismatchError:
    said = (
        "there is none" if not doubtful else "there are notes that are not believed, see what is said of them"
    )
    more = f" and {seal.unnamed} more that its header does not name" if seal.unnamed else ""
    return RecipientMismatchError(
        f"{name} opens with the keys {', '.join(seal.recipients) or '(none named)'}{more}, but was sealed to "
        f"{', '.join(record.recipients)}; no note of a trusted administrator says why ({said})",
        remedy="if the signer of those notes did a rekey, add them as administrator to writers.toml, as is "
        "said of the notes"
        if doubtful
        else "somebody who can open it has rewritten its header: look who could write to the store; "
        "`archiver rekey` seals it to the configured recipients again",
    )


def _notes(run: str, notes: Notes) -> Iterator[Finding]:
    """The notes about a run; one that is sealed to other keys was replaced by what a later rekey wrote."""
    try:
        examined = notes.examined(run)
    except ArchiverError as error:
        yield Finding(layout.notes_prefix(run), run, error=error)
        return
    for one in examined:
        if one.believed is not None:
            yield Finding(one.name, run, note=_signed(one.believed))
        elif isinstance(one.error, KeyUnavailableError):
            yield Finding(one.name, run, note="sealed to keys that are not here: not opened")
        else:
            yield Finding(one.name, run, error=one.error)


def _signed(one: Believed) -> str:
    note = one.note
    if note.kind != "rekey":
        return f"{one.administrator} signed: {noting.words(one)}"
    said = f": {note.reason}" if note.reason else ""
    count = len(note.objects)
    return f"{one.administrator} signed a rekey of {count} object{'' if count == 1 else 's'}{said}"


def _effects(run: str, setup: Setup, notes: Notes) -> Iterator[Finding]:
    """What the ledger has of the run: each intent and outcome is opened, and its writer judged."""
    try:
        for one in Reading(setup, notes).of(run):
            if one.entry is None or one.seal is None:
                yield Finding(one.name, run, error=one.error)
                continue
            note = f"{one.entry.part} of effect {told([one.entry.key])}, signed by {one.signer}"
            yield _compared(one.entry, one.name, one.seal, notes, note)
            for remark in one.remarks:
                yield Finding(one.name, run, note=remark, state="warning", again=True)
    except ArchiverError as error:
        yield Finding(layout.effects_prefix(run), run, error=error)


def _audit(run: str, setup: Setup) -> Iterator[Finding]:
    """What somebody signed of what they did with the run."""
    try:
        for said in seen.findings(setup, run):
            yield Finding(said.object, run, note=said.note if said.error is None else "", error=said.error)
    except ArchiverError as error:
        yield Finding(layout.audit_prefix(run), run, error=error)


def _advice(run: str, seals: list[tuple[Record, Seal]], setup: Setup) -> Iterator[Finding]:
    misfits = [(record, seal) for record, seal in seals if not fits(seal, setup)]
    if not misfits:
        return
    note = f"sealed to other recipients than the configured ones: {len(misfits)} of {len(seals)} objects"
    lacking = [lack for record, seal in misfits if (lack := seal.lacks(record.missing_recipients))]
    if lacking:
        names = {recipient.fingerprint: str(recipient) for recipient in setup.recipients}
        missing = ", ".join(dict.fromkeys(names.get(one, one) for lack in lacking for one in lack))
        note += f"; {len(lacking)} of them were sealed while KMS was away, and not to {missing}"
    state: Literal["ok", "warning"] = "warning" if lacking else "ok"
    yield Finding(layout.records_prefix(run), run, note=note, state=state, advice="rekey")


def _uncommitted(name: str, run: str, notes: Notes) -> Finding:
    tombstone = notes.tombstone(run)
    if tombstone is None:
        return Finding(name, run, note=_UNCOMMITTED)
    return Finding(name, run, note=noting.with_leavings(noting.erased(run, tombstone), run), state="warning")


def _others(setup: Setup, newest: dict[str, int], notes: Notes) -> Iterator[Finding]:
    """Objects that no part of this product makes, effects, notes, audit, and what no record is behind."""
    acted = noted = audited = None
    for info in setup.store.list():
        try:
            name = layout.parse(info.name)
        except InvalidNameError as error:
            yield Finding(info.name, error=error)
            continue
        if name.kind == "effect" and name.run != acted and not layout.is_probe(info.name):
            acted = name.run
            yield from _effects(acted or "", setup, notes)
        if name.kind == "note" and name.run is not None and name.run != noted:
            noted = name.run
            yield from _notes(noted, notes)
        if name.kind == "audit" and name.run is not None and name.run != audited:
            audited = name.run
            yield from _audit(audited, setup)
        known = newest.get(name.run or "", 0)
        if name.kind == "bundle" and not known:
            yield _uncommitted(info.name, name.run or "", notes)
        if name.kind == "index" and (name.seq or 0) > known:
            yield Finding(info.name, name.run, name.seq, note="no record is behind this hint")
