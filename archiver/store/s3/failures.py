"""What it means when no answer of an S3 server came, or only a part of one."""

from __future__ import annotations

from typing import Final

from archiver import safetext
from archiver.aws.door import BotoCoreError
from archiver.errors import ArchiverError, ConfigError, StoreDeniedError, StoreUnreachableError
from archiver.store.s3.request import Request, damaged, not_understood


def unanswered(error: Exception, request: Request) -> ArchiverError:
    """The error of this package that says what `error` of boto3 or the network means."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds & _NO_CREDENTIALS:
        return no_credentials(error, request)
    if kinds & {"PaginationError", "ResponseParserError"}:
        return not_understood(request.what)
    if kinds & {"FlexibleChecksumError", "ChecksumError"}:
        return damaged(request.what, f"does not have the checksum that {request.where} keeps of it")
    if "SSLError" in kinds:
        return StoreUnreachableError(
            f"no trusted connection to {request.where} for {request.what}: TLS failed",
            remedy="check store.endpoint_url, this machine's clock and its certificates (AWS_CA_BUNDLE names "
            "a file of further authorities)",
        )
    for words, how in _FAILED.items():
        if kinds & words:
            return StoreUnreachableError(f"{request.where} {how} {request.what}", remedy=_CHECK_NETWORK)
    if isinstance(error, BotoCoreError | ValueError):
        # boto3 raises these before it sends anything: a profile, a region or an address it cannot use.
        said = safetext.shorten(safetext.one_line(str(error)), 200) if kinds & _HARMLESS else "not usable"
        return ConfigError(
            f"the AWS configuration for {request.where} is wrong: {type(error).__name__} ({said})",
            remedy="check store.endpoint_url, store.region, store.profile and the AWS configuration",
        )
    return StoreUnreachableError(
        f"the connection to {request.where} failed at {request.what} ({type(error).__name__})",
        remedy=_CHECK_NETWORK,
    )


def no_credentials(error: Exception, request: Request) -> StoreDeniedError:
    """The error of credentials that are not there, or have expired."""
    return StoreDeniedError(
        f"there are no usable credentials for {request.where} ({type(error).__name__})",
        remedy="log in (`aws sso login`, `aws configure`), or set AWS_PROFILE, store.profile or "
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    )


_CHECK_NETWORK: Final = "check the network and store.endpoint_url; run it again when the server answers"
_NO_CREDENTIALS = {
    *("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "NoAuthTokenError"),
    *(
        "TokenRetrievalError",
        "SSOError",
        "LoginError",
        "MetadataRetrievalError",
        "RefreshWithMFAUnsupportedError",
    ),
}
_HARMLESS = {"ProfileNotFound", "InvalidRegionError", "NoRegionError", "ConfigNotFound"}
_FAILED: dict[frozenset[str], str] = {
    frozenset({"ConnectTimeoutError"}): "could not be reached in time for",
    frozenset({"ReadTimeoutError", "TimeoutError"}): "did not answer in time for",
    frozenset({"EndpointConnectionError", "ProxyConnectionError", "ConnectionRefusedError"}): (
        "cannot be connected to for"
    ),
    frozenset(
        {"ConnectionClosedError", "ResponseStreamingError", "IncompleteReadError", "HTTPClientError"}
    ): ("broke the connection off at"),
}
