"""All probes, asked side by side, each with a time limit; one that fails is UNKNOWN, never FRESH."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from time import monotonic
from typing import Generic, TypeVar

from archiver import jsonio
from archiver.errors import UsageError
from archiver.freshness.builtin import BUILTIN, STATED
from archiver.freshness.probe import Context, Probe
from archiver.freshness.verdict import FreshnessReport, Policy, Verdict
from archiver.model import JsonValue
from archiver.safetext import one_line, shorten

T = TypeVar("T")

MAX_CAPTURE = 24 << 10
"""Bytes of JSON that one probe may put into a record."""
MAX_CAPTURED = 128 << 10
"""Bytes of JSON that all probes together may."""
MAX_EVIDENCE = 1500
"""Characters of evidence, and of a remedy."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
OTHERS = "others"
"""What captures of a record are judged under whose names no probe can have, or that are too many."""
MAX_FOREIGN = 32
"""Probes that this version does not know, each with a verdict of its own."""
_RESERVED = frozenset({"effects", "rollback", OTHERS})
"""Words that `--accept` takes for something that no probe judges."""
_own: dict[str, Probe] = {}


def register(probe: Probe) -> None:
    """Ask this probe too, at every save and restore of this process.

    Raises `UsageError` for a name that cannot be one, or that another probe has.
    """
    name = probe.name
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be the name of a probe",
            remedy="use small letters, digits and `_`, at most 64, beginning with a letter",
        )
    taken = name in _RESERVED or name in {known.name for known in BUILTIN}
    if taken or _own.setdefault(name, probe) is not probe:
        raise UsageError(f"there is a probe {name!r} already", remedy="give yours another name")


def unregister(name: str) -> None:
    """Do not ask a registered probe any more; no error when there is none of that name."""
    _own.pop(name, None)


def all_probes() -> tuple[Probe, ...]:
    """The probes of this release and those that were registered."""
    return (*BUILTIN, *_own.values())


def capture_all(context: Context, *, probes: Collection[Probe] | None = None) -> dict[str, JsonValue]:
    """What each probe remembers, by its name; a probe that fails or has nothing to say is left out.

    A save never fails because of a probe: what is missing here is UNKNOWN at restore. The same holds for
    what is no JSON or too large for a record.
    """
    running = [
        (
            probe.name,
            _Call(lambda probe=probe: _plain(probe.capture(context)), apart=probe not in STATED),  # type: ignore[misc]  # the default binds the loop's probe
        )
        for probe in (all_probes() if probes is None else probes)
    ]
    deadline = monotonic() + context.timeout
    captured: dict[str, JsonValue] = {}
    left = MAX_CAPTURED
    for name, call in running:
        try:
            text = call.result(deadline)
        except Exception:  # noqa: S112 - any failure of a probe only leaves it out
            continue
        if text is not None and len(text) <= min(left, MAX_CAPTURE):
            captured[name] = jsonio.loads(text)
            left -= len(text)
    return captured


def _plain(value: JsonValue | None) -> bytes | None:
    """The JSON of a value, made at once: a probe cannot change afterwards what it gave."""
    return None if value is None else jsonio.dumps(value)


def judge_all(
    captured: Mapping[str, JsonValue],
    context: Context,
    accept: Iterable[str] = (),
    *,
    policy: Policy | None = None,
    probes: Collection[Probe] | None = None,
) -> FreshnessReport:
    """The verdicts of all probes of this version, of all names in the record and of all in the policy.

    `accept` names probes whose verdict does not stop the restore; it stays visible in the report. Raises
    `UsageError` for a name that neither this version nor the record knows.
    """
    policy = policy or Policy()
    asked = {probe.name: probe for probe in (all_probes() if probes is None else probes)}
    accepted = frozenset(accept)
    named = _named(captured, asked.keys() | policy.probes.keys())
    left = len(captured) - len(named)
    known = asked.keys() | named.keys() | policy.probes.keys() | ({OTHERS} if left else set())
    if strange := sorted(accepted - known):
        raise UsageError(
            f"there is no probe {', '.join(map(repr, strange))} to accept",
            remedy=f"--accept takes one of: {', '.join(sorted(known | _RESERVED - {OTHERS}))}",
        )
    verdicts = [*_judge(named, context, asked, known - {OTHERS} if left else known)]
    if left:
        said = f"the record holds {left} more captures, of no probe that this version could ask"
        verdicts.append(_unknown(OTHERS, said, "restore with the release that saved it"))
    return FreshnessReport.of(
        (v.model_copy(update={"accepted": True}) if v.probe in accepted else v for v in verdicts), policy
    )


