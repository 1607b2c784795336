"""Requests that this process sends through boto3, counted where they leave it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from botocore.httpsession import URLLib3Session


@contextmanager
def counted() -> Iterator[list[str]]:
    """Method and address of each request that is sent meanwhile, by any thread and client."""
    sent: list[str] = []
    real = URLLib3Session.send

    def send(self: URLLib3Session, request: Any) -> Any:
        sent.append(f"{request.method} {request.url}")
        return real(self, request)

    URLLib3Session.send = send
    try:
        yield sent
    finally:
        URLLib3Session.send = real
