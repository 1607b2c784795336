"""What an object is and whose: keys that live in a service are bound to it, key files are not.

The context has one text, which stands in clear in a stanza; KMS opens the object under its pairs only:

    application=checkpoint-archiver&object=bundle&run=r-7&task=fix%20the%20parser

Values are percent-encoded: UTF-8, upper-case hex, and all but `A-Z a-z 0-9 - . _ ~` is encoded (RFC 3986).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, Protocol, get_args, runtime_checkable
from urllib.parse import quote, unquote

from archiver.age.protocols import Identity, Recipient
from archiver.errors import ContextMismatchError, HeaderError, UsageError

ObjectKind = Literal["record", "bundle", "effect", "note", "audit"]

_KINDS: dict[str, ObjectKind] = {kind: kind for kind in get_args(ObjectKind)}
_VALUE = r"([A-Za-z0-9._~%-]+)"
_TEXT = re.compile(f"application={_VALUE}&object={_VALUE}&run={_VALUE}&task={_VALUE}")


@dataclass(frozen=True, slots=True)
class Context:
    """The encryption context of one object: in clear, so redacted ids only.

    `task` is None where it is not known yet: whoever opens a record learns it from the record, and compares.
    """

    application: str
    run: str
    task: str | None
    object: ObjectKind

    def pairs(self) -> dict[str, str]:
        """The encryption context as KMS takes it; `UsageError` where the task is not known."""
        if self.task is None:
            raise UsageError(
                f"the task of run {self.run} is not known, so nothing of it can be sealed with KMS"
            )
        return {
            "application": self.application,
            "object": self.object,
            "run": self.run,
            "task": self.task,
        }

    def text(self) -> str:
        """The one text of the context; `UsageError` for values that have none."""
        pairs = self.pairs()
        try:
            text = "&".join(f"{key}={quote(value, safe='')}" for key, value in pairs.items())
        except UnicodeEncodeError:
            text = ""
        if _TEXT.fullmatch(text) is None:
            raise UsageError("application, run and task of an encryption context are not empty, and Unicode")
        return text

    def difference(self, other: Context) -> str | None:
        """What keeps an object of this context from being one of the other; a task of None is any task."""
        expected = other if other.task is not None else replace(other, task=self.task)
        found = self.pairs()
        for key, value in expected.pairs().items():
            if found[key] != value:
                return f"it was sealed for {key} {found[key]!r}, not for {key} {value!r}"
        return None


def demand_context(contexts: Iterable[Context], run: str, task: str, kind: ObjectKind, *, where: str) -> None:
    """`ContextMismatchError` unless all of the contexts are of such an object; `where` names it."""
    for context in contexts:
        difference = context.difference(replace(context, run=run, task=task, object=kind))
        if difference is not None:
            raise ContextMismatchError(f"{where}: {difference}")


def parse_context(text: str) -> Context:
    """The context with exactly that text; `HeaderError` where there is none."""
    values = _TEXT.fullmatch(text)
    context = _decoded(*values.groups()) if values else None
    if context is None or context.text() != text:
        raise HeaderError("the encryption context of a KMS stanza is not written in its one canonical form")
    return context


def _decoded(application: str, kind: str, run: str, task: str) -> Context | None:
    if kind not in _KINDS:
        return None
    try:
        application, run, task = (unquote(value, errors="strict") for value in (application, run, task))
    except UnicodeDecodeError:
        return None
    return Context(application, run, task, _KINDS[kind])


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
    return tuple(r.bound(context) if hasattr(r, "bound") else r for r in recipients)


def bind_identities(identities: Iterable[Identity], context: Context) -> tuple[Identity, ...]:
    """The identities as they open an object of this context."""
    # Not `isinstance`, which looks for every name of a protocol: this is asked for each of very many records.
    return tuple(i.bound(context) if hasattr(i, "bound") else i for i in identities)
