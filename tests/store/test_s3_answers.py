"""What servers and networks say, and the errors that this becomes: typed, with a remedy, without secrets."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from servers.scripted import Answer, ScriptedServer

from archiver.aws.options import AwsOptions
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
from archiver.store import S3Options
from archiver.store.s3 import S3Store

from .contract import NAME

ACCESS, SECRET, TOKEN = "AKIAWHATEVER", "hunter2/hunter2+hunter2", "session-token-xyzzy"


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, no_aws: None) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(Answer(500, "unset")) as made:
        yield made


def at(endpoint: str, *, attempts: int = 1, timeout: float = 5, **aws: str) -> S3Store:
    options = AwsOptions(endpoint_url=endpoint, attempts=attempts, timeout=timeout, **aws)  # type: ignore[arg-type]
    return S3Store.at("s3://the-bucket/p", S3Options(options))


def raised(call: Callable[[], object]) -> ArchiverError:
    with pytest.raises(ArchiverError) as caught:
        call()
    text = f"{caught.value} {caught.value.remedy}"
    assert caught.value.remedy or isinstance(caught.value, ObjectNotFoundError)
    for secret in (SECRET, TOKEN, "hunter2"):
        assert secret not in text
    assert text.replace("\n", "").isprintable()
    return caught.value


TABLE: dict[tuple[int, str], tuple[type[ArchiverError], str]] = {
    (404, "NoSuchKey"): (ObjectNotFoundError, NAME),
    (404, "NoSuchBucket"): (StoreMissingError, "the bucket the-bucket does not exist"),
    (403, "AccessDenied"): (StoreDeniedError, f"s3:GetObject on object {NAME} of bucket the-bucket"),
    (403, "SomethingNew"): (StoreDeniedError, r"SomethingNew"),
    (401, "Unauthorized"): (StoreDeniedError, "Unauthorized"),
    (403, "SignatureDoesNotMatch"): (StoreDeniedError, "the secret key is wrong"),
    (403, "InvalidAccessKeyId"): (StoreDeniedError, "the access key is not known"),
    (400, "ExpiredToken"): (StoreDeniedError, "the session has expired"),
    (400, "InvalidToken"): (StoreDeniedError, "the session token is not valid"),
    (400, "AuthorizationHeaderMalformed"): (ConfigError, "in another region"),
    (503, "SlowDown"): (StoreUnreachableError, "SlowDown"),
    (500, "InternalError"): (StoreUnreachableError, "InternalError"),
    (502, ""): (StoreUnreachableError, "502"),
    (504, "GatewayTimeout"): (StoreUnreachableError, "GatewayTimeout"),
    (429, "TooManyRequests"): (StoreUnreachableError, "TooManyRequests"),
    (400, "RequestTimeout"): (StoreUnreachableError, "RequestTimeout"),
    (507, "XMinioStorageFull"): (StoreFullError, f"no room for object {NAME}"),
    (507, ""): (StoreFullError, "507"),
    (403, "QuotaExceeded"): (StoreFullError, "QuotaExceeded"),
    (400, "EntityTooLarge"): (LimitExceededError, "too large"),
    (413, "Whatever"): (LimitExceededError, "too large"),
    (400, "KMS.DisabledException"): (StoreDeniedError, "cannot use the KMS key"),
    (400, "KMS.NotFoundException"): (StoreDeniedError, "cannot use the KMS key"),
    (400, "BadDigest"): (DamagedError, "did not arrive"),
    (400, "XAmzContentSHA256Mismatch"): (DamagedError, "did not arrive"),
    (400, "XAmzContentChecksumMismatch"): (DamagedError, "did not arrive"),
    (501, "NotImplemented"): (StoreError, "does not know get_object"),
    (400, "InvalidBucketName"): (InvalidNameError, "refuses the name"),
    (400, "KeyTooLongError"): (InvalidNameError, "refuses the name"),
    (409, "OperationAborted"): (StoreUnreachableError, "at the same time"),
    (400, "BrandNewCode"): (StoreError, rf"get_object of object {NAME}: BrandNewCode; request id REQ-77"),
    (418, ""): (StoreError, "418"),
}


@pytest.mark.parametrize(("status", "code"), TABLE)
def test_each_answer_has_a_meaning(server: ScriptedServer, status: int, code: str) -> None:
    kind, said = TABLE[status, code]
    server.script(Answer(status, code))
    error = raised(lambda: at(server.endpoint).open(NAME))
    assert type(error) in (kind, *kind.__subclasses__())
    assert re.search(said, str(error))


def test_every_call_names_what_it_needs(server: ScriptedServer) -> None:
    server.script(Answer(403, "AccessDenied"))
    store = at(server.endpoint)
    store._tidied = True
    for action, call in {
        "s3:PutObject and s3:PutObjectTagging on object": lambda: store.create(
            NAME, [b"x"], retention="live"
        ),
        "s3:GetObject on object": lambda: store.head(NAME),
        "s3:ListBucket on bucket the-bucket": lambda: list(store.list("records/")),
        "s3:PutObjectTagging on object": lambda: store.retag(NAME, "hold"),
        "s3:DeleteObject on object": lambda: store.delete(NAME),
        "s3:ListBucketMultipartUploads on bucket": lambda: list(store.abandoned_uploads()),
    }.items():
        error = raised(call)
        assert isinstance(error, StoreDeniedError)
        assert action in str(error)


def test_a_denial_of_kms_is_told_as_such(server: ScriptedServer) -> None:
    server.script(Answer(403, "AccessDenied", "not authorized to perform: kms:GenerateDataKey"))
    error = raised(lambda: at(server.endpoint).open(NAME))
    assert "kms:Decrypt" in (error.remedy or "")


def test_the_right_region_is_named(server: ScriptedServer) -> None:
    server.script(Answer(400, "AuthorizationHeaderMalformed", headers={"x-amz-bucket-region": "eu-south-2"}))
    for call in (lambda: at(server.endpoint).open(NAME), lambda: at(server.endpoint).head(NAME)):
        error = raised(call)
        assert isinstance(error, ConfigError)
        assert "the-bucket is in eu-south-2" in str(error)
        assert "store.region to 'eu-south-2'" in (error.remedy or "")


def test_a_refused_head_says_why(server: ScriptedServer) -> None:
    """The answer to a HEAD has no body, so the store asks once more in a way that has."""
    for status, code, kind in (
        (404, "NoSuchBucket", StoreMissingError),
        (403, "InvalidAccessKeyId", StoreDeniedError),
        (404, "NoSuchKey", ObjectNotFoundError),
    ):
        server.script(Answer(status, code))
        assert type(raised(lambda: at(server.endpoint).head(NAME))) is kind
        assert [asked.method for asked in server.requests] == ["HEAD", "GET"]


@pytest.mark.parametrize("ahead", [3600, -3600])
@pytest.mark.parametrize(("status", "code"), [(403, "RequestTimeTooSkewed"), (403, "SignatureDoesNotMatch")])
def test_a_wrong_clock_is_measured(server: ScriptedServer, status: int, code: str, ahead: int) -> None:
    """Servers that check signatures without looking at the time refuse the signature instead."""
    theirs = format_datetime(datetime.now(UTC) - timedelta(seconds=ahead), usegmt=True)
    server.script(Answer(status, code, headers={"Date": theirs}))
    error = raised(lambda: at(server.endpoint).open(NAME))
    assert isinstance(error, ClockSkewError)
    assert abs(error.seconds - ahead) < 5
    assert ("ahead of" if ahead > 0 else "behind") in str(error)
    assert str(round(abs(error.seconds))) in str(error)


def test_a_clock_that_is_a_little_wrong_is_not_to_blame(server: ScriptedServer) -> None:
    theirs = format_datetime(datetime.now(UTC) - timedelta(seconds=60), usegmt=True)
    server.script(Answer(403, "AccessDenied", headers={"Date": theirs}))
    assert isinstance(raised(lambda: at(server.endpoint).open(NAME)), StoreDeniedError)


def test_busy_servers_are_asked_as_often_as_configured(server: ScriptedServer) -> None:
    server.script(Answer(500, "InternalError"))
    error = raised(lambda: at(server.endpoint, attempts=3).open(NAME))
    assert isinstance(error, StoreUnreachableError)
    assert len(server.requests) == 3
    assert "3 times in a row" in str(error)


def test_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    error = raised(lambda: at(f"http://127.0.0.1:{port}").open(NAME))
    assert isinstance(error, StoreUnreachableError)
    assert f"127.0.0.1:{port} cannot be connected to" in str(error)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"])
def test_a_server_that_hangs(answer: bytes) -> None:
    """Before it says anything, and in the middle of what it says."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        held: list[socket.socket] = []

        def serve() -> None:
            for _ in range(2):
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                held.append(connection)
                connection.recv(65536)
                connection.sendall(
                    answer.replace(b"\r\n\r\n", b"\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n")
                )

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        started = time.monotonic()
        store = at(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=0.5)
        error = raised(lambda: store.read(NAME, limit=99))
        assert isinstance(error, StoreUnreachableError)
        assert "in time" in str(error)
        assert time.monotonic() - started < 30
    for connection in held:
        connection.close()


