"""The probe `upstream` on resources that really changed, and on servers that do not play along."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from archiver.errors import UsageError
from archiver.freshness import Verdict, callables
from archiver.freshness.upstream import UpstreamProbe
from archiver.model import JsonValue

from .web import Raw, Resource, Web, context, drip, flood, hang

PROBE = UpstreamProbe()
MONDAY = "Mon, 02 Feb 2026 10:00:00 GMT"
TUESDAY = "Tue, 03 Feb 2026 10:00:00 GMT"


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        yield server


def captured(*watch: str, hosts: tuple[str, ...] = (), **facts: object) -> JsonValue:
    """What a save stores: it has passed through JSON."""
    found = PROBE.capture(context(*hosts, watch=watch, **facts))
    return json.loads(json.dumps(found))


def judged(then: JsonValue, *hosts: str, **facts: object) -> Verdict:
    return PROBE.judge(then, context(*hosts, **facts))


def both(web: Web, before: Resource, after: Resource) -> Verdict:
    """The verdict on a document that was `before` at the save and is `after` now."""
    web.resources["/doc"] = before
    then = captured(web.url(), hosts=(web.host,))
    web.resources["/doc"] = after
    return judged(then, web.host)


def etag(value: str) -> Resource:
    return Resource(headers={"ETag": value})


def dated(tag: str, moment: str) -> Resource:
    return Resource(headers={"ETag": tag, "Last-Modified": moment})


def no_head(status: int, tag: str) -> Resource:
    """A resource for which the server does not know HEAD."""
    return Resource(head=status, headers={"ETag": tag})


@pytest.mark.parametrize(
    ("before", "after", "state", "words"),
    [
        (etag('"1"'), etag('"1"'), "FRESH", 'ETag "1" as then'),
        (etag('"1"'), etag('"2"'), "STALE", 'ETag then "1", now "2"'),
        (etag('W/"1"'), etag('"1"'), "FRESH", "as then"),
        (etag('W/"1"'), etag('W/"2"'), "STALE", "now W/"),
        (dated('"1"', MONDAY), dated('"1"', TUESDAY), "FRESH", "ETag"),
        (dated('"1"', MONDAY), dated('"2"', MONDAY), "STALE", "ETag"),
        (etag('"1"'), Resource(), "UNKNOWN", "gives no ETag any more"),
        (etag('"1"'), Resource(headers={"Last-Modified": MONDAY}), "UNKNOWN", "gives no ETag any more"),
        (
            Resource(headers={"Last-Modified": MONDAY}),
            Resource(headers={"Last-Modified": TUESDAY}),
            "STALE",
            f"Last-Modified then {MONDAY}, now {TUESDAY}",
        ),
        (
            Resource(headers={"Last-Modified": MONDAY}),
            Resource(headers={"Last-Modified": MONDAY, "ETag": '"new"'}),
            "FRESH",
            "Last-Modified",
        ),
        (Resource(), Resource(), "FRESH", "content is the same"),
        (Resource(), Resource(body=b"other"), "STALE", "content has changed"),
        (Resource(), Resource(headers={"ETag": '"new"'}), "FRESH", "content is the same"),
        (no_head(405, "a"), no_head(501, "b"), "STALE", "ETag"),
        (no_head(404, "a"), no_head(404, "a"), "FRESH", "ETag"),
        (etag('"1"'), Resource(404), "STALE", "gone (status 404)"),
        (etag('"1"'), Resource(410), "STALE", "gone (status 410)"),
        (etag('"1"'), Resource(401), "UNKNOWN", "denied (status 401)"),
        (etag('"1"'), Resource(403), "UNKNOWN", "denied (status 403)"),
        (etag('"1"'), Resource(407), "UNKNOWN", "denied (status 407)"),
        (etag('"1"'), Resource(429), "UNKNOWN", "too many requests"),
        (etag('"1"'), Resource(500), "UNKNOWN", "server failed (status 500)"),
        (etag('"1"'), Resource(503, {"ETag": '"1"'}), "UNKNOWN", "server failed"),
        (etag('"1"'), Resource(304, {"ETag": '"1"'}), "UNKNOWN", "status 304"),
        (etag('"1"'), Resource(418), "UNKNOWN", "status 418"),
        (etag('"1"'), Resource(206, {"ETag": '"1"'}), "UNKNOWN", "status 206"),
        (etag('"1"'), Resource(302, {"Location": "http://127.0.0.1:1/"}), "UNKNOWN", "not followed"),
        (etag('"1"'), Resource(308, {"Location": "/", "ETag": '"1"'}), "UNKNOWN", "not followed"),
        (Resource(404), etag('"1"'), "UNKNOWN", "not seen at the save (it is gone"),
        (Resource(500), etag('"1"'), "UNKNOWN", "not seen at the save (the server failed"),
        (etag('""'), Resource(headers={"ETag": '""'}, body=b"other"), "STALE", "content has changed"),
        (etag('W/""'), Resource(headers={"ETag": 'W/""'}, body=b"other"), "STALE", "content has changed"),
        (etag('"1"'), etag('""'), "UNKNOWN", "gives no ETag any more"),
        (
            Resource(headers={"Last-Modified": TUESDAY}),
            Resource(headers={"Last-Modified": MONDAY}),
            "STALE",
            f"Last-Modified then {TUESDAY}, now {MONDAY}",
        ),
        (etag("a" * 2000), etag("b" * 2000), "FRESH", "content is the same"),
        (etag("é"), Resource(headers={"ETag": "é"}, body=b"other"), "STALE", "content has changed"),
    ],
)  # fmt: skip
def test_documents_on_the_web(web: Web, before: Resource, after: Resource, state: str, words: str) -> None:
    verdict = both(web, before, after)
    assert (verdict.state, words in verdict.evidence) == (state, True), verdict.evidence
    assert web.url() in verdict.evidence
    assert verdict.remedy or state == "FRESH"


def test_a_token_is_asked_for_without_reading_the_content(web: Web) -> None:
    web.resources["/doc"] = etag('"1"')
    captured(web.url(), hosts=(web.host,))
    assert [method for method, _, _ in web.requests] == ["HEAD"]


def test_the_other_end_of_a_redirect_gets_no_connection(web: Web) -> None:
    with Web({"/doc": etag('"1"')}) as other:
        verdict = both(web, etag('"1"'), Resource(302, {"Location": other.url()}))
        assert other.connections == 0
    assert verdict.state == "UNKNOWN"


def test_hosts_that_are_not_listed_get_no_connection_at_save_and_at_restore(web: Web) -> None:
    web.resources["/doc"] = etag('"1"')
    unseen = captured(web.url(), hosts=("example.com",))
    assert web.connections == 0
    assert judged(unseen, web.host).state == "UNKNOWN"
    then = captured(web.url(), hosts=(web.host,))
    before = web.connections
    verdict = judged(then, "example.com", "*.0.0.1", web.host.partition(":")[0])
    assert (verdict.state, web.connections) == ("UNKNOWN", before)
    assert "not contacted" in verdict.evidence
    assert web.host in (verdict.remedy or "")


def test_offline_no_socket_is_opened(web: Web, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("1")
    web.resources["/doc"] = etag('"1"')
    git = f"git+{web.url('/repo.git')}#main"
    s3 = f"s3://bucket/key?endpoint=http://{web.host}&region=us-east-1"
    then = captured(web.url(), git, s3, "file:f", hosts=(web.host,), workspace=tmp_path)
    before = web.connections

    def refuse(*_: object, **__: object) -> socket.socket:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    verdict = judged(then, web.host, network=False, workspace=tmp_path)
    monkeypatch.undo()
    assert (verdict.state, web.connections) == ("UNKNOWN", before)
    assert "the network is not used" in verdict.evidence
    assert "file:f: its content is the same" in verdict.evidence


@pytest.mark.parametrize(
    "treat", [hang, drip(b"HTTP/1.1 200 OK\r\n", b"X: 1\r\n"), flood(b"HTTP/1.1 200 OK\r\nX: ", b"a" * 999)]
)
def test_a_server_that_hangs_floods_or_drips_delays_no_other(web: Web, treat: object) -> None:
    web.resources["/doc"] = etag('"1"')
    with Raw(treat) as server:  # type: ignore[arg-type]  # one of those above
        hosts = (web.host, server.host)
        then = captured(server.url(), web.url(), hosts=hosts, timeout=2.0)
        assert [sorted(row) for row in then["resources"]] == [["at", "not_seen"], ["at", "token"]]  # type: ignore[index, call-overload]
        then["resources"][0] = {"at": server.url(), "token": {"etag": "x"}}  # type: ignore[index, call-overload]
        verdict = judged(then, *hosts, timeout=2.0)
        assert verdict.state == "UNKNOWN"
        assert f'{web.url()}: ETag "1" as then' in verdict.evidence
        assert server.closed.wait(15), "a connection is still open"
    assert not [thread for thread in threading.enumerate() if thread.name == "archiver-resource"]


def test_a_scheme_in_capitals_is_the_same(web: Web) -> None:
    web.resources["/doc"] = etag('"1"')
    then = captured(web.url().replace("http:", "HTTP:"), hosts=(web.host,))
    assert judged(then, web.host).state == "FRESH"


def test_the_most_cautious_answer_wins(web: Web) -> None:
    for name in "abc":
        web.resources[f"/{name}"] = etag(name)
    then = captured(*(web.url(f"/{name}") for name in "abc"), hosts=(web.host,))
    assert judged(then, web.host).state == "FRESH"
    web.resources["/b"] = Resource(500)
    assert judged(then, web.host).state == "UNKNOWN"
    web.resources["/c"] = etag("d")
    verdict = judged(then, web.host)
    assert verdict.state == "STALE"
    assert verdict.evidence.startswith(web.url("/c"))


SECRETS = [
    "https://user:{0}@example.com/a", "https://example.com/a?token={0}", "https://example.com/a#{0}",
    "git+https://{0}@example.com/r#main", "ssh://me:{0}@example.com/r", "s3://k:{0}@bucket/key",
    "s3://bucket/key?endpoint=https://u:{0}@example.com", "https://example.com\\@evil/?key={0}",
]  # fmt: skip


@pytest.mark.parametrize("form", SECRETS)
def test_addresses_that_carry_credentials_are_neither_asked_nor_stored(form: str) -> None:
    secret = f"x{os.urandom(12).hex()}"
    then = captured(form.format(secret), hosts=("example.com", "evil"))
    assert secret not in json.dumps(then)
    verdict = judged(then, "example.com", "evil")
    assert verdict.state == "UNKNOWN"
    assert "not seen at the save" in verdict.evidence


@pytest.mark.parametrize(
    "address",
    ["", "x", "ftp://a/b", "git+ssh://git@host/r", "s3://", "s3://b", "s3://UPPER/key", "file:", "call:none",
     "https://", "https://[", "git+https://example.com/r?x=1", "git+https://example.com/r#a..b",
     "file://host/x", "git+file://relative", "s3://bucket/key?region=../..", "s3://bucket/" + "k" * 1025,
     "https://a/" + "x" * 3000],
)  # fmt: skip
def test_what_cannot_be_asked_never_fails_a_save(address: str, tmp_path: Path) -> None:
    then = captured(address, hosts=("example.com",), workspace=tmp_path)
    assert "not_seen" in then["resources"][0]  # type: ignore[index, call-overload]
    assert judged(then, "example.com", workspace=tmp_path).state == "UNKNOWN"


def test_nothing_watched_is_nothing_remembered() -> None:
    assert PROBE.capture(context()) is None


def test_more_than_a_record_holds_is_said(web: Web) -> None:
    then = captured(*(f"file:{number}{'x' * 300}" for number in range(200)))
    assert len(json.dumps(then)) < 16 << 10
    assert then["left_out"] > 100  # type: ignore[index, call-overload]
    assert "too many to remember" in judged({"resources": [], "left_out": 7}).evidence


@pytest.mark.parametrize(
    "record",
    [None, [], {}, {"resources": 1}, "x"],
)
def test_a_record_of_another_shape_is_not_believed(record: JsonValue) -> None:
    with pytest.raises(TypeError):
        judged(record)


@pytest.mark.parametrize(
    "row",
    [None, 1, {}, {"at": 1}, {"at": "file:a", "token": {}}, {"at": "file:a", "token": {"content": 1}},
     {"at": "https://a/", "token": {"etag": 1}}, {"at": "s3://bucket/k", "token": {}},
     {"token": {"etag": "x"}},
     {"at": "git+file:///", "token": {"head": 1}}, {"at": "call:x", "token": {"token": {"salt": "zz"}}}],
)  # fmt: skip
def test_a_row_of_another_shape_is_unknown(row: JsonValue, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    assert judged({"resources": [row]}, workspace=tmp_path).state == "UNKNOWN"


def test_what_redaction_took_out_is_unknown_and_not_changed(web: Web) -> None:
    web.resources["/doc"] = etag('"1"')
    row: JsonValue = {"at": web.url(), "token": {"etag": "[REDACTED:key:1a2b]"}}
    verdict = judged({"resources": [row]}, web.host)
    assert (verdict.state, "was taken out" in verdict.evidence) == ("UNKNOWN", True)


# --- files --------------------------------------------------------------------------------------------------


def test_an_edited_file_is_stale(tmp_path: Path) -> None:
    place = tmp_path / "a file"
    place.write_text("one")
    for address in ("file:a file", f"file:{place}", place.as_uri(), "file:~/a file"):
        place.write_text("one")
        facts = {"workspace": tmp_path, "environ": {"HOME": str(tmp_path)}}
        then = captured(address, **facts)  # type: ignore[arg-type]  # keyword bundle
        assert judged(then, **facts).state == "FRESH"
        place.write_text("two")
        assert (judged(then, **facts).state, "one" in json.dumps(then)) == ("STALE", False)
        place.unlink()
        verdict = judged(then, **facts)
        assert (verdict.state, "no such file" in verdict.evidence) == ("STALE", True)


def test_a_file_that_a_machine_without_the_work_does_not_have_is_unknown(tmp_path: Path) -> None:
    work, here = tmp_path / "work", tmp_path / "here"
    for folder in (work, here):
        folder.mkdir()
    (work / "f").write_text("one")
    for address in ("file:f", f"file:{work / 'f'}"):
        then = captured(address, workspace=work)
        (work / "f").rename(work / "away")
        verdict = judged(then, workspace=here)
        assert (verdict.state, str(here) in verdict.evidence, str(work) in verdict.evidence) == (
            "UNKNOWN",
            True,
            True,
        )
        assert judged(then, workspace=work).state == "STALE"
        (work / "away").rename(work / "f")
    then = captured("file:f", workspace=work)
    (here / "f").write_text("two")
    assert judged(then, workspace=here).state == "STALE"


def test_without_a_workspace_the_current_folder_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_text("one")
    monkeypatch.chdir(tmp_path)
    assert judged(captured("file:f")).state == "FRESH"
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert "no current folder" in captured("file:f")["resources"][0]["not_seen"]  # type: ignore[index, call-overload, operator]


def test_the_digest_of_a_file_cannot_be_guessed_from(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1234")
    assert captured("file:a", workspace=tmp_path) != captured("file:a", workspace=tmp_path)


@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "device"])
def test_only_regular_files_are_opened(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "f"
    place.write_text("one")
    then = captured("file:f", workspace=tmp_path)
    place.unlink()
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "link":
        (tmp_path / "g").write_text("one")
        place.symlink_to("g")
    elif kind == "folder":
        place.mkdir()
    else:
        then["resources"][0]["at"] = "file:/dev/zero"  # type: ignore[index, call-overload]
    verdict = judged(then, workspace=tmp_path)
    assert (verdict.state, "do not open" in verdict.evidence) == ("STALE", True)
    address = "file:/dev/zero" if kind == "device" else "file:f"
    assert "not_seen" in captured(address, workspace=tmp_path)["resources"][0]  # type: ignore[index, call-overload]


def test_a_file_that_is_too_large_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("one")
    then = captured("file:f", workspace=tmp_path)
    os.truncate(tmp_path / "f", (256 << 20) + 1)
    verdict = judged(then, workspace=tmp_path, timeout=60.0)
    assert (verdict.state, "larger than" in verdict.evidence) == ("UNKNOWN", True)


def test_a_file_that_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    then = captured("file:f", workspace=tmp_path / ("x" * 300))
    assert "cannot be opened" in judged(then, workspace=tmp_path).evidence


# --- functions ----------------------------------------------------------------------------------------------


@pytest.fixture
def orders() -> Iterator[list[object]]:
    """What the function `orders` returns: the first of the list; an exception is raised."""
    given: list[object] = ["v1"]

    def token() -> str:
        if isinstance(given[0], BaseException):
            raise given[0]
        return given[0]  # type: ignore[return-value]  # wrong ones too

    callables.register_resource("orders", token)
    yield given
    callables.unregister_resource("orders")


@pytest.mark.parametrize(
    ("now", "state", "words"),
    [
        ("v1", "FRESH", "token is the same"),
        ("v2", "STALE", "token has changed"),
        (b"v1", "STALE", "token has changed"),
        (None, "STALE", "says that it is gone"),
        (1.5, "UNKNOWN", "returned float"),
        (RuntimeError("the password is opensesame"), "UNKNOWN", "failed with RuntimeError"),
        (SystemExit(3), "UNKNOWN", "failed with SystemExit"),
        ("\ud800", "STALE", "token has changed"),
    ],
)
def test_a_function_tells_the_version(orders: list[object], now: object, state: str, words: str) -> None:
    then = captured()
    assert "v1" not in json.dumps(then)
    orders[0] = now
    verdict = judged(then)
    assert (verdict.state, words in verdict.evidence) == (state, True), verdict.evidence
    assert "opensesame" not in verdict.evidence


def test_a_function_that_is_not_there_or_would_ask_others_is_unknown(orders: list[object]) -> None:
    then = captured()
    orders[0] = AssertionError("called")
    assert "not contacted" in judged(then, network=False).evidence
    callables.unregister_resource("orders")
    assert "no function is registered" in judged(then).evidence
    callables.register_resource("orders", lambda: "v1", network=False)
    assert judged(then, network=False).state == "FRESH"


def test_a_function_that_hangs_is_unknown(orders: list[object]) -> None:
    then = captured()
    callables.unregister_resource("orders")
    done = threading.Event()
    callables.register_resource("orders", lambda: str(done.wait(20)))
    assert "call:orders: no answer" in judged(then, timeout=0.3).evidence
    done.set()


@pytest.mark.parametrize("name", ["orders", "", "a b", "x" * 65, "ü", 1])
def test_a_name_that_is_taken_or_none_is_refused(orders: list[object], name: str) -> None:
    with pytest.raises(UsageError):
        callables.register_resource(name, lambda: "1")
    with pytest.raises(UsageError):
        callables.register_resource("other", "no function")  # type: ignore[arg-type]  # on purpose
