"""What an object is and whose: keys that live in a service are bound to it, key files are not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from archiver.age.protocols import Identity, Recipient

ObjectKind = Literal["record", "bundle", "effect", "note"]


@dataclass(frozen=True, slots=True)
class Context:
    """The encryption context of one object: in clear, so redacted ids only.

    `task` is None where it is not known yet: whoever opens a record learns it from the record, and compares.
    """

    application: str
    run: str
    task: str | None
    object: ObjectKind


@runtime_checkable
class BindableRecipient(Recipient, Protocol):
    """A recipient that wraps differently for every context, and not at all without one."""

    def bound(self, context: Context) -> Recipient:
        """The recipient for objects of this context; its task must be known."""


@runtime_checkable
class BindableIdentity(Identity, Protocol):
    """An identity that opens an object only under the context it was sealed in."""

    def bound(self, context: Context) -> Identity:
        """The identity for objects of this context."""


def bind_recipients(recipients: Iterable[Recipient], context: Context) -> tuple[Recipient, ...]:
    """The recipients as they seal an object of this context."""
    return tuple(r.bound(context) if isinstance(r, BindableRecipient) else r for r in recipients)


def bind_identities(identities: Iterable[Identity], context: Context) -> tuple[Identity, ...]:
    """The identities as they open an object of this context."""
    return tuple(i.bound(context) if isinstance(i, BindableIdentity) else i for i in identities)
