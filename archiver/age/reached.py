"""Whom an object is sealed to where the service of a key may be away.

The keys of those that are there are in hand before the first byte is sealed, so what is signed of them is so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from archiver.age.kms import KmsRecipient
from archiver.age.protocols import Recipient
from archiver.errors import KMS_AWAY, ArchiverError


@dataclass(frozen=True, slots=True)
class Reached:
    """Recipients for one object, and who should have been among them."""

    recipients: tuple[Recipient, ...]
    missing: tuple[str, ...] = ()
    """Fingerprints of those that could not be asked."""

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """Whom the object can be opened by."""
        return tuple(recipient.fingerprint for recipient in self.recipients)


def reached(recipients: Iterable[Recipient]) -> Reached:
    """Those of `recipients`, bound to one object, that can be sealed to now: KMS may be away for the others.

    KMS is asked here, for one object. Credentials that have expired count as away. Where nobody is left,
    raises the error of the first; and what else KMS answers with, such as `KmsDeniedError` and
    `KmsKeyDisabledError`: that it was asked.
    """
    there: list[Recipient] = []
    missing: list[str] = []
    first: ArchiverError | None = None
    for recipient in recipients:
        try:
            there.append(recipient.in_hand() if isinstance(recipient, KmsRecipient) else recipient)
        except KMS_AWAY as error:
            missing.append(recipient.fingerprint)
            first = first or error
    if first is not None and not there:
        raise first
    return Reached(tuple(there), tuple(missing))
