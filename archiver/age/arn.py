"""The ARN of a KMS key, in the one form that is accepted.

    arn:aws:kms:REGION:ACCOUNT:key/ID

ID is a UUID, or `mrk-` and 32 hex digits for a key of several regions: its replicas share the ID, and each
opens what the others wrapped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from archiver.age.hints import fingerprint
from archiver.errors import InvalidKeyError

PREFIX = "arn:"

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_ARN = re.compile(
    rf"(?P<partition>arn:aws[a-z-]*:kms:)(?P<region>[a-z0-9-]+)"
    rf"(?P<key>:[0-9]{{12}}:key/(?:{_UUID}|(?P<several>mrk-[0-9a-f]{{32}})))"
)
_ALIAS = re.compile(r"arn:[^:]*:kms:[^:]*:[^:]*:alias/.*")


@dataclass(frozen=True, slots=True)
class KeyArn:
    """A KMS key by the name that it keeps for ever."""

    text: str
    region: str
    family: str
    """What the replicas of a key have in common; the ARN itself for a key of one region."""

    @property
    def fingerprint(self) -> str:
        """What hints and records call it by."""
        return fingerprint(self.text)

    def __str__(self) -> str:
        return self.text


def parse_arn(text: str) -> KeyArn:
    """The key that the ARN names; `InvalidKeyError` for every other text."""
    found = _ARN.fullmatch(text)
    if found is not None:
        family = found["partition"] + found["key"] if found["several"] else text
        return KeyArn(text, found["region"], family)
    if _ALIAS.fullmatch(text):
        raise InvalidKeyError(
            f"{text!r} is an alias: it can be moved to another key, and then nothing sealed before opens",
            remedy="name the key by its own ARN (…:key/…); `aws kms describe-key --key-id ALIAS` shows it",
        )
    raise InvalidKeyError(
        f"{text!r} is not the ARN of a KMS key",
        remedy="write it as arn:aws:kms:REGION:ACCOUNT:key/ID, with an account of 12 digits",
    )
