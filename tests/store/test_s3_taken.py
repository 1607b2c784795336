"""A create that is answered with "taken" or "busy": the own object is a success, another's is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from servers.proxy import Fault, FaultProxy, Request
from servers.scripted import Answer, ScriptedServer
from servers.seaweed import Seaweed

from archiver.aws.options import AwsOptions
from archiver.errors import (
    AlreadyExistsError,
    DamagedError,
    StoreError,
    StoreUnreachableError,
    UnconfirmedError,
)
from archiver.store import S3Options, open_store
from archiver.store.options import Checksums
from archiver.store.s3 import S3Store
from archiver.store.s3.address import parse
from archiver.store.s3.own import TOKEN

from .contract import NAME
from .contract_remote import PART, blocks

BODIES: dict[str, Callable[[], Iterator[bytes]]] = {"small": lambda: iter([b"bo", b"dy"]), "large": blocks}


@pytest.fixture
def proxy(seaweed: Seaweed) -> Iterator[FaultProxy]:
    with FaultProxy(seaweed.port) as made:
        yield made


def at(url: str, endpoint: str, *, attempts: int = 4, checksums: Checksums = "full") -> S3Store:
    aws = AwsOptions(endpoint_url=endpoint, attempts=attempts, timeout=10)
    return S3Store.at(url, S3Options(aws, checksums, part_size=PART))


def last_step(size: str, kind: Any, **more: Any) -> Fault:
    """A fault at the request that makes the object appear."""
    if size == "small":
        return Fault(kind, method="PUT", **more)
    return Fault(kind, method="POST", path=r"uploadId=[^&]*$", **more)


def put_by_hand(seaweed: Seaweed, url: str, body: bytes, **more: Any) -> Callable[[Request], None]:
    """Somebody else puts an object of the same name, at the moment of a fault."""
    address = parse(url)

    def put(_: Request) -> None:
        seaweed.client().put_object(Bucket=address.bucket, Key=address.key(NAME), Body=body, **more)

    return put


@pytest.mark.parametrize("checksums", ["full", "basic", "off"])
@pytest.mark.parametrize("size", BODIES)
def test_an_answer_that_was_lost(s3_url: str, proxy: FaultProxy, size: str, checksums: Checksums) -> None:
    store = at(s3_url, proxy.endpoint, checksums=checksums)
    body = b"".join(BODIES[size]())
    proxy.script(last_step(size, "drop"))
    info = store.create(NAME, BODIES[size](), retention="success")
    assert 412 in [request.status for request in proxy.requests], "the retry was refused"
    found = store.head(NAME)
    assert (info.size, info.retention, info.etag) == (len(body), "success", found.etag)
    with store.open(NAME) as file:
        assert file.read() == body
    assert list(store.abandoned_uploads()) == []
    with pytest.raises(AlreadyExistsError):
        store.create(NAME, BODIES[size](), retention="success")  # the same bytes, but another put


def test_a_request_that_a_proxy_sent_twice(s3_url: str, proxy: FaultProxy) -> None:
    """Nothing was tried again here, and still the answer "taken" is about the own object."""
    store = at(s3_url, proxy.endpoint, attempts=1)
    proxy.script(Fault("duplicate", method="PUT"))
    assert store.create(NAME, [b"body"], retention="live").size == 4


@pytest.mark.parametrize("theirs", [b"body", b"bodies", b"boDY"])
@pytest.mark.parametrize("size", BODIES)
def test_another_writer_was_first(
    s3_url: str, proxy: FaultProxy, seaweed: Seaweed, size: str, theirs: bytes
) -> None:
    """It comes in while the own request is lost. A token tells even the same bytes apart."""
    by_hand = put_by_hand(seaweed, s3_url, theirs, Metadata={TOKEN: "0" * 32})
    proxy.script(last_step(size, "reset before", do=by_hand))
    store = at(s3_url, proxy.endpoint)
    with pytest.raises(AlreadyExistsError, match=NAME) as caught:
        store.create(NAME, BODIES[size](), retention="live")
    assert type(caught.value) is AlreadyExistsError
    assert store.read(NAME, limit=99) == theirs
    assert uploads(seaweed, s3_url) == []


@pytest.mark.parametrize("kept", ["SHA256", "CRC64NVME", "CRC32"])
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("size", BODIES)
def test_without_a_token_a_checksum_or_the_bytes_tell(
    s3_url: str, proxy: FaultProxy, seaweed: Seaweed, size: str, own: bool, kept: str
) -> None:
    """As from a server that keeps no metadata."""
    body = b"".join(BODIES[size]())
    by_hand = put_by_hand(seaweed, s3_url, body if own else body[:-1] + b"\0", ChecksumAlgorithm=kept)
    proxy.script(last_step(size, "reset before", do=by_hand))
    store = at(s3_url, proxy.endpoint)
    if own:
        assert store.create(NAME, BODIES[size](), retention="live").size == len(body)
    else:
        with pytest.raises(AlreadyExistsError):
            store.create(NAME, BODIES[size](), retention="live")
    comparable = kept == "CRC64NVME" or (kept == "SHA256" and size == "small")
    fetched = NAME in [
        request.path.rpartition("/store/")[2] for request in proxy.requests if request.method == "GET"
    ]
    assert fetched is not comparable, "the bytes are fetched only where no checksum tells"


@pytest.mark.parametrize("size", BODIES)
def test_a_writer_that_cannot_read_is_told_so(
    s3_url: str, proxy: FaultProxy, seaweed: Seaweed, aws_environment: Callable[..., None], size: str
) -> None:
    aws_environment(seaweed, "creator")
    proxy.script(last_step(size, "drop"))
    with pytest.raises(UnconfirmedError, match=f"{NAME} exists already") as caught:
        at(s3_url, proxy.endpoint).create(NAME, BODIES[size](), retention="live")
    assert "s3:GetObject" in (caught.value.remedy or "")
    aws_environment(seaweed, "admin")
    assert at(s3_url, seaweed.endpoint).head(NAME).size == len(b"".join(BODIES[size]()))


@pytest.mark.parametrize("size", BODIES)
def test_a_conflict_is_tried_again(s3_url: str, proxy: FaultProxy, size: str) -> None:
    conflict = {"status": 409, "code": "ConditionalRequestConflict"}
    store = at(s3_url, proxy.endpoint)
    proxy.script(last_step(size, "refuse", times=2, **conflict))
    assert store.create(NAME, BODIES[size](), retention="live").retention == "live"
    store.delete(NAME)
    proxy.script(last_step(size, "refuse", times=None, **conflict))
    with pytest.raises(StoreUnreachableError, match="another write"):
        store.create(NAME, BODIES[size](), retention="live")
    assert list(store.list()) == []


@pytest.mark.parametrize("size", BODIES)
def test_taken_by_what_is_gone_again(s3_url: str, proxy: FaultProxy, seaweed: Seaweed, size: str) -> None:
    proxy.script(last_step(size, "refuse", status=412, code="PreconditionFailed"))
    store = at(s3_url, proxy.endpoint)
    assert store.create(NAME, BODIES[size](), retention="live").retention == "live"
    assert store.head(NAME).retention == "live"


def test_a_conflict_that_ended_the_upload_sends_all_parts_again(s3_url: str, proxy: FaultProxy) -> None:
    options = S3Options(AwsOptions(endpoint_url=proxy.endpoint), part_size=PART)
    store = open_store(s3_url, options=options)
    proxy.script(
        last_step("large", "refuse", status=409, code="ConditionalRequestConflict"),
        last_step("large", "refuse", status=404, code="NoSuchUpload"),
    )
    body = list(blocks())
    store.create(NAME, body, retention="live")
    with store.open(NAME) as file:
        assert file.read() == b"".join(body)
    assert sum("partNumber" in request.path for request in proxy.requests) == 6


def test_an_upload_that_somebody_aborted(s3_url: str, proxy: FaultProxy) -> None:
    proxy.script(last_step("large", "refuse", status=404, code="NoSuchUpload"))
    with pytest.raises(StoreError, match=r"the upload of .* is gone") as caught:
        at(s3_url, proxy.endpoint).create(NAME, blocks(), retention="live")
    assert "a rule" in (caught.value.remedy or "")


def test_a_replacement_whose_answer_was_lost(s3_url: str, proxy: FaultProxy) -> None:
    store = at(s3_url, proxy.endpoint)
    store.create(NAME, [b"old"], retention="hold")
    was = store.head(NAME)
    proxy.script(Fault("drop", method="PUT"))
    assert store.replace(NAME, [b"new"], was=was).retention == "hold"
    assert store.read(NAME, limit=9) == b"new"


def test_a_server_that_keeps_other_bytes_of_the_own_put(
    no_aws: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "A")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "S")
    monkeypatch.setattr("archiver.store.s3.upload.secrets.token_hex", lambda _: "ab" * 16)
    head = {"Content-Length": "5", "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
    head[f"x-amz-meta-{TOKEN}"] = "ab" * 16
    refused, found = Answer(412, "PreconditionFailed"), Answer(200, headers=head)
    with (
        ScriptedServer(refused, found) as server,
        pytest.raises(DamagedError, match="not in the store as it was sent"),
    ):
        at("s3://bucket/p", server.endpoint).create(NAME, [b"body"], retention="live")


def uploads(seaweed: Seaweed, url: str) -> list[Any]:
    address = parse(url)
    answer = seaweed.client().list_multipart_uploads(Bucket=address.bucket, Prefix=address.prefix)
    return list(answer.get("Uploads", []))
