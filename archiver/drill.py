"""Prove that stored runs come back: a random sample of them is restored and thrown away.

The newest checkpoint of each goes the whole way: verified, opened, unpacked, migrated, validated, repaired
and judged. Whether the world still matches is reported and fails nothing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from archiver import age, audit, layout, target
from archiver.catalog import Catalog
from archiver.errors import (
    AlreadyExistsError,
    ArchiverError,
    AuditError,
    BundleExpiredError,
    DamagedError,
    InputNotFoundError,
    KeyUnavailableError,
    NoSuchRunError,
    StoreError,
    UsageError,
)
from archiver.gate import EFFECTS
from archiver.restore import Report, plan, restore
from archiver.sampling import Sample
from archiver.scratch import Scratch, remove_folder

if TYPE_CHECKING:
    from archiver.setup import Setup

MOST_NAMED: Final = 200
"""Runs that the audit names."""


@dataclass(frozen=True, slots=True)
class Drilled:
    """What became of one run."""

    run: str
    seq: int
    """The number of the checkpoint; of the newest record where that could not be told."""
    seconds: float
    size: int = 0
    """Bytes that were unpacked."""
    opened_by: str | None = None
    """Fingerprint of the identity that opened the bundle."""
    break_glass: bool = False
    freshness: tuple[tuple[str, int], ...] = ()
    """How many probes were FRESH, STALE and UNKNOWN."""
    repairs: int = 0
    expired: bool = False
    """Whether the bundle is gone, as its class says that it may be."""
    error: ArchiverError | None = None


@dataclass(frozen=True, slots=True)
class Sum:
    """What came of a drill."""

    runs: tuple[Drilled, ...]
    of: int
    """Runs that the store has."""
    seed: int
    warnings: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[Drilled, ...]:
        """The runs that did not come back."""
        return tuple(one for one in self.runs if one.error is not None)

    @property
    def exit_code(self) -> int:
        """0 if all came back; 4 if anything is damaged, else 6 if a key opens nothing, else what failed."""
        codes = {one.error.exit_code for one in self.runs if one.error is not None}
        for code in (DamagedError.exit_code, KeyUnavailableError.exit_code):
            if code in codes:
                return code
        return max(codes, default=0)


def with_only(setup: Setup, identities: Sequence[age.Identity]) -> Setup:
    """The same with these break-glass identities and no others, so that they alone are what opens.

    They are loud in the audit, whether or not `keys.break_glass` names them.
    """
    keys = setup.settings.keys
    named = tuple(dict.fromkeys((*keys.break_glass, *(one.fingerprint for one in identities))))
    settings = setup.settings.model_copy(update={"keys": keys.model_copy(update={"break_glass": named})})
    return replace(setup, identities=tuple(identities), settings=settings)


def drill(
    setup: Setup,
    *,
    sample: Sample,
    keep: Path | None = None,
    told: Callable[[Drilled], None] = lambda _: None,
) -> Sum:
    """Restore the newest checkpoint of the runs that `sample` picks; `told` hears of each.

    Nothing stays, unless `keep` names a new folder for what was restored, a folder a run. What is wrong with
    one run is part of the answer. Raises the store's errors, `AuditError`, and `NoSuchRunError` for an empty
    store.
    """
    for run, seq in Catalog(setup).newest_numbers():
        sample.add(run, seq)
    if not sample.total:
        raise NoSuchRunError("the store has no run, so nothing can be drilled")
    with ExitStack() as stack:
        place = _kept(keep, setup.store.url) if keep is not None else stack.enter_context(Scratch()).path
        found: list[Drilled] = []
        with audit.within(setup, "drill"):
            for run, seq in _picked(sample):
                found.append(_one(run, seq, setup, place / _folder(run), keep is not None))
                told(found[-1])
    result = Sum(tuple(found), sample.total, sample.seed)
    return replace(result, warnings=_written_down(setup, result))


def _kept(keep: Path, store: str) -> Path:
    try:
        target.check(keep, store=store)
        keep.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (AlreadyExistsError, UsageError) as error:
        error.remedy = "choose another folder with --keep"
        raise
    except OSError as error:
        raise InputNotFoundError(
            f"{keep} cannot be made: {error.strerror}", remedy="choose another folder with --keep"
        ) from error
    return keep


def _picked(sample: Sample) -> Iterator[tuple[str, int]]:
    for run, numbers in sample.picked().items():
        yield run, max(numbers)


def _folder(run: str) -> str:
    """A run's name as that of a file; shortened by nothing, for names of objects are short enough."""
    return f"run-{layout.encode_run(run)}"


def _one(run: str, seq: int, setup: Setup, into: Path, keep: bool) -> Drilled:
    began = time.monotonic()
    try:
        # Looking is not going on: whatever stands against it is accepted for a copy that is thrown away.
        # Of every probe, also one that finds nothing now: the restore asks more, and asks it later.
        probes = (verdict.probe for verdict in plan(run, setup).freshness)
        report = restore(run, setup, into=into, accept=[*probes, EFFECTS]).report
        return _came_back(report, time.monotonic() - began)
    except BundleExpiredError:
        return Drilled(run, seq, time.monotonic() - began, expired=True)
    except AuditError:
        raise
    except StoreError:
        raise
    except ArchiverError as error:
        return Drilled(run, seq, time.monotonic() - began, error=error.with_traceback(None))
    finally:
        if not keep:
            remove_folder(into)


def _came_back(report: Report, seconds: float) -> Drilled:
    bundle = report.record.bundle
    states = Counter(verdict.state for verdict in report.freshness)
    return Drilled(
        report.run,
        report.seq,
        seconds,
        size=bundle.unpacked if bundle is not None else 0,
        opened_by=report.opened_by,
        break_glass=report.break_glass,
        freshness=tuple(sorted(states.items())),
        repairs=len(report.repairs),
    )


def _written_down(setup: Setup, result: Sum) -> tuple[str, ...]:
    keys = sorted({one.opened_by for one in result.runs if one.opened_by is not None})
    loud = next((one.opened_by for one in result.runs if one.break_glass), None)
    detail: dict[str, Any] = {
        "runs": len(result.runs),
        "of": result.of,
        "seed": result.seed,
        "failed": len(result.failed),
        "expired": sum(one.expired for one in result.runs),
        "identities": keys,
        "run_ids": [one.run for one in result.runs[:MOST_NAMED]],
    }
    opened_by = loud or next(iter(keys), None)
    return audit.note(setup, "drill", run=None, opened_by=opened_by, detail=detail)