def _named(captured: Mapping[str, JsonValue], known: Collection[str]) -> dict[str, JsonValue]:
    """The captures of known probes, and the first of those that other probes could have made."""
    others = sorted(name for name in captured if name not in known)
    others = [name for name in others if _NAME.fullmatch(name) and name not in _RESERVED]
    own = [name for name in captured if name in known]
    return {name: captured[name] for name in (*own, *others[:MAX_FOREIGN])}


def _judge(
    captured: Mapping[str, JsonValue], context: Context, probes: Mapping[str, Probe], names: Iterable[str]
) -> Iterable[Verdict]:
    running = {
        name: _Call(lambda name=name, probe=probe: _answer(name, probe.judge(captured[name], context)))  # type: ignore[misc]  # as above
        for name, probe in probes.items()
        if name in captured
    }
    deadline = monotonic() + context.timeout
    for name in names:
        if name in running:
            yield _verdict(name, running[name], deadline, context.timeout)
        elif name in captured:
            yield _unknown(name, "this version has no such probe", "restore with the release that saved it")
        else:
            evidence = "nothing was recorded for it when the checkpoint was saved"
            missing = _unknown(name, evidence, f"`--accept {name}` goes on without it")
            yield missing.model_copy(update={"recorded": False})


def _verdict(name: str, call: _Call[Verdict], deadline: float, timeout: float) -> Verdict:
    try:
        return call.result(deadline)
    except TimeoutError:
        return _unknown(name, f"no answer within {timeout:g} seconds", None)
    except Exception as error:  # whatever a probe raises, the answer is that we do not know
        return _unknown(name, f"the probe failed: {_said(error)}", None)


def _answer(name: str, verdict: Verdict) -> Verdict:
    """The verdict with texts that are bounded and inert; a probe answers for itself only."""
    if not isinstance(verdict, Verdict) or verdict.probe != name or verdict.accepted or not verdict.recorded:
        return _unknown(name, "the probe did not answer for itself", None)
    texts = {"evidence": safe(verdict.evidence), "remedy": verdict.remedy and safe(verdict.remedy)}
    return Verdict.model_validate(verdict.model_dump() | texts)


def _unknown(name: str, evidence: str, remedy: str | None) -> Verdict:
    return Verdict(probe=name, state="UNKNOWN", evidence=safe(evidence), remedy=remedy)


def _said(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # an error that cannot even be put into words
        return type(error).__name__


def safe(text: str) -> str:
    """The text on one line, without anything that steers a terminal, and no longer than evidence may be."""
    return shorten(one_line(text[: 4 * MAX_EVIDENCE]), MAX_EVIDENCE)


class _Call(Generic[T]):
    """One function running in a daemon thread: a hanging probe delays neither the others nor the exit.

    Not `apart` it is run at once: for what waits for nothing, a thread at each save costs more than it does.
    """

    def __init__(self, function: Callable[[], T], *, apart: bool = True) -> None:
        self._outcome: list[T] = []
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None
        if not apart:
            self._run(function)
            return
        self._thread = threading.Thread(target=self._run, args=(function,), daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:  # no more threads: too many, or the program is ending
            self._error = error

    def _run(self, function: Callable[[], T]) -> None:
        try:
            self._outcome.append(function())
        except Exception as error:  # handed to the thread that asks for the result
            self._error = error
        except BaseException as error:  # a probe must not end the program either
            self._error = RuntimeError(type(error).__name__)

    def result(self, deadline: float) -> T:
        """What the function returned, or what it raised; `TimeoutError` after the deadline."""
        if self._thread is not None and self._thread.ident is not None:
            self._thread.join(max(0.0, deadline - monotonic()))
        if self._error is not None:
            raise self._error
        if not self._outcome:
            raise TimeoutError
        return self._outcome[0]
