"""AWS KMS as the service of data keys; what it and the network fail with, as errors of this package."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any, Literal

from archiver import safetext
from archiver.age.arn import KeyArn
from archiver.age.data_keys import DATA_KEY_SIZE, DataKey
from archiver.aws.options import AwsOptions
from archiver.errors import (
    ArchiverError,
    ConfigError,
    InvalidKeyError,
    KmsDeniedError,
    KmsExpiredError,
    KmsKeyDisabledError,
    KmsUnreachableError,
    WrappedKeyError,
)

if TYPE_CHECKING:
    from archiver.aws.door import ClientError

Action = Literal["kms:GenerateDataKey", "kms:Decrypt"]

_NOT_USABLE = {
    "DisabledException": "is disabled",
    "KMSInvalidStateException": "is not in a state to be used, such as while it waits for its deletion",
    "NotFoundException": "does not exist",
}
_NO_ACCESS = frozenset({"AccessDeniedException", "AccessDenied", "KMSAccessDeniedException"})
_NO_CALLER = frozenset(
    {
        *("UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException"),
        *("SignatureDoesNotMatch", "IncompleteSignature", "MissingAuthenticationToken"),
        *("MissingAuthenticationTokenException", "NotAuthorized"),
    }
)
_EXPIRED = frozenset({"ExpiredTokenException", "ExpiredToken"})
_CHANGED = frozenset({"InvalidCiphertextException", "IncorrectKeyException"})
_WRONG_KIND = frozenset({"InvalidKeyUsageException", "UnsupportedOperationException"})
_NO_CREDENTIALS = frozenset(
    {
        *("NoCredentialsError", "PartialCredentialsError", "NoAuthTokenError"),
        *("SSOError", "LoginError", "RefreshWithMFAUnsupportedError"),
    }
)
_NOT_RENEWED = frozenset(
    {
        *("CredentialRetrievalError", "TokenRetrievalError", "MetadataRetrievalError"),
        *("UnauthorizedSSOTokenError", "LoginRefreshRequired"),
    }
)
"""What boto3 raises where credentials have run out and new ones cannot be had."""
_NO_ANSWER = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What boto3 raises over an answer that is not of the shape of KMS's."""
_NETWORK = frozenset({"ConnectionError", "HTTPClientError", "HTTPError", "HTTPException", "OSError"})


PAUSE_SECONDS = 10.0
"""How long a region that gave no answer is not asked again: many objects in turn do not each wait for it."""


