"""How to reach a service; light, so that settings can be made into it without loading boto3."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AwsOptions:
    """How to reach a service of AWS, or a server that speaks its protocol."""

    region: str | None = None
    endpoint_url: str | None = None
    profile: str | None = None
    attempts: int = 5
    """How often a request is tried in all."""
    timeout: float = 30.0
    """Seconds to wait for a connection, and for each answer on it."""
    parallel: int = 8
    """Connections kept at the same time."""
