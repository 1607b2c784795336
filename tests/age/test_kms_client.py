"""Calls of KMS against real servers, and what their refusals and failures mean."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

import boto3
import pytest
from local_kms import BUNDLE, SECOND
from moto import mock_aws
from servers.ministack import REGION, Caller, Ministack
from servers.seaweed import free_ports

from archiver import age
from archiver.age import DataKeys, KeyArn, KmsClient, KmsIdentity, KmsRecipient, kms_client, parse_arn
from archiver.aws.options import AwsOptions
from archiver.errors import (
    ArchiverError,
    ConfigError,
    InvalidKeyError,
    KmsDeniedError,
    KmsExpiredError,
    KmsKeyDisabledError,
    KmsUnreachableError,
    StoreDeniedError,
    WrappedKeyError,
)
from archiver.store import S3Options, open_store

PAIRS = BUNDLE.pairs()


def options(endpoint: str | None) -> AwsOptions:
    return AwsOptions(endpoint_url=endpoint, attempts=1, timeout=5)


@pytest.fixture
def client(ministack: Ministack, kms_caller: Callable[..., None]) -> KmsClient:
    """KMS as the root sees it."""
    return KmsClient(options(ministack.endpoint))


@pytest.fixture
def arn(ministack: Ministack) -> KeyArn:
    """A key that this test may disable."""
    return parse_arn(ministack.make_key())


def sealed(client: KmsClient, arn: KeyArn) -> bytes:
    pieces: list[bytes] = []
    sealer = age.seal([KmsRecipient(arn, DataKeys(client), BUNDLE)], pieces.append)
    sealer.write(b"state")
    sealer.close()
    return b"".join(pieces)


def opened(client: KmsClient, arn: KeyArn, data: bytes) -> bytes:
    with age.unseal([KmsIdentity(arn, DataKeys(client), BUNDLE)], BytesIO(data), name="bundle 7") as plain:
        return plain.read()


def refused(kind: type[ArchiverError], client: KmsClient, arn: KeyArn, data: bytes) -> ArchiverError:
    """The error, which is the same kind for sealing and opening."""
    with pytest.raises(ArchiverError) as sealing:
        sealed(client, arn)
    with pytest.raises(ArchiverError) as opening:
        opened(client, arn, data)
    assert type(sealing.value) is type(opening.value) is kind
    for error in (sealing.value, opening.value):
        assert arn.text in str(error)
        assert error.remedy
    return opening.value


def test_a_file_goes_there_and_back(client: KmsClient, arn: KeyArn) -> None:
    assert opened(client, arn, sealed(client, arn)) == b"state"


def test_a_multi_region_key_and_the_region_of_the_arn(ministack: Ministack, client: KmsClient) -> None:
    for region in ("us-east-1", REGION):
        arn = parse_arn(ministack.make_key(region, MultiRegion=True))
        assert "key/mrk-" in arn.text
        assert opened(client, arn, sealed(client, arn)) == b"state"


def test_a_replica_opens_what_the_other_region_sealed(ministack: Ministack, client: KmsClient) -> None:
    one = parse_arn(ministack.make_key(MultiRegion=True))
    made = ministack.client().replicate_key(KeyId=one.text, ReplicaRegion="us-east-1")
    replica = parse_arn(made["ReplicaKeyMetadata"]["Arn"])
    assert replica.region == "us-east-1"
    data = sealed(client, one)
    ministack.client().disable_key(KeyId=one.text)
    assert opened(client, replica, data) == b"state"
    pieces: list[bytes] = []
    keys = DataKeys(client)
    ministack.client().enable_key(KeyId=one.text)
    age.seal([KmsRecipient(arn, keys, BUNDLE) for arn in (one, replica)], pieces.append).close()
    assert opened(client, replica, b"".join(pieces)) == opened(client, one, b"".join(pieces)) == b""


def test_text_of_every_script_is_a_context(client: KmsClient, arn: KeyArn) -> None:
    context = {"application": "a", "object": "note", "run": "Lauf №7", "task": "修复 \t解析器 %41&="}
    key = client.generate(arn, context)
    assert client.decrypt(arn, context, key.blob).plaintext == key.plaintext


def test_kms_refuses_another_context(client: KmsClient, arn: KeyArn) -> None:
    blob = client.generate(arn, PAIRS).blob
    for other in (PAIRS | {"task": "task 2"}, {}, PAIRS | {"more": "1"}):
        with pytest.raises(WrappedKeyError, match="does not open the wrapped data key under the context"):
            client.decrypt(arn, other, blob)


def test_a_disabled_key(ministack: Ministack, client: KmsClient, arn: KeyArn) -> None:
    data = sealed(client, arn)
    ministack.client().disable_key(KeyId=arn.text)
    assert "is disabled" in str(refused(KmsKeyDisabledError, client, arn, data))
    ministack.client().enable_key(KeyId=arn.text)
    assert opened(client, arn, data) == b"state"
    ministack.client().schedule_key_deletion(KeyId=arn.text, PendingWindowInDays=7)
    assert "deletion" in str(refused(KmsKeyDisabledError, client, arn, data))


def test_a_key_that_is_not_there(client: KmsClient, arn: KeyArn) -> None:
    absent = parse_arn(arn.text[: -len("0000")] + "0000")
    for call in (lambda: client.generate(absent, PAIRS), lambda: client.decrypt(absent, PAIRS, b"blob")):
        with pytest.raises(KmsKeyDisabledError, match=f"{absent} does not exist"):
            call()


def test_a_key_that_is_not_the_asked_one(client: KmsClient, arn: KeyArn) -> None:
    """This server takes the key that the blob names whatever key is asked for; its answer tells on it."""
    absent = parse_arn(arn.text[: -len("0000")] + "0000")
    with pytest.raises(WrappedKeyError, match="wrapped by another key of KMS"):
        opened(client, absent, sealed(client, arn).replace(arn.text.encode(), absent.text.encode()))


def test_a_missing_permission(
    ministack: Ministack, client: KmsClient, arn: KeyArn, kms_caller: Callable[..., None]
) -> None:
    data = sealed(client, arn)
    kms_caller(ministack.make_user("kms:GenerateDataKey", arn=arn.text))
    writer = KmsClient(options(ministack.endpoint))
    sealed(writer, arn)
    with pytest.raises(KmsDeniedError) as caught:
        opened(writer, arn, data)
    assert f"bundle 7: kms:Decrypt is not allowed on {arn}" in str(caught.value)
    assert "run='run-1'" in str(caught.value)
    assert "no identity-based policy" in str(caught.value)
    assert "kms:Decrypt" in (caught.value.remedy or "")
    kms_caller(ministack.make_user("kms:Decrypt", arn=arn.text))
    reader = KmsClient(options(ministack.endpoint))
    assert opened(reader, arn, data) == b"state"
    with pytest.raises(KmsDeniedError, match="kms:GenerateDataKey is not allowed"):
        sealed(reader, arn)


@pytest.mark.parametrize("who", ["stranger", "liar"])
def test_credentials_that_are_not_accepted(
    ministack: Ministack, client: KmsClient, arn: KeyArn, kms_caller: Callable[..., None], who: str
) -> None:
    data = sealed(client, arn)
    user = ministack.make_user("kms:*", arn=arn.text)
    kms_caller(Caller() if who == "stranger" else Caller(user.access_key, Caller().secret_key))
    error = refused(KmsDeniedError, KmsClient(options(ministack.endpoint)), arn, data)
    assert "does not accept the credentials" in str(error)
    assert "aws sso login" in (error.remedy or "")


def test_no_credentials(ministack: Ministack, client: KmsClient, arn: KeyArn, monkeypatch) -> None:
    data = sealed(client, arn)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    error = refused(KmsDeniedError, KmsClient(options(ministack.endpoint)), arn, data)
    assert "no usable credentials" in str(error)


@pytest.fixture
def moto(monkeypatch: pytest.MonkeyPatch) -> Iterator[KmsClient]:
    """A KMS that refuses a blob that was changed, and one of another key; ministack does not."""
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    with mock_aws():
        yield KmsClient(options(None))


def moto_key(**settings: str) -> KeyArn:
    made = boto3.client("kms", region_name=REGION).create_key(**settings)
    return parse_arn(made["KeyMetadata"]["Arn"])


def test_a_changed_blob_and_a_key_that_did_not_wrap_it(moto: KmsClient) -> None:
    arn, other = moto_key(), moto_key()
    blob = moto.generate(arn, PAIRS).blob
    assert len(moto.decrypt(arn, PAIRS, blob).plaintext) == 32
    changed = blob[:-1] + bytes([blob[-1] ^ 1])
    with pytest.raises(WrappedKeyError, match="the one or the other was changed"):
        moto.decrypt(arn, PAIRS, changed)
    with pytest.raises(KmsDeniedError, match="kms:Decrypt is not allowed"):  # as KMS itself answers
        moto.decrypt(other, PAIRS, blob)


def test_a_key_that_cannot_wrap(client: KmsClient, ministack: Ministack) -> None:
    arn = parse_arn(ministack.make_key(KeySpec="HMAC_256", KeyUsage="GENERATE_VERIFY_MAC"))
    with pytest.raises(InvalidKeyError, match="cannot wrap data keys") as caught:
        client.generate(arn, PAIRS)
    assert "symmetric" in (caught.value.remedy or "")


def test_nobody_answers(kms_caller: Callable[..., None]) -> None:
    client = KmsClient(options(f"http://127.0.0.1:{free_ports(1)[0]}"))
    calls = {
        "--without-kms": lambda: client.generate(SECOND, PAIRS),
        "break-glass": lambda: client.decrypt(SECOND, PAIRS, b"blob"),
    }
    for way_out, call in calls.items():
        with pytest.raises(KmsUnreachableError, match="did not answer") as caught:
            call()
        assert SECOND.text in str(caught.value)
        assert way_out in (caught.value.remedy or "")


def test_a_region_that_gave_no_answer_is_left_alone_for_a_while(
    ministack: Ministack, kms_caller: Callable[..., None]
) -> None:
    """Otherwise each of thousands of objects would wait until its attempts are used up."""
    now = 1000.0
    arn = parse_arn(ministack.make_key())
    with answering(200, b"") as url:
        pass  # gone again: connections are refused
    client = KmsClient(options(url), clock=lambda: now)
    with pytest.raises(KmsUnreachableError, match="EndpointConnectionError"):
        client.generate(arn, PAIRS)
    with pytest.raises(KmsUnreachableError, match="a moment ago"):
        client.generate(arn, PAIRS)
    with pytest.raises(KmsUnreachableError, match="EndpointConnectionError"):  # another region
        client.generate(SECOND, PAIRS)
    now += kms_client.PAUSE_SECONDS
    with pytest.raises(KmsUnreachableError, match="EndpointConnectionError"):
        client.generate(arn, PAIRS)
    busy = b'{"__type":"ThrottlingException"}'
    with answering(400, busy) as url:  # whoever is throttled was answered
        client = KmsClient(options(url), clock=lambda: now)
        for _ in range(2):
            with pytest.raises(KmsUnreachableError, match="Throttling"):
                client.generate(arn, PAIRS)


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    """A server that says the same to everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (
            400,
            b'{"__type":"ThrottlingException","message":"Rate exceeded"}',
            KmsUnreachableError,
            "Throttling",
        ),
        (500, b'{"__type":"KMSInternalException"}', KmsUnreachableError, "KMSInternalException"),
        (503, b"<html>down</html>", KmsUnreachableError, "503"),
        (
            400,
            b'{"__type":"KeyUnavailableException","message":"\\u001b[31m"}',
            KmsUnreachableError,
            "KeyUnavailable",
        ),
        (400, b'{"__type":"SomethingNewException"}', KmsUnreachableError, "SomethingNew"),
        (400, b'{"__type":"ExpiredTokenException"}', KmsExpiredError, "ExpiredToken"),
        (400, b'{"__type":"AccessDeniedException"}', KmsDeniedError, "not allowed"),
        (400, b'{"__type":"IncorrectKeyException"}', WrappedKeyError, "under the context"),
        (400, b'{"__type":"InvalidKeyUsageException"}', InvalidKeyError, "cannot wrap"),
    ],
)
def test_what_an_answer_means(status, body, kind, words, kms_caller: Callable[..., None]) -> None:
    with answering(status, body) as url, pytest.raises(ArchiverError) as caught:
        KmsClient(options(url)).decrypt(SECOND, PAIRS, b"blob")
    assert type(caught.value) is kind
    assert words in str(caught.value)
    assert "Rate exceeded" not in str(caught.value)
    assert str(caught.value).isprintable()
    assert "\x1b" not in str(caught.value)
    assert SECOND.text in str(caught.value)


