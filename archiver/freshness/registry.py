"""All probes, asked side by side, each with a time limit; one that fails is UNKNOWN, never FRESH."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from time import monotonic
from typing import Generic, TypeVar

from archiver.errors import UsageError
from archiver.freshness.age import AgeProbe
from archiver.freshness.git_commit import GitCommitProbe
from archiver.freshness.probe import Context, Probe
from archiver.freshness.verdict import FreshnessReport, Policy, Verdict
from archiver.model import JsonValue

T = TypeVar("T")

PROBES: tuple[Probe, ...] = (AgeProbe(), GitCommitProbe())


def capture_all(context: Context, *, probes: Collection[Probe] = PROBES) -> dict[str, JsonValue]:
    """What each probe remembers, by its name; a probe that fails or has nothing to say is left out.

    A save never fails because of a probe: what is missing here is UNKNOWN at restore.
    """
    running = [(probe, _Call(lambda probe=probe: probe.capture(context))) for probe in probes]  # type: ignore[misc]  # the default binds the loop's probe
    deadline = monotonic() + context.timeout
    captured: dict[str, JsonValue] = {}
    for probe, call in running:
        try:
            value = call.result(deadline)
        except Exception:  # noqa: S112 - any failure of a probe only leaves it out
            continue
        if value is not None:
            captured[probe.name] = value
    return captured


def judge_all(
    captured: Mapping[str, JsonValue],
    context: Context,
    accept: Iterable[str] = (),
    *,
    policy: Policy | None = None,
    probes: Collection[Probe] = PROBES,
) -> FreshnessReport:
    """The verdicts of all probes of this version and of all names in the record.

    `accept` names probes whose verdict does not stop the restore; it stays visible in the report. Raises
    `UsageError` for a name that neither this version nor the record knows.
    """
    accepted = frozenset(accept)
    known = {probe.name for probe in probes} | captured.keys()
    if strange := sorted(accepted - known):
        raise UsageError(
            f"there is no probe {', '.join(map(repr, strange))} to accept",
            remedy=f"--accept takes one of: {', '.join(sorted(known))}",
        )
    verdicts = _judge(captured, context, probes)
    return FreshnessReport.of(
        (v.model_copy(update={"accepted": True}) if v.probe in accepted else v for v in verdicts),
        policy or Policy(),
    )


def _judge(
    captured: Mapping[str, JsonValue], context: Context, probes: Collection[Probe]
) -> Iterable[Verdict]:
    running = {
        probe.name: _Call(lambda probe=probe: probe.judge(captured[probe.name], context))  # type: ignore[misc]  # as above
        for probe in probes
        if probe.name in captured
    }
    deadline = monotonic() + context.timeout
    for name in sorted({probe.name for probe in probes} | captured.keys()):
        if name in running:
            yield _verdict(name, running[name], deadline, context.timeout)
        elif name in captured:
            yield _unknown(name, "this version has no such probe", "restore with the release that saved it")
        else:
            yield _unknown(name, "nothing was recorded for it when the checkpoint was saved", None)


def _verdict(name: str, call: _Call[Verdict], deadline: float, timeout: float) -> Verdict:
    try:
        verdict = call.result(deadline)
    except TimeoutError:
        return _unknown(name, f"no answer within {timeout:g} seconds", None)
    except Exception as error:  # whatever a probe raises, the answer is that we do not know
        return _unknown(name, f"the probe failed: {type(error).__name__}: {error}", None)
    if not isinstance(verdict, Verdict) or verdict.probe != name or verdict.accepted:
        return _unknown(name, "the probe did not answer for itself", None)
    return verdict


def _unknown(name: str, evidence: str, remedy: str | None) -> Verdict:
    return Verdict(probe=name, state="UNKNOWN", evidence=evidence, remedy=remedy)


class _Call(Generic[T]):
    """One function running in a daemon thread: a hanging probe delays neither the others nor the exit."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._outcome: list[T] = []
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(function,), daemon=True)
        self._thread.start()

    def _run(self, function: Callable[[], T]) -> None:
        try:
            self._outcome.append(function())
        except Exception as error:  # handed to the thread that asks for the result
            self._error = error
        except BaseException as error:  # a probe must not end the program either
            self._error = RuntimeError(type(error).__name__)

    def result(self, deadline: float) -> T:
        """What the function returned, or what it raised; `TimeoutError` after the deadline."""
        self._thread.join(max(0.0, deadline - monotonic()))
        if self._error is not None:
            raise self._error
        if not self._outcome:
            raise TimeoutError
        return self._outcome[0]
