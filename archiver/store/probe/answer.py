"""One question to an S3 server, and what came back: a value, or why there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from archiver.aws.door import FAILURES, ClientError, code_of
from archiver.errors import ArchiverError
from archiver.store.s3.answers import answered
from archiver.store.s3.client import S3
from archiver.store.s3.failures import unanswered
from archiver.store.s3.request import Request


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; exactly one of `value` and `error` is there."""

    value: dict[str, Any] | None = None
    error: ArchiverError | None = None
    code: str = ""
    """The server's own word for a refusal, such as `AccessDenied`."""
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        """The server did what was asked."""
        return self.error is None

    @property
    def denied(self) -> bool:
        """These credentials may not ask that."""
        return self.status in (401, 403) and not self.unsupported

    @property
    def absent(self) -> bool:
        """There is nothing of the kind, such as no lifecycle configuration."""
        return self.status == 404

    @property
    def unsupported(self) -> bool:
        """The server has nothing of the kind."""
        return self.status in (405, 501) or self.code in ("NotImplemented", "MethodNotAllowed")

    @property
    def refused(self) -> bool:
        """The server looked at what was sent and did not take it."""
        return 400 <= self.status < 500 and not (self.denied or self.unsupported)

    @property
    def said(self) -> str:
        """The refusal in a few words."""
        return self.code or (str(self.status) if self.status else str(self.error))


def ask(s3: S3, operation: str, name: str | None = None, **params: Any) -> Answer:
    """Ask; whatever the server or the network does is an answer."""
    try:
        value = s3.call(operation, name, **params)
    except ArchiverError as error:
        return from_error(error)
    return _answer(value)


def from_error(error: ArchiverError, cause: BaseException | None = None) -> Answer:
    """An error of a store as an answer, with what the server said if it was the server's."""
    cause = cause or error.__cause__
    if not isinstance(cause, ClientError):
        return Answer(error=error)
    told: Any = cause.response.get("ResponseMetadata", {})
    return Answer(error=error, code=code_of(cause), status=_status(told), headers=_headers(told))


def ask_of(client: Callable[[], Any], operation: str, request: Request, **params: Any) -> Answer:
    """The same of another client than the store's own."""
    try:
        value: dict[str, Any] = getattr(client(), operation)(**params)
    except ClientError as error:
        return from_error(answered(error, request), error)
    except FAILURES as error:
        return Answer(error=unanswered(error, request))
    return _answer(value)


def _answer(value: dict[str, Any]) -> Answer:
    told = value.get("ResponseMetadata", {})
    return Answer(value=value, status=_status(told), headers=_headers(told))


def _status(told: dict[str, Any]) -> int:
    return int(told.get("HTTPStatusCode") or 0)


def _headers(told: dict[str, Any]) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in told.get("HTTPHeaders", {}).items()}
