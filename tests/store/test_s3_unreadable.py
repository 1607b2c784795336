"""Answers without what they must have, or with what cannot be read: one typed error, whatever it is."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from servers import scripted
from servers.scripted import Answer, ScriptedServer

from archiver.aws.options import AwsOptions
from archiver.errors import ArchiverError, StoreError
from archiver.store import S3Options
from archiver.store.s3 import S3Store

from .contract import NAME

# boto3 leaves the connection of an answer that it cannot parse to the collector, which warns of it.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

TIME = "Thu, 01 Jan 2026 00:00:00 GMT"


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """What a test left is collected in that test, and warned of in no other."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def server(no_aws: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "A")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "S")
    with ScriptedServer(Answer(500)) as made:
        yield made


def at(server: ScriptedServer, *, attempts: int = 1, part_size: int = 8 << 20) -> S3Store:
    aws = AwsOptions(endpoint_url=server.endpoint, attempts=attempts)
    return S3Store.at("s3://bucket/p", S3Options(aws, part_size=part_size))


def refused(call: Callable[[], object]) -> None:
    with pytest.raises(StoreError, match="cannot be understood") as caught:
        call()
    assert caught.value.remedy


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Last-Modified": "yesterday"},
        {"Last-Modified": "Wed, 01 Jan 99999 00:00:00 GMT"},
        {"Last-Modified": "0001-01-01T00:00:00+14:00"},
        {"Last-Modified": TIME, "Content-Length": "much"},
    ],
)
def test_of_an_object(server: ScriptedServer, headers: dict[str, str]) -> None:
    server.script(Answer(200, body=b"abc", headers=headers))
    refused(lambda: at(server).read(NAME, limit=9))
    server.script(Answer(200, body=b"abc", headers=headers), Answer(200, body=b"<Tagging/>"))
    refused(lambda: at(server).head(NAME))


def test_without_a_length(server: ScriptedServer, tmp_path: Path) -> None:
    chunked = b"3\r\nabc\r\n0\r\n\r\n"
    headers = {"Last-Modified": TIME, "Transfer-Encoding": "chunked"}
    with pytest.MonkeyPatch.context() as patch:
        original = scripted._Handler.send_header

        def send(handler: scripted._Handler, name: str, value: str) -> None:
            if name != "Content-Length":
                original(handler, name, value)

        patch.setattr(scripted._Handler, "send_header", send)
        server.script(Answer(200, body=chunked, headers=headers))
        refused(lambda: at(server).read(NAME, limit=9))
        refused(lambda: at(server).open(NAME))
        server.script(Answer(206, body=chunked, headers=headers | {"Content-Range": "bytes 0-2/3"}))
        refused(lambda: at(server).download(NAME, tmp_path / "file", limit=9))


def test_less_than_nothing(server: ScriptedServer) -> None:
    server.script(Answer(200, body=b"abc", headers={"Last-Modified": TIME, "Content-Length": "-5"}))
    with pytest.raises(StoreError):
        at(server).read(NAME, limit=9)


def listed(item: str) -> Answer:
    return Answer(200, body=f"<ListBucketResult><Contents>{item}</Contents></ListBucketResult>".encode())


@pytest.mark.parametrize(
    "item",
    [
        "<Size>1</Size>",
        "<Key>p/a/b</Key><Size>1</Size>",
        "<Key>p/a/b</Key><Size>much</Size><LastModified>2026-01-01T00:00:00Z</LastModified>",
        "<Key>p/a/b</Key><Size>-1</Size><LastModified>2026-01-01T00:00:00Z</LastModified>",
        "<Key>p/a/b</Key><Size>1</Size><LastModified>never</LastModified>",
        "<Key>p/a/b</Key><Size>1</Size><LastModified>0001-01-01T00:00:00+14:00</LastModified>",
    ],
)
def test_of_a_list(server: ScriptedServer, item: str) -> None:
    server.script(listed(item))
    for prefix in ("a/", ""):
        refused(lambda prefix=prefix: list(at(server).list(prefix)))  # type: ignore[misc]


@pytest.mark.parametrize("body", [b"", b"<html><body>Log in</body></html>"])
def test_what_is_no_list_is_no_empty_store(server: ScriptedServer, body: bytes) -> None:
    server.script(Answer(200, body=body))
    for prefix in ("a/", ""):
        refused(lambda prefix=prefix: list(at(server).list(prefix)))  # type: ignore[misc]


@pytest.mark.parametrize("body", [b"busy", b"<html><br>", b"<ListBucketResult><Contents>"])
def test_a_torn_list_is_asked_for_again(server: ScriptedServer, body: bytes) -> None:
    server.script(Answer(200, body=body))
    with pytest.raises(StoreError):
        list(at(server, attempts=2).list("a/"))
    assert len(server.requests) == 2


def test_of_uploads_and_tags(server: ScriptedServer) -> None:
    upload = "<ListMultipartUploadsResult><Upload><Key>p/a</Key></Upload></ListMultipartUploadsResult>"
    server.script(Answer(200, body=upload.encode()))
    refused(lambda: list(at(server).abandoned_uploads()))
    server.script(Answer(200, body=b"<Tagging><TagSet><Tag><Key>a</Key></Tag></TagSet></Tagging>"))
    refused(lambda: at(server).retag(NAME, "hold"))


def test_of_what_goes_up_in_parts(server: ScriptedServer) -> None:
    blocks = [bytes(1 << 20)] * 6
    begun = Answer(200, body=b"<InitiateMultipartUploadResult/>")
    server.script(begun)
    refused(lambda: at(server, part_size=5 << 20).create(NAME, blocks, retention="live"))
    begun = Answer(
        200, body=b"<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"
    )
    server.script(begun, Answer(200))
    refused(lambda: at(server, part_size=5 << 20).create(NAME, blocks, retention="live"))


def test_a_list_that_goes_on_where_it_was(server: ScriptedServer) -> None:
    page = (
        b"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
    )
    server.script(Answer(200, body=page + b"</ListBucketResult>"))
    refused(lambda: list(at(server).list("a/")))


def test_a_server_that_sends_elsewhere_for_ever(server: ScriptedServer) -> None:
    server.script(Answer(307, headers={"Location": f"{server.endpoint}/elsewhere"}))
    for call in (lambda: at(server).read(NAME, limit=9), lambda: list(at(server).list("a/"))):
        with pytest.raises(ArchiverError) as caught:
            call()
        assert caught.value.remedy