def test_credentials_that_ran_out_and_are_not_renewed(
    kms_caller: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """boto3 raises a bare RuntimeError where those that it is given anew are old; S3 sees the same."""
    given = {
        "Version": 1,
        "AccessKeyId": "AK" + "X" * 18,
        "SecretAccessKey": "x" * 40,
        "SessionToken": "x",
        "Expiration": "2026-01-01T00:00:00Z",
    }
    (tmp_path / "given.json").write_text(json.dumps(given))
    (tmp_path / "config").write_text(f"[default]\ncredential_process = cat {tmp_path / 'given.json'}\n")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    port = free_ports(1)[0]
    with pytest.raises(KmsExpiredError):
        KmsClient(options(f"http://127.0.0.1:{port}")).generate(SECOND, PAIRS)
    away = S3Options(options(f"http://127.0.0.1:{port}"))
    with pytest.raises(StoreDeniedError, match="no usable credentials"):
        open_store("s3://bucket/store", options=away).head("store.json")


@pytest.mark.parametrize(
    "body", [b"<html>log in here</html>", b"{}", b"[]", b"null", b'{"Plaintext":"%%%"}', b""]
)
def test_an_answer_that_is_none(body: bytes, kms_caller: Callable[..., None]) -> None:
    """A portal between here and KMS says 200 to everything."""
    with answering(200, body) as url:
        keys = DataKeys(KmsClient(options(url)))
        with pytest.raises(KmsUnreachableError, match="something else than a data key"):
            keys.to_seal(SECOND, BUNDLE)
        with pytest.raises(ArchiverError):
            keys.to_open(SECOND, BUNDLE, b"blob")


@pytest.mark.parametrize(
    "wrong",
    [AwsOptions(endpoint_url="not an address"), AwsOptions(profile="no-such-profile")],
    ids=["endpoint", "profile"],
)
def test_a_configuration_that_cannot_be_used(wrong: AwsOptions, kms_caller: Callable[..., None]) -> None:
    with pytest.raises(ConfigError, match="AWS configuration") as caught:
        KmsClient(wrong).generate(SECOND, PAIRS)
    assert "store.profile" in (caught.value.remedy or "")
