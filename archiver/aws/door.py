"""The one door to boto3: clients for S3, KMS and STS, and what their failures mean.

Importing this module takes a while; import it where a client is made, never at the top of a command.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any, Final

import boto3
import botocore.session
import urllib3
from awscrt import checksums
from botocore import UNSIGNED
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.loaders import create_loader
from botocore.parsers import ResponseParserError
from botocore.utils import parse_timestamp

from archiver.aws.options import AwsOptions

__all__ = [
    "FAILURES",
    "UNSIGNED",
    "AWSRequest",
    "BotoCoreError",
    "ClientError",
    "client",
    "code_of",
    "crc64nvme",
    "credentials_from",
    "is_expired",
    "settings_of",
]

FAILURES: Final = (
    *(ClientError, BotoCoreError, ResponseParserError),
    *(urllib3.exceptions.HTTPError, HTTPException, OSError),
)
"""What calls of boto3, and reading what they give, raise when the service or the network fails."""

_LOADER = create_loader()
"""The descriptions of services, read once for all clients: reading them is most of making a client."""


def client(service: str, options: AwsOptions, **config: Any) -> Any:
    """A boto3 client for `service`; `config` are further botocore settings.

    Credentials come from where the AWS tools look for them.
    """
    core = botocore.session.get_session()
    core.register_component("data_loader", _LOADER)
    core.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=moment)
    session = boto3.session.Session(
        profile_name=options.profile, region_name=options.region, botocore_session=core
    )
    settings = Config(
        retries={"mode": "adaptive", "total_max_attempts": options.attempts},
        connect_timeout=min(10.0, options.timeout),
        read_timeout=options.timeout,
        max_pool_connections=max(10, options.parallel),
        **config,
    )
    make: Callable[..., Any] = session.client
    return make(service, endpoint_url=options.endpoint_url, config=settings)


def moment(value: Any) -> datetime:
    """A time in an answer, with its zone; most of reading a list would be boto3's own way of doing this."""
    for parse in (datetime.fromisoformat, parsedate_to_datetime) if isinstance(value, str) else ():
        try:
            found = parse(value)
        except ValueError:
            continue
        if found.tzinfo is not None:
            return found
    other: datetime = parse_timestamp(value)
    return other


def credentials_from(options: AwsOptions) -> str | None:
    """Where the AWS tools find credentials, such as `env` or `iam-role`; None where they find none."""
    try:
        found = boto3.session.Session(profile_name=options.profile).get_credentials()
    except FAILURES:
        return None
    return None if found is None else str(found.method)


def settings_of(profile: str | None) -> dict[str, str]:
    """The texts that the AWS configuration has for a profile, credentials among them; nobody is asked."""
    core = botocore.session.Session(profile=profile)
    return {name: value for name, value in core.get_scoped_config().items() if isinstance(value, str)}


def code_of(error: ClientError) -> str:
    """The service's own word for the error, such as `NoSuchKey`."""
    return str(error.response.get("Error", {}).get("Code", ""))


def is_expired(error: RuntimeError) -> bool:
    """Whether boto3 got new credentials that have expired like the old ones: it has no class for that."""
    return "still expired" in str(error)


def crc64nvme(data: Any, before: int = 0) -> int:
    """The CRC-64/NVME of `data` after bytes whose own is `before`."""
    return int(checksums.crc64nvme(data, before))
