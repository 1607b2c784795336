"""Probe `credentials`: whether the credentials that a run needs are still there, good, and of the same owner.

They are named and never told: `env:NAME`, `file:path`, `aws:` (those of the store) or `aws:profile`. What is
remembered is that one was there, its kind, its expiry and scope as it states them itself, and whose it is.
Neither a value nor a digest of one is: a digest of a short value can be guessed from.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from archiver import jsonio
from archiver.freshness import aws_credentials, statements
from archiver.freshness.age import span
from archiver.freshness.aws_credentials import MACHINE, NotAcceptedError
from archiver.freshness.file_resource import path_of
from archiver.freshness.network import Network
from archiver.freshness.probe import Context
from archiver.freshness.resources import REDACTED, GoneError, Token, World, side_by_side, within
from archiver.freshness.unasked import Unasked
from archiver.freshness.verdict import Finding, Verdict, together
from archiver.model import JsonValue, utc_text

MAX_CREDENTIALS: Final = 32
SOON: Final = timedelta(hours=1)
"""A credential that runs out within this time is worth a warning."""
_MAX_FILE: Final = 1 << 20
_ROOM: Final = 12 << 10
_VARIABLE = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]{0,127})")
_PROFILE = re.compile(r"aws:([A-Za-z0-9][A-Za-z0-9._@+-]{0,127})?")
_BY_HAND: Final = "look at it by hand"
_RENEW = "get a new one before going on; `--accept credentials` goes on anyway"


class NotHereError(Unasked):
    """Nothing lies on this machine; a role that it is given by others may still be there."""


class CredentialsProbe:
    """Missing, expired, or of another owner: STALE; what cannot be found out: UNKNOWN."""

    name = "credentials"

    def capture(self, context: Context) -> JsonValue | None:
        """`{credentials: [{at, present, kind, expires, scope, …}], left_out}`; None where none is named."""
        named = tuple(dict.fromkeys(context.credentials))
        if not named:
            return None
        world = World(context, Network.of(context))
        rows = side_by_side(
            [partial(_captured, at, world) for at in named[:MAX_CREDENTIALS]],
            world.network.gathered,
            instead=lambda _, reason: {"not_seen": reason},
        )
        kept = within(_ROOM, ({"at": _shown(at), **row} for at, row in zip(named, rows, strict=False)))
        return {"credentials": kept, "left_out": len(named) - len(kept)}

    def judge(self, captured: JsonValue, context: Context) -> Verdict:
        if not isinstance(captured, dict) or not isinstance(rows := captured.get("credentials"), list):
            raise TypeError("the record holds no credentials")
        world = World(context, Network.of(context))
        good = [row for row in rows[:MAX_CREDENTIALS] if isinstance(row, dict)]
        tasks: list[Callable[[], list[Finding]]] = [partial(_judged, row, world) for row in good]
        found = side_by_side(
            tasks,
            world.network.gathered,
            instead=lambda index, reason: [
                Finding("UNKNOWN", f"{good[index].get('at')}: {reason}", _BY_HAND)
            ],
        )
        findings = [finding for each in found for finding in each]
        left_out = captured.get("left_out")
        missing = len(rows) - len(good) + (left_out if isinstance(left_out, int) else 0)
        if missing:
            findings.insert(0, Finding("UNKNOWN", f"{missing} credentials were not remembered", "name fewer"))
        return together(self.name, findings, nothing="no credential was named")


def _shown(at: str) -> str:
    """The reference as it is stored; of what is none, nothing: somebody may have put a value there."""
    if _VARIABLE.fullmatch(at) or _PROFILE.fullmatch(at) or (at.startswith("file:") and len(at) <= 1024):
        return at
    return "a reference of no known form"


def _captured(at: str, world: World) -> Token:
    try:
        seen = _look(at, world)
    except Unasked as reason:
        return {"not_seen": reason.evidence}
    except GoneError as gone:
        return {"present": False, "why": str(gone)}
    if not at.startswith("aws:"):
        return seen
    return seen | {name: value for name, value in _identity(at, world).items() if name != "remedy"}


def _look(at: str, world: World) -> Token:
    """What can be seen without asking anybody; `GoneError` where there is no such credential."""
    if found := _VARIABLE.fullmatch(at):
        value = world.context.environ.get(found[1], "").strip()
        if not value:
            raise GoneError("the variable is not set")
        return _row(statements.of_value(value))
    if found := _PROFILE.fullmatch(at):
        kept = aws_credentials.kept(found[1] or world.context.aws.profile, world)
        if kept is None and "arn" not in _identity(at, world):
            raise NotHereError("there are no AWS credentials on this machine", "log in to AWS")
        kept = kept or aws_credentials.Kept(MACHINE)
        return _row(statements.Stated(kept.kind, kept.expires)) | ({"key": kept.key} if kept.key else {})
    if at.startswith("file:"):
        return _row(statements.of_file(_content(at, world)))
    raise Unasked("it is no reference", "name it as env:NAME, aws:profile or file:path")


def _row(seen: statements.Stated) -> Token:
    row: Token = {"present": True, "kind": seen.kind}
    if seen.expires is not None:
        row["expires"] = utc_text(seen.expires)
    if seen.scope:
        row["scope"] = list(seen.scope)
    if seen.renews:
        row["renews"] = True
    if seen.unread:
        row["unread"] = True
    return row


def _content(at: str, world: World) -> str:
    """The text of a file; links are followed, as the programs that use it do, but only to a regular file."""
    path = path_of(at, world)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise Unasked("it is no regular file")
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise GoneError("there is no such file") from error
    except (OSError, ValueError) as error:
        raise Unasked("it cannot be opened") from error
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Unasked("it is no regular file")
        content = os.read(handle, _MAX_FILE + 1)
    except OSError as error:
        raise Unasked("it cannot be read") from error
    finally:
        os.close(handle)
    if len(content) > _MAX_FILE:
        raise Unasked(f"it is larger than {_MAX_FILE} bytes")
    if not content.strip():
        raise GoneError("the file is empty")
    return content.decode("utf-8", "replace")


def _identity(at: str, world: World) -> Token:
    """`{account, arn}` of AWS credentials, or why that is not known."""
    try:
        found = aws_credentials.identity(at.removeprefix("aws:") or world.context.aws.profile, world)
    except Unasked as reason:
        return {"identity_not_seen": reason.evidence, "remedy": reason.remedy}
    except NotAcceptedError as refused:
        return {"refused": str(refused)}
    return {"account": found.account, "arn": found.arn}


def _judged(row: Token, world: World) -> list[Finding]:
    at = row.get("at")
    if not isinstance(at, str) or REDACTED in jsonio.dumps(row).decode():
        return [Finding("UNKNOWN", "a credential was taken out of what was remembered of one")]
    what = at.removesuffix(":")
    if row.get("present") is not True:
        why = row.get("not_seen", row.get("why"))
        said = why[:300] if isinstance(why, str) else "no reason is recorded"
        return [Finding("UNKNOWN", f"{what}: not seen at the save ({said})", _BY_HAND)]
    try:
        now = _look(at, world)
    except Unasked as reason:
        if isinstance(reason, NotHereError) and row.get("kind") != MACHINE:
            return [Finding("STALE", f"{what}: {reason}", reason.remedy)]
        return [reason.finding(what)]
    except GoneError as gone:
        return [Finding("STALE", f"{what}: {gone}", f"set it again: {_RENEW}")]
    return list(_compared(at, row, now, world))


def _compared(at: str, then: Token, now: Token, world: World) -> Iterator[Finding]:
    what = at.removesuffix(":")
    yield _lasting(what, now, world.context.now)
    lost = sorted(_words(then) - _words(now))
    if lost:
        yield Finding("STALE", f"{what}: it is not good for {', '.join(lost)} any more", _RENEW)
    if now["kind"] != then.get("kind"):
        yield Finding(
            "UNKNOWN",
            f"{what}: of another kind than then ({then.get('kind')}; now {now['kind']})",
            "look at it by hand",
        )
    if at.startswith("aws:"):
        yield _same_owner(what, then, _identity(at, world))


def _words(row: Token) -> set[str]:
    scope = row.get("scope")
    return {str(word) for word in scope} if isinstance(scope, list) else set()


def _lasting(at: str, now: Token, moment: datetime) -> Finding:
    kind, written = now["kind"], now.get("expires")
    if not isinstance(written, str):
        if now.get("unread"):
            said = f"{at}: there ({kind}), and it cannot be told when it expires"
            return Finding("UNKNOWN", said, "look when it expires")
        return Finding("FRESH", f"{at}: there ({kind}), and states no expiry")
    end = datetime.fromisoformat(written)
    left = end - moment
    when = f"{end:%Y-%m-%d %H:%M:%S} UTC"
    if left <= timedelta():
        said = f"{at}: expired at {when}, {span(-left)} ago"
        if now.get("renews"):
            return Finding(
                "UNKNOWN", f"{said}; a refresh token lies beside it", "log in again if it is refused"
            )
        return Finding("STALE", said, _RENEW)
    if left <= SOON:
        return Finding("UNKNOWN", f"{at}: expires in {span(left)}, at {when}", "get a new one soon")
    return Finding("FRESH", f"{at}: there ({kind}), expires at {when}")


def _same_owner(at: str, then: Token, now: Token) -> Finding:
    if isinstance(refused := now.get("refused"), str):
        return Finding("STALE", f"{at}: {refused}", _RENEW)
    if "arn" not in now:
        return Finding("UNKNOWN", f"{at}: whose it is: {now['identity_not_seen']}", str(now["remedy"]))
    if not isinstance(then.get("arn"), str):
        return Finding("UNKNOWN", f"{at}: whose it was was not seen at the save", "compare it by hand")
    if (then["arn"], then.get("account")) != (now["arn"], now["account"]):
        return Finding("STALE", f"{at}: then of {then['arn']}, now of {now['arn']}", "use those of the run")
    return Finding("FRESH", f"{at}: of {now['arn']} as then")
