"""What the answers of an S3 server mean that are not "done".

No message repeats what the server said where that could hold a credential.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from archiver import safetext
from archiver.aws.door import ClientError, code_of
from archiver.errors import (
    ArchiverError,
    ClockSkewError,
    ConfigError,
    DamagedError,
    InvalidNameError,
    LimitExceededError,
    ObjectNotFoundError,
    StoreDeniedError,
    StoreError,
    StoreFullError,
    StoreMissingError,
    StoreUnreachableError,
)
from archiver.store.s3.request import (
    SEND_AGAIN,
    UNREADABLE,
    ConditionFailedError,
    ConflictError,
    NoSuchUploadError,
    PastEndError,
    Request,
)

MAX_SKEW: Final = 300.0
"""Seconds that the clocks may differ before a refusal is put down to them; S3 allows 900."""


def answered(error: ClientError, request: Request) -> ArchiverError:
    """The error of this package that says what the answer means."""
    code = code_of(error)
    told: dict[str, Any] = dict(error.response.get("ResponseMetadata", {}))
    status = int(told.get("HTTPStatusCode") or 0)
    skew = skew_of(told)
    if code in _SKEWED or (status in (400, 403) and code not in _NOT_OF_TIME and abs(skew or 0) > MAX_SKEW):
        return _skewed(skew or 0.0, request)
    case = _BY_CODE.get(code) or (_ENCRYPTION if code.startswith("KMS.") else None) or _BY_STATUS.get(status)
    if case is _DENIED and "kms" in str(error).lower():
        case = _ENCRYPTION
    if case is _REGION:
        return _wrong_region(error, request)
    if case is None or (case is _NOT_FOUND and request.name is None):
        return _unknown(error, request)
    return case.error(code, request, tried=1 + int(told.get("RetryAttempts") or 0))


def skew_of(told: dict[str, Any], now: datetime | None = None) -> float | None:
    """Seconds that this machine's clock is ahead of the server's; None if the answer had no time.

    `told` is what boto3 calls `ResponseMetadata`; servers say the time in whole seconds.
    """
    try:
        server = parsedate_to_datetime(told["HTTPHeaders"]["date"])
        return ((now or datetime.now(UTC)) - server).total_seconds()
    except UNREADABLE:
        return None


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """One meaning: the error and what it says, with the words of `Request` in braces."""

    kind: type[ArchiverError]
    message: str
    remedy: str | None = None

    def error(self, code: str, request: Request, *, tried: int) -> ArchiverError:
        words = {
            "code": code,
            "why": _CREDENTIALS.get(code, ""),
            "tried": tried,
            "what": request.what,
            "where": request.where,
            "bucket": request.bucket,
            "name": request.name,
            "action": request.action,
            "operation": request.operation,
        }
        remedy = None if self.remedy is None else self.remedy.format_map(words)
        return self.kind(self.message.format_map(words), remedy=remedy)


def _skewed(skew: float, request: Request) -> ClockSkewError:
    way = "ahead of" if skew > 0 else "behind"
    return ClockSkewError(
        f"{request.where} refused {request.what}: the clock here is {abs(skew):.0f} s {way} the server's",
        seconds=skew,
        remedy="set this machine's clock (`timedatectl set-ntp true`), then run it again",
    )


def _wrong_region(error: ClientError, request: Request) -> ConfigError:
    headers: dict[str, Any] = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    detail: dict[str, Any] = dict(error.response.get("Error", {}))
    region = safetext.one_line(str(headers.get("x-amz-bucket-region") or detail.get("Region") or ""))[:40]
    return ConfigError(
        f"the bucket {request.bucket} is in {region or 'another region'}, and {request.where} refused the "
        f"one that was asked ({code_of(error)})",
        remedy=f"set store.region to {repr(region) if region else 'that of the bucket'}",
    )


def _unknown(error: ClientError, request: Request) -> StoreError:
    told = error.response.get("ResponseMetadata", {})
    asked = safetext.one_line(str(told.get("RequestId") or "unknown"))[:80]
    word = safetext.one_line(code_of(error) or str(told.get("HTTPStatusCode")))[:80]
    return StoreError(
        f"{request.where} refused {request.operation} of {request.what}: {word}; request id {asked}",
        remedy="look the code up in the server's documentation; `archiver doctor` tries each thing alone",
    )


_SKEWED: Final = {"RequestTimeTooSkewed", "RequestInTheFuture"}
_CREDENTIALS: Final = {
    "SignatureDoesNotMatch": "the secret key is wrong",
    "InvalidAccessKeyId": "the access key is not known",
    "ExpiredToken": "the session has expired",
    "ExpiredTokenException": "the session has expired",
    "TokenRefreshRequired": "the session has expired",
    "InvalidToken": "the session token is not valid",
    "InvalidSecurity": "they are not valid",
    "NotSignedUp": "the account has no S3",
    "AccountProblem": "there is a problem with the account",
}
_NOT_FOUND: Final = _Case(
    ObjectNotFoundError, "object {name} is not in the store", "look with `archiver list`"
)
_MISSING: Final = _Case(
    StoreMissingError,
    "the bucket {bucket} does not exist on {where}",
    "correct store.url, store.region or store.endpoint_url, or make it: "
    "aws s3api create-bucket --bucket {bucket}",
)
_DENIED: Final = _Case(
    StoreDeniedError,
    "{where} does not allow {action} on {what} of bucket {bucket} ({code})",
    "allow it in the policies of the identity and of the bucket; without s3:ListBucket, S3 says the same of "
    "objects that are not there",
)
_LOGIN: Final = _Case(
    StoreDeniedError,
    "{where} refused the credentials at {what}: {why} ({code})",
    "check what the AWS configuration gives (store.profile, AWS_PROFILE, AWS_ACCESS_KEY_ID; "
    "`aws sts get-caller-identity`) and that it is meant for this server",
)
_REGION: Final = _Case(ConfigError, "the bucket {bucket} is in another region")
_BUSY: Final = _Case(
    StoreUnreachableError,
    "{where} failed at {what}, {tried} times in a row ({code})",
    "run it again in a minute; fewer requests at a time (store.parallel) help against SlowDown",
)
_FULL: Final = _Case(
    StoreFullError,
    "the store has no room for {what} ({code})",
    "free space or raise the quota of the bucket, then run it again",
)
_TOO_LARGE: Final = _Case(
    LimitExceededError,
    "{where} does not take {what}: it or one of its parts is too large ({code})",
    "lower store.part_size, or raise the limit of the server",
)
_ENCRYPTION: Final = _Case(
    StoreDeniedError,
    "{where} cannot use the KMS key that encrypts {what} of bucket {bucket} ({code})",
    "check that the bucket's key is enabled, and that the identity may use it (kms:GenerateDataKey to write, "
    "kms:Decrypt to read)",
)
_DAMAGED: Final = _Case(DamagedError, "{what} did not arrive at {where} as it was sent ({code})", SEND_AGAIN)
_CONDITION: Final = _Case(ConditionFailedError, "{what} exists already, or has changed", "run it again")
_CONFLICT: Final = _Case(
    ConflictError, "another write of {what} goes on at the same time ({code})", "run it again"
)
_PAST_END: Final = _Case(PastEndError, "{what} ends before the range that was asked for")
_NO_UPLOAD: Final = _Case(
    NoSuchUploadError,
    "the upload of {what} is gone: somebody, or a rule of the bucket, aborted it",
    "run it again; a rule should abort uploads after days, not hours",
)
_NOT_KNOWN: Final = _Case(
    StoreError,
    "{where} does not know {operation} as it was sent for {what} ({code})",
    "if it is the checksum, set store.checksums to 'basic' or 'off'; a server that refuses conditions cannot "
    "hold a store",
)
_BAD_NAME: Final = _Case(
    InvalidNameError, "{where} refuses the name of {what} ({code})", "check store.url and the run id"
)

_CODES: Final[dict[_Case, tuple[str, ...]]] = {
    _NOT_FOUND: ("NoSuchKey", "NoSuchVersion", "NotFound", "404"),
    _MISSING: ("NoSuchBucket",),
    _DENIED: ("AccessDenied", "AllAccessDisabled", "Forbidden", "403", "MethodNotAllowed"),
    _LOGIN: tuple(_CREDENTIALS),
    _REGION: (
        *("PermanentRedirect", "TemporaryRedirect", "Redirect", "301", "307"),
        *("AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "InvalidRegion"),
    ),
    _BUSY: (
        *("SlowDown", "SlowDownRead", "SlowDownWrite", "ServiceUnavailable", "InternalError", "Busy"),
        *("Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests", "RequestThrottled"),
        *("BandwidthLimitExceeded", "RequestTimeout", "ServerNotInitialized", "XMinioServerNotInitialized"),
    ),
    _FULL: (
        *("InsufficientStorage", "XMinioStorageFull", "QuotaExceeded", "XMinioAdminBucketQuotaExceeded"),
        *("InsufficientCapacity", "StorageFull"),
    ),
    _TOO_LARGE: ("EntityTooLarge", "RequestEntityTooLarge"),
    _DAMAGED: (
        *("BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch"),
        *("ChecksumMismatch", "IncompleteBody"),
    ),
    _CONDITION: ("PreconditionFailed", "412"),
    _CONFLICT: ("ConditionalRequestConflict", "OperationAborted"),
    _PAST_END: ("InvalidRange", "416"),
    _NO_UPLOAD: ("NoSuchUpload",),
    _NOT_KNOWN: ("NotImplemented", "MalformedTrailerError", "501"),
    _BAD_NAME: (
        *("InvalidBucketName", "KeyTooLongError", "InvalidURI", "InvalidObjectName"),
        "XMinioInvalidObjectName",
    ),
}
_BY_CODE: Final = {code: case for case, codes in _CODES.items() for code in codes}
_BY_STATUS: Final = {
    **dict.fromkeys((301, 307), _REGION),
    **dict.fromkeys((401, 403), _DENIED),
    **dict.fromkeys((408, 429, 500, 502, 503, 504), _BUSY),
    412: _CONDITION,
    413: _TOO_LARGE,
    416: _PAST_END,
    501: _NOT_KNOWN,
    507: _FULL,
}
_NOT_OF_TIME: Final = {"NoSuchBucket", "InvalidAccessKeyId", *_CODES[_DAMAGED]}
