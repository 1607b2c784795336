"""A server that lies when it is asked to go on: nothing comes that the first answer did not promise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from servers.scripted import Answer, ScriptedServer

from archiver.aws.options import AwsOptions
from archiver.errors import StoreError, StoreUnreachableError
from archiver.store import S3Options
from archiver.store.s3 import S3Store
from archiver.store.s3.read import PROGRESS

from .contract import NAME


@pytest.fixture
def server(no_aws: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "A")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "S")
    monkeypatch.setattr("archiver.store.tries._FIRST_PAUSE", 0.001)
    with ScriptedServer(Answer(500)) as made:
        yield made


def at(server: ScriptedServer, *, attempts: int = 3) -> S3Store:
    return S3Store.at("s3://bucket/p", S3Options(AwsOptions(endpoint_url=server.endpoint, attempts=attempts)))


def part(data: bytes, range_: str | None = None, *, length: int | None = None, etag: str = '"a"') -> Answer:
    """Some bytes of an object; the connection ends after them if `length` says that there are more."""
    headers = {
        "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT",
        "Content-Length": str(len(data) if length is None else length),
        "ETag": etag,
    }
    if range_ is None:
        return Answer(200, body=data, headers=headers)
    return Answer(206, body=data, headers=headers | {"Content-Range": f"bytes {range_}"})


BROKEN = part(b"x" * 50, length=100)
MUCH = b"y" * 100_000
OTHERS = {
    "more, and says so": part(MUCH, f"50-{49 + len(MUCH)}/{50 + len(MUCH)}"),
    "more than its range": part(MUCH, "50-99/100"),
    "another size": part(b"y" * 50, "50-99/200"),
    "less": part(b"y" * 40, "50-89/100"),
    "another place": part(b"y" * 50, "0-49/100"),
    "no range": part(b"y" * 100),
    "another version": part(b"y" * 50, "50-99/100", etag='"b"'),
    "nothing": Answer(416, "InvalidRange"),
    "no size": part(b"y" * 50, "50-99/*"),
    "no numbers": part(b"y" * 50, "50-\N{SUPERSCRIPT TWO}/100"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_what_the_first_answer_did_not_promise_is_refused(server: ScriptedServer, other: str) -> None:
    server.script(BROKEN, OTHERS[other])
    with pytest.raises(StoreError, match=NAME) as caught:
        at(server).read(NAME, limit=1000)
    assert caught.value.remedy
    assert len(server.requests) == 2
    server.script(BROKEN, OTHERS[other])
    with at(server).open(NAME) as file, pytest.raises(StoreError, match=NAME):
        file.read()
    assert len(server.requests) == 2


def test_what_it_promised_is_taken(server: ScriptedServer) -> None:
    server.script(BROKEN, part(b"y" * 10, "50-99/100", length=50), part(b"z" * 40, "60-99/100"))
    assert at(server).read(NAME, limit=100) == b"x" * 50 + b"y" * 10 + b"z" * 40
    assert [asked.headers.get("range") for asked in server.requests] == [None, "bytes=50-", "bytes=60-"]


def test_more_than_the_length_says_is_refused(server: ScriptedServer) -> None:
    """Of a length and chunks, the chunks count for HTTP."""
    chunks = b"400\r\n" + b"x" * 1024 + b"\r\n"
    answer = part(chunks * 100 + b"0\r\n\r\n", length=100)
    server.script(Answer(200, body=answer.body, headers=answer.headers | {"Transfer-Encoding": "chunked"}))
    store = at(server)
    with pytest.raises(StoreError, match="more of object"):
        store.read(NAME, limit=100)
    assert len(server.requests) == 1
    with pytest.raises(StoreError, match="more of object"):
        store.read(NAME, limit=100)


@pytest.mark.parametrize("range_", ["3-5/100", "2-9/10", "3-9/5"])
def test_a_part_that_was_not_asked_for(server: ScriptedServer, range_: str) -> None:
    start, end = (int(word) for word in range_.partition("/")[0].split("-"))
    server.script(part(b"y" * (end + 1 - start), range_))
    with pytest.raises(StoreError, match="part of object"):
        at(server).open(NAME, offset=3)


def test_another_version_than_that_of_the_first_range(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archiver.store.s3.download.RANGE", 10)
    server.script(part(b"x" * 10, "0-9/20"), part(b"y" * 10, "10-19/20", etag='"b"'))
    with pytest.raises(StoreError, match="changed while it was read"):
        at(server).download(NAME, tmp_path / "file", limit=99)
    assert list(tmp_path.iterdir()) == []


def test_a_byte_each_time_does_not_give_new_tries(server: ScriptedServer) -> None:
    drips = [part(b"y", f"{at}-99/100", length=100 - at) for at in range(50, 100)]
    server.script(BROKEN, *drips)
    with pytest.raises(StoreUnreachableError):
        at(server, attempts=4).read(NAME, limit=100)
    assert len(server.requests) == 4


def test_much_each_time_does(server: ScriptedServer) -> None:
    count, size = 6, PROGRESS
    total = count * size
    rest = [
        part(b"y" * size, f"{at}-{total - 1}/{total}", length=total - at) for at in range(size, total, size)
    ]
    server.script(part(b"y" * size, length=total), *rest)
    assert len(at(server, attempts=2).read(NAME, limit=total)) == total
