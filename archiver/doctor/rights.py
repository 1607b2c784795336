"""Which rights these credentials have, those they need and those they should not have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from archiver.doctor.check import Check, failure, ok, unknown, warning
from archiver.errors import StoreDeniedError
from archiver.store.probe.answer import Answer

Role = Literal["writer", "create-only writer", "reader", "sweeper", "sweeper that archives"]
Asked = Mapping[str, Answer | None]
"""By right; None where it was not asked."""

READS, OPENS, RETAGS = "s3:GetObject", "kms:Decrypt", "s3:PutObjectTagging on what is there"
_LISTS, _PUTS, _TAGS = "s3:ListBucket", "s3:PutObject", "s3:PutObjectTagging"

_NEEDED: Mapping[Role, tuple[str, ...]] = {
    "writer": (_LISTS, READS, _PUTS, _TAGS),
    "create-only writer": (_LISTS, _PUTS, _TAGS),
    "reader": (_LISTS, READS),
    "sweeper": (_LISTS, READS, RETAGS),
    "sweeper that archives": (_LISTS, READS, RETAGS, _PUTS, _TAGS),
}
SWEEPERS: tuple[Role, ...] = ("sweeper", "sweeper that archives")
_SAVERS: tuple[Role, ...] = ("writer", "create-only writer")


@dataclass(frozen=True, slots=True)
class Excess:
    """A right that a role should not have, and what a thief of its credentials could do with it."""

    right: str
    harm: str
    roles: tuple[Role, ...] = (*_SAVERS, "reader", *SWEEPERS)


EXCESS = (
    Excess(READS, "read what lies there, though sealed", ("create-only writer",)),
    Excess(OPENS, "open what is sealed to KMS", ("create-only writer",)),
    Excess(_PUTS, "put objects", ("reader", "sweeper")),
    Excess(RETAGS, "have what is kept long expire early", (*_SAVERS, "reader")),
    Excess("s3:DeleteObject", "hide or remove objects"),
    Excess("s3:DeleteObjectVersion", "remove versions for good"),
    Excess("s3:BypassGovernanceRetention", "remove what Object Lock holds"),
    Excess("s3:PutLifecycleConfiguration", "let everything expire"),
    Excess("s3:PutBucketPolicy", "open the bucket or lock others out"),
)


def role_of(
    *,
    signs: bool,
    has_file: bool,
    reads: bool,
    opens: bool | None,
    sweeps: bool = False,
    archives: bool = False,
) -> Role:
    """What this configuration is there for, by the keys that are here.

    A key of KMS that is sealed to can always be named as an identity too: where no identity lies in a file,
    who may read and `opens` by KMS is meant to, and who may do one of both alone is not. Of those who change
    classes (`sweeps`), who reads and opens all that it saves is a writer that does so besides; of the others,
    who has a signing key `archives` where it has sources to sweep, or may put.
    """
    writes = signs and (has_file or (reads and opens is True))
    if sweeps and not writes:
        return "sweeper that archives" if signs and archives else "sweeper"
    if not signs:
        return "reader"
    return "writer" if writes else "create-only writer"


def needed(role: Role, asked: Asked) -> Check:
    """Whether nothing is missing for what this configuration is there for."""
    name = "permissions"
    wanted = _NEEDED[role]
    missing = [right for right in wanted if (answer := asked.get(right)) is not None and answer.denied]
    unasked = [right for right in wanted if asked.get(right) is None]
    if missing:
        return failure(
            name,
            f"a {role} needs {', '.join(missing)}, and these credentials lack it",
            "allow it in the policies of the identity and of the bucket (docs/CONFIGURATION.md has a policy)",
            StoreDeniedError,
        )
    if unasked:
        return unknown(name, f"a {role} needs {', '.join(unasked)}: could not be tried")
    return ok(name, f"all that a {role} needs: {', '.join(wanted)}")


def excess(role: Role, asked: Asked) -> list[Check]:
    """What these credentials may do beyond the work of the role, of the rights that mean something here."""
    name = "too many rights"
    of = [one for one in EXCESS if role in one.roles and one.right in asked]
    has = [one for one in of if _granted(asked[one.right])]
    has_not = [one for one in of if _withheld(asked[one.right])]
    unasked = [one for one in of if one not in has and one not in has_not]
    found = []
    if has:
        harm = ", ".join(f"{one.harm} ({one.right})" for one in has)
        found.append(
            warning(
                name,
                f"whoever steals these credentials, those of a {role}, can {harm}",
                "take these rights from them (`terraform/` has a role for each task): an administrator needs "
                "them, and a sweeper of them the change of classes",
            )
        )
    if has_not:
        found.append(ok(name, f"not among them: {', '.join(one.right for one in has_not)}"))
    if unasked:
        found.append(unknown(name, f"not to be found out here: {', '.join(one.right for one in unasked)}"))
    return found


def _granted(answer: Answer | None) -> bool:
    """Done, or refused for what was sent and not for who sent it."""
    return answer is not None and not answer.denied and (answer.done or answer.refused)


def _withheld(answer: Answer | None) -> bool:
    return answer is not None and answer.denied