class KmsClient:
    """Calls KMS in the region of each key. Threads share it; nothing is loaded before the first call."""

    def __init__(self, options: AwsOptions, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._options = options
        self._clock = clock
        self._silent: dict[str, float] = {}
        """Regions that gave no answer, and when."""
        self._clients: dict[tuple[int, str], Any] = {}

    def generate(self, arn: KeyArn, context: Mapping[str, str]) -> DataKey:
        """GenerateDataKey of 32 bytes under the context.

        Raises `KmsDeniedError`, of which `KmsExpiredError` is one kind, `KmsKeyDisabledError`,
        `KmsUnreachableError`, `InvalidKeyError` for a key of another kind than symmetric, and `ConfigError`.
        """
        answer = self._call("kms:GenerateDataKey", arn, context, NumberOfBytes=DATA_KEY_SIZE)
        return _data_key(answer, answer.get("CiphertextBlob", b""))

    def decrypt(self, arn: KeyArn, context: Mapping[str, str], blob: bytes) -> DataKey:
        """Decrypt under the context; errors as of `generate`, and `WrappedKeyError`."""
        answer = self._call("kms:Decrypt", arn, context, CiphertextBlob=blob)
        return _data_key(answer, blob)

    def _call(self, action: Action, arn: KeyArn, context: Mapping[str, str], **more: Any) -> dict[str, Any]:
        from archiver.aws.door import FAILURES, ClientError, is_expired

        if self._clock() < self._silent.get(arn.region, -inf) + PAUSE_SECONDS:
            raise _no_answer(action, arn, "it gave no answer a moment ago and was not asked again")
        try:
            client = self._client(arn.region)
        except (*FAILURES, ValueError) as error:
            raise _unanswered(error, action, arn) from error
        method = client.decrypt if action == "kms:Decrypt" else client.generate_data_key
        try:
            answer = method(KeyId=arn.text, EncryptionContext=dict(context), **more)
        except ClientError as error:
            raise _answered(error, action, arn, context) from error
        except FAILURES as error:
            found = _unanswered(error, action, arn)
            if isinstance(found, KmsUnreachableError):
                self._silent[arn.region] = self._clock()
            raise found from error
        except _NO_ANSWER:
            answer = None
        except RuntimeError as error:
            if not is_expired(error):
                raise
            raise _not_renewed(error, action, arn) from error
        return answer if isinstance(answer, dict) else {}

    def _client(self, region: str) -> Any:
        """The client of this process: one from before a fork shares its connections with the parent.

        Two threads may each make one at first; that costs a moment and nothing else.
        """
        from archiver.aws.door import client

        place = (os.getpid(), region)
        if place not in self._clients:
            made = client("kms", replace(self._options, region=region))
            self._clients = {place: made} | {k: v for k, v in self._clients.items() if k[0] == place[0]}
        return self._clients[place]


def _data_key(answer: dict[str, Any], blob: bytes) -> DataKey:
    """What is missing in the answer is empty here: whoever asked judges it."""
    return DataKey(answer.get("Plaintext", b""), blob, answer.get("KeyId", ""))


def _answered(error: ClientError, action: Action, arn: KeyArn, context: Mapping[str, str]) -> ArchiverError:
    from archiver.aws.door import code_of

    code = code_of(error)
    if code in _NOT_USABLE:
        return KmsKeyDisabledError(
            f"the KMS key {arn} {_NOT_USABLE[code]}",
            remedy="enable it or cancel its deletion, or open with another key, such as the break-glass one",
        )
    if code in _NO_ACCESS:
        return KmsDeniedError(
            f"{action} is not allowed on {arn} under the context {_shown(context)}: {_words(error)}",
            remedy=f"allow {action} on the key for this context, in the key's policy or the caller's; "
            "docs/KEYS.md has both",
        )
    if code in _NO_CALLER | _EXPIRED:
        return (KmsExpiredError if code in _EXPIRED else KmsDeniedError)(
            f"KMS does not accept the credentials for {action} on {arn}: {code}, {_words(error)}",
            remedy=f"{_LOG_IN}; and check this machine's clock",
        )
    if code in _CHANGED:
        return WrappedKeyError(
            f"{arn} does not open the wrapped data key under the context {_shown(context)}: the one or the "
            "other was changed"
        )
    if code in _WRONG_KIND:
        return InvalidKeyError(
            f"{arn} cannot wrap data keys: {_words(error)}", remedy="use a symmetric key for encryption"
        )
    return KmsUnreachableError(
        f"KMS failed at {action} with {arn}: {code}, {_words(error)}",
        remedy=f"run it again later; {_MEANWHILE[action]}",
    )


def _unanswered(error: Exception, action: Action, arn: KeyArn) -> ArchiverError:
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds & _NOT_RENEWED:
        return _not_renewed(error, action, arn)
    if kinds & _NO_CREDENTIALS:
        return KmsDeniedError(
            f"there are no usable credentials for {action} on {arn} ({type(error).__name__})", remedy=_LOG_IN
        )
    if kinds & _NETWORK:
        return _no_answer(action, arn, type(error).__name__)
    return ConfigError(
        f"the AWS configuration for {arn} cannot be used ({type(error).__name__})",
        remedy="check keys.kms_endpoint_url, store.profile and the AWS configuration",
    )


def _not_renewed(error: Exception, action: Action, arn: KeyArn) -> KmsExpiredError:
    return KmsExpiredError(
        f"the credentials for {action} on {arn} have run out, and there are no new ones "
        f"({type(error).__name__})",
        remedy=_LOG_IN,
    )


def _no_answer(action: Action, arn: KeyArn, why: str) -> KmsUnreachableError:
    return KmsUnreachableError(
        f"KMS did not answer {action} with {arn} ({why})",
        remedy=f"check the network and keys.kms_endpoint_url; {_MEANWHILE[action]}",
    )


_MEANWHILE: dict[Action, str] = {
    "kms:Decrypt": "another key, such as the break-glass identity, opens without KMS",
    "kms:GenerateDataKey": "`archiver archive --without-kms` seals to the other recipients meanwhile",
}
_LOG_IN = (
    "log in (`aws sso login`, `aws configure`), or set AWS_PROFILE, store.profile or AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY"
)


def _shown(context: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{key}={value!r}" for key, value in context.items()) + "}"


def _words(error: ClientError) -> str:
    """Which kind of policy decided, if KMS says so, and what finds the answer in its logs.

    No more of its own words: they may repeat what was sent to it.
    """
    said = str(error.response.get("Error", {}).get("Message", ""))
    asked = error.response.get("ResponseMetadata", {}).get("RequestId") or "unknown"
    known = [words for words in _POLICIES if words in said]
    return ", ".join([*known, f"request id {safetext.one_line(str(asked))[:80]}"])


_POLICIES = (
    *("no identity-based policy", "no resource-based policy", "no session policy", "no permissions boundary"),
    *("no service control policy", "no VPC endpoint policy", "explicit deny"),
)
