"""Measures and spans: the one door to OpenTelemetry, whose API does nothing without an SDK.

It is loaded only where something in the process or its environment has asked for it: nobody else would hear.
No attribute holds an id, a key or a text of a run; docs/MEASURES.md says what each measure means. A provider
that raises is logged once and never reaches the caller.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal, TypeVar

from archiver import __version__

SCOPE: Final = "archiver"
"""The name of the instrumentation scope, and the prefix of every measure, span and attribute."""

_T = TypeVar("_T")
Kind = Literal["counter", "histogram", "observable gauge"]
SpanName = Literal[
    "archiver.deliver",
    "archiver.effect.begin",
    "archiver.effect.end",
    "archiver.restore",
    "archiver.resume",
    "archiver.save",
    "archiver.save.compact",
    "archiver.save.redact",
    "archiver.save.seal",
    "archiver.save.store",
]


@dataclass(frozen=True, slots=True)
class Measure:
    """One instrument: its name, kind, unit (UCUM), what it counts, and the attributes it may have."""

    name: str
    kind: Kind
    unit: str
    about: str
    attributes: tuple[str, ...] = ()


_DURATION: Final = Measure(
    "archiver.save.duration",
    "histogram",
    "s",
    "time from the begin of a save until it is durable",
    ("archiver.save.to",),
)
_RAW: Final = Measure(
    "archiver.transcript.size", "histogram", "By", "bytes of the transcript as it was given, of a save"
)
_COMPACTED: Final = Measure(
    "archiver.checkpoint.size", "histogram", "By", "bytes of a checkpoint after compaction"
)
_STORED: Final = Measure("archiver.bundle.size", "histogram", "By", "bytes of the sealed bundle of a save")
_FAILURES: Final = Measure(
    "archiver.save.failures", "counter", "{failure}", "saves that failed, each attempt", ("error.type",)
)
_FINDINGS: Final = Measure(
    "archiver.redaction.findings",
    "counter",
    "{finding}",
    "credentials that redaction replaced",
    ("archiver.rule",),
)
_DELIVERY: Final = Measure(
    "archiver.delivery.duration", "histogram", "s", "time that the upload of one spooled checkpoint took"
)
_SPOOL_ENTRIES: Final = Measure(
    "archiver.spool.entries",
    "observable gauge",
    "{entry}",
    "records and effects on this machine that wait for the store",
)
_SPOOL_SIZE: Final = Measure(
    "archiver.spool.size",
    "observable gauge",
    "By",
    "bytes on the disk of this machine's spool, with what is kept of delivered ones",
)
_RESTORE: Final = Measure(
    "archiver.restore.duration",
    "histogram",
    "s",
    "time from the begin of a restore until its folder is there",
)
_RESTORED: Final = Measure(
    "archiver.restore.size", "histogram", "By", "bytes of the members that a restore unpacked"
)
_STALE: Final = Measure(
    "archiver.restore.stale", "counter", "{restore}", "restores refused because the world has changed"
)
_RESUMES: Final = Measure(
    "archiver.resume.accepted", "counter", "{resume}", "runs taken over: their claim is committed"
)
_AVOIDED_SECONDS: Final = Measure(
    "archiver.replay.avoided.time", "counter", "s", "time the run had used before, which is not used again"
)
_AVOIDED_COST: Final = Measure(
    "archiver.replay.avoided.cost",
    "counter",
    "{USD}",
    "money the run had used before, which is not used again",
)
_EFFECTS: Final = Measure(
    "archiver.effect.recorded",
    "counter",
    "{record}",
    "intents and outcomes of effects that were recorded",
    ("archiver.effect.part", "archiver.effect.to"),
)
_PREVENTED: Final = Measure(
    "archiver.effect.duplicates_prevented",
    "counter",
    "{effect}",
    "effects that were asked for again and had their recorded result given instead",
)
MEASURES: Final = (
    _DURATION,
    _RAW,
    _COMPACTED,
    _STORED,
    _FAILURES,
    _FINDINGS,
    _DELIVERY,
    _SPOOL_ENTRIES,
    _SPOOL_SIZE,
    _RESTORE,
    _RESTORED,
    _STALE,
    _RESUMES,
    _AVOIDED_SECONDS,
    _AVOIDED_COST,
    _EFFECTS,
    _PREVENTED,
)

_STEPS: Final = {
    "s": (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
    "By": tuple(float(4**power) for power in range(5, 17)),
}
"""Upper ends of a histogram's buckets by unit, 5 ms to 5 minutes and 1 KiB to 4 GiB: what an SDK takes
without being told is meant for milliseconds."""
_ASKED_FOR: Final = ("OTEL_PYTHON_METER_PROVIDER", "OTEL_PYTHON_TRACER_PROVIDER")
"""Variables by which the API itself loads an SDK."""

_recording = threading.RLock()
"""An SDK has locks. A process that is forked while another thread holds one has it held for ever, so no fork
happens in the middle of a measurement. Spans are not covered: their exporters may wait for the network."""
os.register_at_fork(
    before=_recording.acquire, after_in_parent=_recording.release, after_in_child=_recording.release
)
_complained: set[str] = set()
_spools: dict[str, Callable[[], tuple[int, int]]] = {}
"""The spools that this process has used, by their folder."""


def saved(
    *,
    raw: int,
    compacted: int,
    stored: int,
    seconds: float,
    findings: Mapping[str, int] = {},
    to: Literal["store", "spool"] = "store",
) -> None:
    """A checkpoint is durable, in the store or in the spool: bytes of each stage, findings by rule."""
    _measure(_DURATION, seconds, {"archiver.save.to": to})
    _measure(_RAW, raw)
    _measure(_COMPACTED, compacted)
    _measure(_STORED, stored)
    for rule, count in findings.items():
        _measure(_FINDINGS, count, {"archiver.rule": rule})


def failed_save(kind: str) -> None:
    """An attempt to save has failed; `kind` is the class of its error, as `StoreUnreachableError`."""
    _measure(_FAILURES, 1, {"error.type": kind})


def delivered(seconds: float) -> None:
    """A spooled checkpoint is in the store."""
    _measure(_DELIVERY, seconds)


def spool(place: str, depth: Callable[[], tuple[int, int]]) -> None:
    """The spool at this place is in use: `depth` says what waits there and how many bytes it has.

    It is called when measures are collected, by a thread of the SDK; several spools are added up.
    """
    _spools[place] = depth
    if _is_heard():
        _guarded(_observe)


def restored(seconds: float, size: int) -> None:
    """A checkpoint was handed over; `size` is what its members have, unpacked."""
    _measure(_RESTORE, seconds)
    _measure(_RESTORED, size)


def stale() -> None:
    """A restore was refused because the world no longer matches."""
    _measure(_STALE, 1)


def resumed() -> None:
    """A run was taken over: its claim is committed."""
    _measure(_RESUMES, 1)


def replay_avoided(seconds: float, cost: float) -> None:
    """A run went on from a checkpoint that had used so much time and so many US dollars."""
    _measure(_AVOIDED_SECONDS, max(0.0, seconds))
    _measure(_AVOIDED_COST, max(0.0, cost))


def effect_recorded(part: Literal["intent", "outcome"], to: Literal["store", "spool"] = "store") -> None:
    """The intent or the outcome of an effect is durable."""
    _measure(_EFFECTS, 1, {"archiver.effect.part": part, "archiver.effect.to": to})


def duplicate_prevented() -> None:
    """An effect that is confirmed was asked for again, and was not done again."""
    _measure(_PREVENTED, 1)


@contextmanager
def saving() -> Iterator[None]:
    """Around a save that its caller waits for: its span, and a failure where an error leaves it."""
    with span("archiver.save"):
        try:
            yield
        except Exception as error:
            failed_save(type(error).__name__)
            raise


@contextmanager
def span(name: SpanName, **attributes: str | int | float | bool) -> Iterator[None]:
    """A span around what is done meanwhile, the current one of its context; attributes get the prefix.

    An error that passes is told by its class alone: its message may hold names of the run.
    """
    if not _is_heard():
        yield
        return
    named = {f"{SCOPE}.{key}": value for key, value in attributes.items()}
    end = _guarded(lambda: _begin(name, named))
    failed: str | None = None
    try:
        yield
    except BaseException as error:
        failed = type(error).__name__
        raise
    finally:
        if end is not None:
            _guarded(lambda: end(failed))


def _begin(name: str, attributes: Mapping[str, str | int | float | bool]) -> Callable[[str | None], None]:
    """Begin a span and make it the current one; gives what ends it, which takes the class of an error."""
    from opentelemetry import trace

    manager = trace.get_tracer(SCOPE, __version__).start_as_current_span(name, attributes=attributes)
    begun = manager.__enter__()

    def end(failed: str | None) -> None:
        try:
            if failed is not None:
                begun.set_attribute("error.type", failed)
                begun.set_status(trace.Status(trace.StatusCode.ERROR))
        finally:
            manager.__exit__(None, None, None)  # not told of the error, whose text it would record

    return end


def _measure(measure: Measure, value: float, attributes: Mapping[str, str] = {}) -> None:
    if not _is_heard():
        return

    def record() -> None:
        if _spools:
            _observe()
        with _recording:
            _instrument(measure)(value, attributes)

    _guarded(record)


def _is_heard() -> bool:
    """Whether an SDK may be there: whoever sets one up has loaded the API, or has the API load it."""
    return "opentelemetry" in sys.modules or any(name in os.environ for name in _ASKED_FOR)


@cache
def _instrument(measure: Measure) -> Callable[[float, Mapping[str, str]], None]:
    """What records a value; one that was made before there was an SDK goes on to it once there is."""
    from opentelemetry import metrics

    meter = metrics.get_meter(SCOPE, __version__)
    if measure.kind == "counter":
        return meter.create_counter(measure.name, measure.unit, measure.about).add
    return meter.create_histogram(
        measure.name, measure.unit, measure.about, explicit_bucket_boundaries_advisory=_STEPS[measure.unit]
    ).record


@cache
def _observe() -> None:
    """Have the SDK ask for the spools whenever it collects."""
    from opentelemetry import metrics

    def watch(measure: Measure, at: int) -> None:
        def answer(_: metrics.CallbackOptions) -> Iterable[metrics.Observation]:
            total = _guarded(lambda: sum(depth()[at] for depth in tuple(_spools.values())))
            return () if total is None else (metrics.Observation(total),)

        meter = metrics.get_meter(SCOPE, __version__)
        meter.create_observable_gauge(measure.name, [answer], measure.unit, measure.about)

    watch(_SPOOL_ENTRIES, 0)
    watch(_SPOOL_SIZE, 1)


def _guarded(work: Callable[[], _T]) -> _T | None:
    """Do it; an error, mostly the provider's, is logged once by its class and None given."""
    try:
        return work()
    except Exception as error:
        kind = type(error).__name__
        if kind not in _complained:
            _complained.add(kind)
            logging.getLogger("archiver").warning(
                "OpenTelemetry failed with %s: measures or spans are missing, all else goes on", kind
            )
        return None


__all__ = [
    "MEASURES",
    "Measure",
    "SpanName",
    "delivered",
    "duplicate_prevented",
    "effect_recorded",
    "failed_save",
    "replay_avoided",
    "restored",
    "resumed",
    "saved",
    "saving",
    "span",
    "spool",
    "stale",
]
