"""The one door to boto3: clients for S3, KMS and STS, and what their failures mean.

Importing this module takes a while; import it where a client is made, never at the top of a command.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from archiver.aws.options import AwsOptions

__all__ = ["BotoCoreError", "ClientError", "client", "code_of"]


def client(service: str, options: AwsOptions, **config: Any) -> Any:
    """A boto3 client for `service`; `config` are further botocore settings.

    Credentials come from where the AWS tools look for them.
    """
    session = boto3.session.Session(profile_name=options.profile, region_name=options.region)
    settings = Config(
        retries={"mode": "adaptive", "total_max_attempts": options.attempts},
        connect_timeout=min(10.0, options.timeout),
        read_timeout=options.timeout,
        max_pool_connections=max(10, options.parallel),
        **config,
    )
    make: Callable[..., Any] = session.client
    return make(service, endpoint_url=options.endpoint_url, config=settings)


def code_of(error: ClientError) -> str:
    """The service's own word for the error, such as `NoSuchKey`."""
    return str(error.response.get("Error", {}).get("Code", ""))
