"""Requests to AWS as addresses that are signed and hold all they need: whoever asks them needs no boto3."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from archiver.aws.options import AwsOptions

_SECONDS: Final = 60
"""How long an address is good for."""


class NotSignedError(Exception):
    """No request can be made; the text says why. Stays between this package and its caller."""


def head_object(bucket: str, key: str, options: AwsOptions, *, signed: bool = True) -> str:
    """The address at which HEAD tells of an object; a signed one must not be shown.

    To make one that is not signed no credentials are looked for, which could already ask another host.
    """
    return _address("s3", "head_object", "HEAD", options, {"Bucket": bucket, "Key": key}, signed)


def caller_identity(options: AwsOptions, *, signed: bool = True) -> str:
    """The address at which GET tells whose credentials these are; as of `head_object`."""
    return _address("sts", "get_caller_identity", "GET", options, {}, signed)


def _address(
    service: str, operation: str, method: str, options: AwsOptions, asked: dict[str, str], signed: bool
) -> str:
    from archiver.aws.door import FAILURES, UNSIGNED, client

    signature = "s3v4" if service == "s3" else "v4"
    try:
        # Credentials may have to be fetched: that is tried once.
        made = client(
            service,
            replace(options, attempts=1),
            signature_version=signature if signed else UNSIGNED,
            defaults_mode="legacy",  # the mode `auto` asks the machine's own service where it runs
        )
        url: str = made.generate_presigned_url(operation, Params=asked, ExpiresIn=_SECONDS, HttpMethod=method)
    except (*FAILURES, RuntimeError, ValueError) as error:
        raise NotSignedError(
            f"no request to {service.upper()} could be signed ({type(error).__name__})"
        ) from error
    return url
