"""Write down what is done: a line of the local file first, then, for an action, an object in the store."""

from __future__ import annotations

import os
import pwd
import secrets
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from archiver import __version__, jsonio, layout
from archiver.age.hints import fingerprint
from archiver.audit import entries, journal
from archiver.audit.cleaning import NAME, Clean, unicode
from archiver.catalog import Catalog
from archiver.errors import ArchiverError, RefusedError, StoreDeniedError
from archiver.model.audit import MAX_WHY, Act, Action, AuditEntry, AuditLine
from archiver.parallel import in_time
from archiver.setup.evidence import is_exported

if TYPE_CHECKING:
    from archiver.setup import Setup

MAX_RUNS: Final = 1000
"""Runs that an audit object about several names."""

RETRY: Final = 600.0
"""Seconds after which a store that took nothing is tried again: each try may take long."""
WAIT: Final = 15.0
"""Seconds that an action waits for its object in the store."""
MAX_DETAIL: Final = 128 << 10
"""Bytes of what is told of an action besides."""

LOUD: Final = "BREAK-GLASS"
"""Warnings about the use of a key for emergencies begin with it."""
_BREAK_GLASS = (
    LOUD + ": the emergency identity {key} {what}; it was written down, and whoever keeps that key "
    "should know why"
)


def is_break_glass(setup: Setup, opened_by: str | None) -> bool:
    """Whether the identity with that fingerprint is one for emergencies, by `keys.break_glass`."""
    named = setup.settings.keys.break_glass
    return opened_by is not None and any(opened_by in (one, fingerprint(one)) for one in named)


def note(
    setup: Setup,
    action: Action,
    *,
    run: str | None,
    seq: int | None = None,
    opened_by: str | None = None,
    break_glass: bool = False,
    detail: Mapping[str, Any] = {},
    local: bool = False,
) -> tuple[str, ...]:
    """Write down that somebody does this; gives warnings for them. Call it before it is done.

    `run` is None for an action on several runs. An `open` goes into the local file at once, and into the
    store with the action that it belongs to, or with `finish`. Raises `AuditError` if the line cannot be
    written, and then the action must not be carried out; that the store takes nothing is a warning. `local`
    asks the store for nothing, where it is known to be away.
    """
    session = setup.session
    loud = break_glass or is_break_glass(setup, opened_by)
    act = _act(setup, action, run, seq, opened_by, loud, detail)
    _write_line(setup, act)
    with session.lock:
        if action == "open":
            session.opened[run or "", opened_by or "", loud] += 1
            if loud:
                session.loud[opened_by or ""] += 1
            return ()
        if session.within and session.within != action:
            return ()
        return (*_loudly(setup, act), *(() if local else _put(setup, act)))


@contextmanager
def within(setup: Setup, action: str) -> Iterator[None]:
    """What is done meanwhile is a part of this action: it has its lines, and the store no objects of it."""
    session = setup.session
    before, session.within = session.within, action
    try:
        yield
    finally:
        session.within = before


def finish(setup: Setup) -> tuple[str, ...]:
    """Put into the store what was opened and belongs to no action yet, as one object; gives warnings.

    For the end of a command, or of a program's own look at many bundles.
    """
    session = setup.session
    with session.lock:
        waiting = (*session.warnings, *_untold(setup))
        session.warnings.clear()
        if not session.opened:
            return waiting
        runs = {run for run, _, _ in session.opened}
        keys = {key for _, key, _ in session.opened}
        loud = any(one for _, _, one in session.opened)
        run = next(iter(runs)) if len(runs) == 1 else None
        detail: dict[str, Any] = {"objects": sum(session.opened.values()), "runs": len(runs)}
        if len(keys) > 1:
            detail["identities"] = sorted(keys)[:MAX_RUNS]
        opened_by = next((key for _, key, one in session.opened if one), min(keys)) if keys else None
        act = _act(setup, "open", run, None, opened_by or None, loud, detail)
        return (*waiting, *_put(setup, act))


def _untold(setup: Setup) -> tuple[str, ...]:
    """Warnings of break-glass identities that no action has given."""
    loud = setup.session.loud
    said = tuple(
        _BREAK_GLASS.format(key=key, what=f"opened {count} bundle{'' if count == 1 else 's'}")
        for key, count in loud.items()
    )
    loud.clear()
    return said


def _loudly(setup: Setup, act: Act) -> tuple[str, ...]:
    if not act.break_glass:
        return ()
    setup.session.loud.pop(act.opened_by or "", None)
    about = f"run {act.run}" if act.run else "several runs"
    if act.seq:
        about = f"checkpoint {act.seq} of {about}"
    key = act.opened_by or "of keys.break_glass"
    return (_BREAK_GLASS.format(key=key, what=f"was used to {act.action} {about}"),)