def test_no_trust_in_the_server(server: ScriptedServer) -> None:
    error = raised(lambda: at(server.endpoint.replace("http", "https")).open(NAME))
    assert isinstance(error, StoreUnreachableError)
    assert "TLS" in str(error)
    assert "AWS_CA_BUNDLE" in (error.remedy or "")


def test_no_credentials(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    error = raised(lambda: at(server.endpoint).open(NAME))
    assert isinstance(error, StoreDeniedError)
    assert "no usable credentials" in str(error)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    assert isinstance(raised(lambda: at(server.endpoint).open(NAME)), StoreDeniedError)
    assert server.requests == []


def test_a_configuration_that_cannot_be_used(server: ScriptedServer) -> None:
    for store in (
        at(server.endpoint, profile="nobody"),
        at(server.endpoint, region="no region!"),
        at("127.0.0.1:80"),
        at("http://user:hunter2@bad host"),
    ):
        assert isinstance(raised(lambda store=store: store.open(NAME)), ConfigError)  # type: ignore[misc]


def test_a_secret_in_the_servers_address_is_not_repeated() -> None:
    error = raised(lambda: at("http://user:hunter2@127.0.0.1:1").open(NAME))
    assert "127.0.0.1:1 " in str(error)


def test_what_a_server_says_is_harmless(server: ScriptedServer) -> None:
    server.script(Answer(400, "Odd\u202eCode", f"{SECRET} is not the secret of {TOKEN}"))
    assert "Odd\\u202eCode" in str(raised(lambda: at(server.endpoint).open(NAME)))
