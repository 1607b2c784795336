"""What has to be rotated after credentials were found: the worst first, each with what to do.

    findings of a receipt  →  one line for each kind and rule, most dangerous first, a count of the rest

A credential that was found has been read by whoever read the transcript. To replace it in the copy takes
nothing back, so the list says what has to change outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from archiver.model.receipt import Finding
from archiver.model.record import Record

_NAMED: Final = 4
"""Known values that one line names."""
MOST: Final = 10
"""Lines that a list has; what is left is counted."""

_PAIR: Final = "make a new key pair and take the old public key out wherever it is trusted"
_LOGIN: Final = "change the password, and see who has logged in with it"
_SESSION: Final = "end the session or revoke the token at whoever issued it"
_SIGNED: Final = "revoke the key that signed it, or see that the time it is good for is over"
_HOOK: Final = "delete the webhook and make another"
_REVOKE: Final = "revoke it where it was issued, make another, and see what it was used for since"
_KNOWN: Final = "change it wherever it is used, and see what it was used for since"
_NOTHING: Final = "nothing to rotate, as it opens nothing by itself"
_DENSE: Final = "look into the original: there were too many to tell them apart"

_BY_WORD: Final[tuple[tuple[str, int, str], ...]] = (
    ("private-key", 0, _PAIR),
    ("age-secret-key", 0, _PAIR),
    ("wallet-key", 0, "move what it holds to a new wallet"),
    ("wireguard-key", 1, _PAIR),
    ("vapid-key", 2, _PAIR),
    ("webhook", 3, _HOOK),
    ("password", 2, _LOGIN),
    ("basic-login", 2, _LOGIN),
    ("cookie", 3, _SESSION),
    ("jwt", 3, _SESSION),
    ("authorization", 3, _SESSION),
    ("url-signature", 4, _SIGNED),
    ("otp-secret", 2, "enrol the second factor anew"),
)
_FIRST: Final = (
    *("aws-", "azure-", "google-oauth", "gcs-", "alibaba-", "tencent-", "ibm-cloud", "yandex-"),
    *("kubernetes-", "openshift-", "vault-", "okta-", "onepassword-", "infisical-", "doppler-", "terraform-"),
    *("pulumi-", "known-value"),
)
"""Beginnings of kinds that open a whole account, cluster or store of secrets, or that somebody named."""
_LAST: Final = ("secret", "dense")
_IDENTIFIERS: Final = frozenset(
    (
        *("age-recipient", "aws-account", "aws-arn", "email", "ip-address", "oauth-client-id"),
        *("private-address", "private-host", "public-address", "ssh-public-key"),
        *("storage-host", "storage-path", "tenant-host", "user-name"),
    )
)
"""Kinds of the packs: what names something and opens nothing."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """One kind of credential that was found by one rule."""

    rule: str
    kind: str
    about: str
    different: int
    """How many different ones."""
    count: int
    """In how many places, all together."""
    places: tuple[str, ...]
    step: str

    def line(self) -> str:
        """The same on one line."""
        many = f"{self.different} different" if self.different > 1 else "1"
        where = f", in {self.places[0]}" if self.places else ""
        more = f" and {self.count - 1} more" if self.count > 1 and self.places else ""
        about = f" ({self.about})" if self.about else ""
        return f"{self.kind}{about}: {many}{where}{more}: {self.step}"


def rotations(findings: Iterable[Finding]) -> list[Rotation]:
    """What to rotate, the worst first."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.kind, finding.rule), []).append(finding)
    made = [
        Rotation(
            rule=rule,
            kind=kind,
            about=_about(group),
            different=len({finding.fingerprint for finding in group}),
            count=sum(finding.count for finding in group),
            places=tuple(dict.fromkeys(place for finding in group for place in finding.places)),
            step=_step(kind),
        )
        for (kind, rule), group in groups.items()
    ]
    return sorted(made, key=lambda one: (rank(one.kind), -one.different, one.kind, one.rule))


def _about(group: list[Finding]) -> str:
    """What the findings of one rule are about; known values have names of their own."""
    told = list(dict.fromkeys(finding.about for finding in group))
    more = f" and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
    return ", ".join(told[:_NAMED]) + more


def lines(findings: Iterable[Finding], most: int = MOST) -> list[str]:
    """The list as text: at most so many lines, and one that counts the rest."""
    found = rotations(findings)
    shown = [one.line() for one in found[:most]]
    if rest := found[most:]:
        different = sum(one.different for one in rest)
        shown.append(f"and {different} more of {len(rest)} kinds, which the receipt lists")
    return shown


def by_rank(findings: Mapping[str, int]) -> list[tuple[str, int]]:
    """Counts by rule, the worst first, where the rules' names are all that is known."""
    return sorted(findings.items(), key=lambda one: (rank(one[0]), one[0]))


def replaced_before(records: Iterable[Record], record: Record) -> tuple[str, ...]:
    """What checkpoints of the run before `record` replaced and it did not, each with the newest of them.

    A run that goes on from what was handed over has the placeholders in its transcript, so nothing is found
    there any more; what was found once stays to be rotated.
    """
    found: dict[str, tuple[int, int]] = {}
    for one in records:
        if one.seq < record.seq and one.bundle is not None:
            found |= {rule: (count, one.seq) for rule, count in one.findings.items() if count}
    left = {rule: count for rule, (count, _) in found.items() if not record.findings.get(rule)}
    told = [
        f"{rule:.80} ({count}) in checkpoint {found[rule][1]}"
        for rule, count in by_rank(left)
        if rank(rule) != rank("email")
    ]
    more = (f"and {len(told) - MOST} more kinds: `archiver show` tells of each checkpoint",)
    return (*told[:MOST], *(more if len(told) > MOST else ()))


def rank(kind: str) -> int:
    """How bad it is that somebody has it: 0 is the worst."""
    if kind.startswith(_FIRST):
        return 0
    if kind in _LAST:
        return 5
    if kind in _IDENTIFIERS:
        return 6
    return next((rank for word, rank, _ in _BY_WORD if word in kind), 1)


def _step(kind: str) -> str:
    if kind in _IDENTIFIERS:
        return _NOTHING
    if kind == "known-value":
        return _KNOWN
    if kind == "dense":
        return _DENSE
    return next((step for word, _, step in _BY_WORD if word in kind), _REVOKE)