def _act(
    setup: Setup,
    action: Action,
    run: str | None,
    seq: int | None,
    opened_by: str | None,
    break_glass: bool,
    detail: Mapping[str, Any],
) -> Act:
    who, why = who_and_why(setup)
    clean = Clean(setup)
    return Act(
        at=datetime.now(UTC),
        action=action,
        run=None if run is None else unicode(run),
        seq=seq,
        who=who,
        uid=os.getuid(),
        sudo_user=_sudo_user(clean),
        why=why,
        opened_by=opened_by,
        break_glass=break_glass,
        within=setup.session.within,
        command=setup.session.command or _program(clean),
        software=f"checkpoint-archiver {__version__}",
        detail=_bounded(clean.value(dict(detail))),
    )


def _bounded(detail: dict[str, Any]) -> dict[str, Any]:
    """A line that nobody can read back is none: of a detail without end its size alone is told."""
    jsonio.check(detail)
    size = len(journal.text(detail))
    return detail if size <= MAX_DETAIL else {"left_out": size}


def _write_line(setup: Setup, act: Act) -> None:
    def document(previous: str | None) -> dict[str, Any]:
        line = AuditLine(
            **act.model_dump(),
            store=setup.store_id,
            url=Clean(setup).url(setup.store.url),
            previous=previous,
        )
        return line.document()

    journal.append(journal.place(setup.settings), document)


def who_and_why(setup: Setup) -> tuple[str, str]:
    """Who acts, and the reason they gave, free of credentials."""
    clean = Clean(setup)
    configured = setup.settings.audit.who
    return clean.text(configured) if configured else _user_and_host(), clean.text(setup.why)


def _put(setup: Setup, act: Act) -> tuple[str, ...]:
    """Put what was done into the store; what keeps it from being put is a warning, once."""
    session = setup.session
    opened = _opened(setup, act.run)
    waits = session.local_only and time.monotonic() - session.local_since < RETRY
    if waits or not setup.settings.audit.store:
        return ()
    try:
        _refuse_evidence(setup.store.url)
        in_time(lambda: _object(setup, act, opened), WAIT, name="audit")
    except ArchiverError as error:
        why = "this role may not write to the store" if isinstance(error, StoreDeniedError) else str(error)
        said = (f"audit: local only, because {why}",) if why != session.local_only else ()
        session.local_only, session.local_since = why, time.monotonic()
        return said
    session.local_only = ""
    return ()


def _object(setup: Setup, act: Act, opened: dict[str, int]) -> None:
    key = setup.require_signing_key()
    run = act.run or layout.SEVERAL_RUNS
    entry = AuditEntry(
        **act.model_dump(),
        store=setup.require_store_id(),
        task=_task(setup, act.run),
        by=key.public,
        opened=opened,
    )
    sealed = entries.encode(entry, key, setup.recipients_for(run, entry.task, "audit"))
    name = layout.audit_name(entry.at, run, secrets.token_hex(8))
    setup.store.create(name, [sealed], retention="record")


def _refuse_evidence(url: str) -> None:
    """Nothing is added to an exported run: it is to stay as it was handed over."""
    if is_exported(url):
        raise RefusedError("this is an exported run, to which nothing is added")


def _opened(setup: Setup, run: str | None) -> dict[str, int]:
    """The bundles that were opened for an action on this run, or on several; they are told with it."""
    session = setup.session
    told = [key for key in session.opened if run is None or key[0] == run]
    found: dict[str, int] = {}
    for key in told:
        found[key[0]] = found.get(key[0], 0) + session.opened.pop(key)
    return dict(sorted(found.items())[:MAX_RUNS])


def _task(setup: Setup, run: str | None) -> str:
    if run is None:
        return layout.SEVERAL_RUNS
    tasks = setup.session.tasks
    if run not in tasks:
        head = Catalog(setup).head(run)
        tasks[run] = head.record.task if head is not None else layout.SEVERAL_RUNS
    return tasks[run]


def _program(clean: Clean) -> str:
    name = Path(sys.argv[0] if sys.argv else "").name
    return name if NAME.fullmatch(name) else clean.text(name)


def _sudo_user(clean: Clean) -> str | None:
    """Who became another user with sudo: the environment says it, and may hold anything."""
    name = os.environ.get("SUDO_USER")
    if not name:
        return None
    try:
        return pwd.getpwnam(name).pw_name
    except (KeyError, ValueError):
        return clean.text(name)


def _user_and_host() -> str:
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = str(os.getuid())
    return unicode(f"{user}@{socket.gethostname()}")[:MAX_WHY]
