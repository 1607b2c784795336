"""What the copy is worth: verified where it lies, with the keys at hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from archiver import age, bundles, layout
from archiver.audit import entries
from archiver.catalog import Beginning, Catalog, Entry
from archiver.errors import ArchiverError, BundleExpiredError, DigestMismatchError, InvalidNameError
from archiver.export.copying import OBJECTS
from archiver.ledger import Reading
from archiver.model.export import ExportedObject

if TYPE_CHECKING:
    from archiver.setup import Setup


@dataclass(frozen=True, slots=True)
class Verdict:
    """Who signed an object, and what is wrong with it."""

    signer: str | None = None
    error: ArchiverError | None = None
    said: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """The objects with their verdicts, and the chain's."""

    objects: tuple[ExportedObject, ...]
    chain: str
    said: str = ""
    remarks: tuple[str, ...] = ()
    codes: frozenset[int] = frozenset()
    """Exit codes of what is wrong."""


def judged(run: str, copy: Setup, folder: Path, objects: Sequence[ExportedObject], at: int | None) -> Judged:
    """Verify the copy at `copy.store`, whose files lie in `folder`."""
    judge = _Judge(run, copy, folder, at)
    found = [*map(judge.judged, objects), *judge.missing({one.name for one in objects})]
    return Judged(tuple(found), judge.chain, judge.said, judge.remarks, frozenset(judge.codes))


class _Judge:
    def __init__(self, run: str, copy: Setup, folder: Path, at: int | None) -> None:
        self._run = run
        self._setup = copy
        self._folder = folder
        self._catalog = Catalog(copy)
        self._verdicts: dict[str, Verdict] = {}
        self._bundles: dict[str, Entry] = {}
        self.codes: set[int] = set()
        self.chain, self.said = "verified", ""
        self.remarks: tuple[str, ...] = ()
        try:
            beginning = self._catalog.beginning(run, at)
        except ArchiverError as error:  # there is no record
            beginning = Beginning(run, (), 0, error)
        if beginning.error is not None:
            self.chain, self.said = type(beginning.error).__name__, str(beginning.error)
            self.codes.add(beginning.error.exit_code)
        self._take(beginning)
        self._verdicts |= dict(self._effects())
        self._verdicts |= dict(self._notes())
        self._verdicts |= dict(self._audit())

    def judged(self, one: ExportedObject) -> ExportedObject:
        """The object with its verdict; versions that do not count have none."""
        if one.file != f"{OBJECTS}/{one.name}":
            return one
        verdict = self._verdict(one.name)
        if verdict is None:
            return one
        changes: dict[str, object] = {"signer": verdict.signer, "verification": "ok"}
        if verdict.error is not None:
            self.codes.add(verdict.error.exit_code)
            changes |= {"verification": type(verdict.error).__name__, "said": str(verdict.error)}
        elif verdict.said and not one.said:
            changes["said"] = verdict.said
        return one.model_copy(update=changes)

    def missing(self, names: set[str]) -> Iterator[ExportedObject]:
        """Bundles that a record commits and that are not there."""
        known = [link.record for link in self._bundles.values()]
        for name, link in self._bundles.items():
            if name in names:
                continue
            try:
                bundles.check_present(link.record, self._setup, known)
            except ArchiverError as error:
                if not isinstance(error, BundleExpiredError):
                    self.codes.add(error.exit_code)
                yield ExportedObject(name=name, verification=type(error).__name__, said=str(error))

    def _take(self, beginning: Beginning) -> None:
        for link in beginning.links:
            self._verdicts[link.info.name] = Verdict(link.writer)
            bundle = link.record.bundle
            if bundle is not None:
                self._bundles[bundle.name] = link

    def _verdict(self, name: str) -> Verdict | None:
        if name in self._verdicts:
            return self._verdicts[name]
        try:
            parsed = layout.parse(name)
        except InvalidNameError as error:
            return Verdict(error=error)
        try:
            if parsed.kind == "record":
                return Verdict(self._catalog.read(self._run, parsed.seq or 0).writer)
            if parsed.kind == "bundle":
                return self._bundle(name)
        except ArchiverError as error:
            return Verdict(error=error.with_traceback(None))
        return None

    def _bundle(self, name: str) -> Verdict | None:
        """The payload is what a record signed; nothing of it has to be opened for that."""
        if name not in self._bundles:
            # The chain may end before the record that commits it; then nobody knows.
            return None if self.said else Verdict(said="no record commits it")
        link = self._bundles[name]
        bundle = link.record.bundle
        with (self._folder / OBJECTS / name).open("rb") as file:
            if bundle is None or age.payload_digest(file) != (bundle.payload_sha256, bundle.payload_length):
                raise DigestMismatchError(f"{name} is not the bundle that its record signed")
        return Verdict(link.writer)

    def _effects(self) -> Iterator[tuple[str, Verdict]]:
        try:
            for one in Reading(self._setup, self._catalog.notes).of(self._run):
                yield one.name, Verdict(one.signer or None, one.error)
        except ArchiverError as error:
            self.remarks = (*self.remarks, f"the effects were not verified: {error}")

    def _notes(self) -> Iterator[tuple[str, Verdict]]:
        try:
            for one in self._catalog.notes.examined(self._run):
                by = one.believed.administrator if one.believed is not None else None
                yield one.name, Verdict(by, one.error)
        except ArchiverError as error:
            self.remarks = (*self.remarks, f"the notes were not verified: {error}")

    def _audit(self) -> Iterator[tuple[str, Verdict]]:
        for one in entries.of(self._setup, self._run):
            unknown = "" if one.signer or one.error else "signed by a key that no list of trusted keys has"
            yield one.name, Verdict(one.signer, one.error, unknown)
