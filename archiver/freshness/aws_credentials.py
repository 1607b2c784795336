"""AWS credentials by reference: where they lie, when they expire, and whose they are, as STS says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from archiver.aws import presigned, profiles
from archiver.aws.options import AwsOptions
from archiver.freshness import statements
from archiver.freshness.age import span
from archiver.freshness.network import place_of
from archiver.freshness.resources import World
from archiver.freshness.unasked import Unasked

_LONGEST_SIGNED: Final = 16 << 10
_ACCOUNT = re.compile(rb"<Account>([0-9]{12})</Account>")
_ARN = re.compile(rb"<Arn>(arn:[!-;=?-~]{1,1000})</Arn>")
_PROFILE_EXPIRY: Final = (
    "aws_expiration",
    "x_security_token_expires",
    "aws_credential_expiration",
    "expiration",
)
_ELSEWHERE: Final = {
    "sso_session": "SSO", "sso_start_url": "SSO", "role_arn": "role",
    "web_identity_token_file": "web identity", "credential_process": "program", "login_session": "login",
}  # fmt: skip
CLOCK_SKEW: Final = timedelta(minutes=4)
"""STS refuses signatures that are older than five."""
MACHINE: Final = "role of the machine"


@dataclass(frozen=True, slots=True)
class Kept:
    """What of them can be seen on this machine without asking anybody."""

    kind: str
    key: str | None = None
    """The beginning and the end of the access key id."""
    expires: datetime | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose credentials they are; a role without the name of its session, which differs each time."""

    account: str
    arn: str


class NotAcceptedError(Exception):
    """STS says that these credentials are none, or have expired."""


def kept(profile: str | None, world: World) -> Kept | None:
    """Credentials or the place to get them from, as configured here; None where nothing is."""
    environ = world.context.environ
    if profile is None and environ.get("AWS_ACCESS_KEY_ID") and environ.get("AWS_SECRET_ACCESS_KEY"):
        expires = statements.moment(environ.get("AWS_CREDENTIAL_EXPIRATION"))
        return Kept("environment", _short(environ["AWS_ACCESS_KEY_ID"]), expires)
    found = profiles.profile(profile)
    if found and (key := found.get("aws_access_key_id")) and "role_arn" not in found:
        moments = [statements.moment(found[name]) for name in _PROFILE_EXPIRY if name in found]
        return Kept("profile", _short(key), min((m for m in moments if m is not None), default=None))
    for name, kind in _ELSEWHERE.items():
        if found and found.get(name):
            return Kept(kind)
    return Kept(MACHINE) if _has_role(environ) else None


def _has_role(environ: Mapping[str, str]) -> bool:
    """Whether the environment says that this machine is given a role."""
    return any(
        environ.get(name)
        for name in (
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
        )
    )


def _short(key: str) -> str:
    return f"{key[:4]}…{key[-4:]}" if len(key) >= 16 else "…"


def identity(profile: str | None, world: World) -> Identity:
    """Account and ARN from STS; `Unasked` where it is not asked, `NotAcceptedError` where it refuses."""
    world.network.check_used()
    options = AwsOptions(
        region=world.context.aws.region,
        profile=profile,
        timeout=max(1.0, min(5.0, world.context.timeout / 2)),
    )
    world.network.check(place_of(_address(options, signed=False), longest=_LONGEST_SIGNED))
    place = place_of(_address(options, signed=True), longest=_LONGEST_SIGNED)
    answer = world.network.ask("GET", place, limit=64 << 10)
    if answer.status in (400, 401, 403):
        _check_clock(answer.headers.get("date", ""), datetime.now(UTC))
        raise NotAcceptedError(f"STS does not accept these credentials (status {answer.status})")
    account, arn = _ACCOUNT.search(answer.body), _ARN.search(answer.body)
    if account is None or arn is None:
        raise Unasked(f"STS gives no identity (status {answer.status})")
    return Identity(account[1].decode(), _without_session(arn[1].decode()))


def _check_clock(stated: str, now: datetime) -> None:
    """`Unasked` where the two clocks differ: then a signature is refused whosever it is."""
    there = statements.moment(stated)
    if there is not None and abs(there - now) > CLOCK_SKEW:
        raise Unasked(
            f"STS refuses requests of this machine, whose clock is {span(abs(there - now))} from its own",
            "set the clock of this machine",
        )


def _address(options: AwsOptions, *, signed: bool) -> str:
    try:
        return presigned.caller_identity(options, signed=signed)
    except presigned.NotSignedError as error:
        raise Unasked(f"not contacted: {error}", "log in to AWS") from error


def _without_session(arn: str) -> str:
    """`arn:aws:sts::1:assumed-role/Deploy/session` → `arn:aws:sts::1:assumed-role/Deploy`"""
    start, role, rest = arn.partition(":assumed-role/")
    return f"{start}{role}{rest.partition('/')[0]}" if role else arn
