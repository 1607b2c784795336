"""The one door to other hosts: what may be asked, and what no answer can do."""

from __future__ import annotations

import hashlib
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from archiver.freshness.hosts import AddressError, is_listed, read_entry, target, without_secrets
from archiver.freshness.network import MAX_BODY, Network, place_of
from archiver.freshness.unasked import TooLargeError, Unasked

from .web import Raw, Resource, Web, context, drip, flood, hang

OK = b"HTTP/1.1 200 OK\r\n"


def ask(url: str, *hosts: str, timeout: float = 10.0, method: str = "GET", **more: Any) -> Any:
    return Network.of(context(*hosts, timeout=timeout)).ask(method, place_of(url), **more)


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        ("example.com", "https://example.com/a"),
        ("example.com", "http://example.com/a"),
        ("EXAMPLE.com.", "https://example.COM./a"),
        ("example.com:8443", "https://example.com:8443/a"),
        ("example.com:443", "https://example.com/a"),
        ("*.example.com", "https://a.b.example.com/"),
        ("*.Example.com:8443", "https://x.example.com:8443/"),
        ("bücher.example", "https://xn--bcher-kva.example/"),
        ("xn--bcher-kva.example", "https://BÜCHER.example/"),
        ("127.0.0.1:80", "http://127.0.0.1/"),
        ("[::1]:8080", "http://[0:0::1]:8080/"),
        ("::1", "https://[::1]/"),
        ("example.com", "https://ｅｘａｍｐｌｅ.com/"),
    ],
)
def test_a_listed_host_may_be_asked_however_it_is_written(entry: str, url: str) -> None:
    assert is_listed(target(url), [entry])


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        ("example.com", "https://evil.com/"),
        ("example.com", "https://example.com:8443/"),
        ("example.com:8443", "https://example.com/"),
        ("example.com:80", "https://example.com/"),
        ("example.com", "https://a.example.com/"),
        ("*.example.com", "https://example.com/"),
        ("*.example.com", "https://evilexample.com/"),
        ("*.example.com", "https://example.com.evil.org/"),
        ("*", "https://example.com/"),
        ("*.*", "https://example.com/"),
        ("*.0.0.1", "http://127.0.0.1/"),
        ("", "https://example.com/"),
        ("https://example.com", "https://example.com/"),
        ("user@example.com", "https://example.com/"),
        ("example.com:0", "https://example.com/"),
        ("example.com:http", "http://example.com/"),
        ("127.0.0.1", "http://127.0.0.1:8080/"),
        ("evil.org", "http://example.com?@evil.org/"),
        ("evil.org", "http://example.com#@evil.org/"),
    ],
)
def test_any_other_host_may_not(entry: str, url: str) -> None:
    assert not is_listed(target(url), [entry])


@pytest.mark.parametrize(
    "url",
    [
        "http://allowed@evil.org/", "http://allowed:80@evil.org/", "http://@evil.org/",
        "http://allowed\\@evil.org/", "http://allowed\t.evil.org/", "http://allowed/\r\nHost: evil.org",
        "http://0x7f.1/", "http://2130706433/", "http://127.1/", "http://017700000001/", "http://1.2.3.4.5/",
        "http://127.0.0.01/", "http://１２７.1/", "http://%31%32%37.0.0.1/", "http://[::1/", "http://[::1]x/",
        "http://[127.0.0.1]/", "http://::1/", "http://[fe80::1%25eth0]/", "http:///path", "http://",
        "http://a..b/", "http://.a/", "http://-a.com/", "http://a b/", "http://example.com:0/",
        "http://example.com:99999/", "http://example.com:port/", "ftp://example.com/", "file:///etc/passwd",
        "example.com", "//example.com/", "http://example.com/ü", "gopher://example.com/",
        "http://" + "a" * 64 + ".com/",
        "http://a/" + "x" * 3000,
    ],
)  # fmt: skip
def test_an_address_with_two_readings_is_none(url: str) -> None:
    with pytest.raises(AddressError) as caught:
        target(url)
    assert "evil" not in str(caught.value)


@pytest.mark.parametrize("entry", ["*", "*.", "a:b:c:d", "host:99999", "a b", "http://a", "*.10.0.0.1"])
def test_an_entry_that_is_none_is_told(entry: str) -> None:
    with pytest.raises(AddressError):
        read_entry(entry)


@pytest.mark.parametrize(
    "query",
    [
        "token=x", "access_token=x", "X-Amz-Signature=ab", "sig=a", "api_key=a", "apikey=b", "key=1",
        "clientSecret=1", "q=" + "a1" * 16, "password", "a=1&b=2&auth=3",
    ],
)  # fmt: skip
def test_an_address_that_carries_a_credential_is_refused(query: str) -> None:
    with pytest.raises(AddressError) as caught:
        without_secrets(f"https://example.com/a?{query}")
    assert str(caught.value) == "the query of its address looks like a credential"


def test_an_address_without_one_stays() -> None:
    assert without_secrets("https://example.com/a?page=2&lang=de&keyword=x")
    with pytest.raises(AddressError):
        without_secrets("https://example.com/a#access")


def test_a_host_that_is_not_listed_gets_no_connection() -> None:
    with Web({"/doc": Resource()}) as web:
        with pytest.raises(Unasked) as caught:
            ask(web.url(), "example.com")
        assert web.connections == 0
        assert "not contacted" in caught.value.evidence
        assert f'hosts = ["{web.host}"]' in (caught.value.remedy or "")
        with pytest.raises(Unasked, match="not contacted"):
            Network.of(context(web.host, network=False)).ask("GET", place_of(web.url()))
        assert web.connections == 0
        assert ask(web.url(), web.host).body == b"content"
        assert web.connections == 1


def test_nothing_is_sent_that_was_not_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither the password of a `.netrc` nor a proxy of the environment."""
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password opensesame\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    with Web() as proxy, Web({"/doc": Resource()}) as web:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://{proxy.host}")
        ask(web.url(), web.host)
        assert proxy.connections == 0
        [(_, _, headers)] = web.requests
    assert headers.keys() == {"Host", "User-Agent", "Accept", "Accept-Encoding", "Connection"}


def test_a_redirect_is_not_followed() -> None:
    with Web({"/doc": Resource()}) as other:
        with Web({"/doc": Resource(302, {"Location": other.url()})}) as web:
            assert ask(web.url(), web.host, other.host).status == 302
        assert other.connections == 0


@pytest.mark.parametrize(
    "treat",
    [
        hang,
        drip(OK, b"X-Drip: 1\r\n"),
        drip(OK + b"Content-Length: 100000\r\n\r\n"),
        drip(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        drip(OK + b"\r\n"),
        drip(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["silent", "headers", "body", "chunks", "until it closes", "continue"],
)
def test_an_exchange_ends_with_its_time(treat: Callable[..., None]) -> None:
    """Each piece comes in time; together they would take for ever."""
    with Raw(treat) as server:
        with pytest.raises(Unasked, match=r"time of a probe|larger"):
            ask(server.url(), server.host, timeout=1.0)
        assert server.closed.wait(15), "the connection is still open"


@pytest.mark.parametrize(
    "treat",
    [
        flood(OK, b"X-Long: " + b"a" * 1000 + b"\r\n"),
        flood(OK + b"X-Line: ", b"a" * 1000),
        flood(OK + b"\r\n", b"a" * 65536),
        flood(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"4000\r\n" + b"a" * 0x4000 + b"\r\n"),
        flood(OK + b"Content-Length: 999999999999\r\n\r\n", b"a" * 65536),
        flood(OK + b"Transfer-Encoding: chunked\r\n\r\n1;", b"a" * 1000),
    ],
    ids=["headers", "header line", "body", "chunks", "length", "chunk line"],
)
def test_no_more_is_read_than_fits(treat: Callable[..., None]) -> None:
    with Raw(treat) as server:
        with pytest.raises(Unasked) as caught:
            ask(server.url(), server.host, timeout=20, limit=1 << 16)
        assert "time" not in caught.value.evidence
        assert server.closed.wait(15), "the connection is still open"


def test_a_body_of_the_largest_size_is_read_and_one_more_byte_is_not() -> None:
    with Web({"/a": Resource(body=b"a" * 100), "/b": Resource(body=b"a" * 101)}) as web:
        assert len(ask(web.url("/a"), web.host, limit=100).body) == 100
        hashed = ask(web.url("/a"), web.host, limit=100, hashed=True).body
        assert hashed == hashlib.sha256(b"a" * 100).digest()
        with pytest.raises(TooLargeError):
            ask(web.url("/b"), web.host, limit=100)
    assert MAX_BODY == 8 << 20


@pytest.mark.parametrize("hashed", [True, False])
def test_the_size_counts_also_where_none_is_stated(hashed: bool) -> None:
    def treat(line: socket.socket, stop: threading.Event) -> None:
        line.sendall(OK + b"\r\n" + b"a" * 101)
        line.shutdown(socket.SHUT_WR)

    with Raw(treat) as server:
        assert ask(server.url(), server.host, limit=101, hashed=hashed).status == 200
        with pytest.raises(TooLargeError):
            ask(server.url(), server.host, limit=100, hashed=hashed)


@pytest.mark.parametrize(
    "answer",
    [
        b"", b"\xff\xfe\n", b"SSH-2.0-x\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/9 200 OK\r\n\r\n",
        OK + b"Content-Length: 100\r\n\r\nshort", OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
        OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
    ],
)  # fmt: skip
def test_what_is_no_answer_is_said_and_not_repeated(answer: bytes) -> None:
    def treat(line: socket.socket, stop: threading.Event) -> None:
        line.sendall(answer)
        line.shutdown(socket.SHUT_WR)

    with Raw(treat) as server, pytest.raises(Unasked, match="no usable answer") as caught:
        ask(server.url(), server.host)
    assert "SSH" not in caught.value.evidence


def test_nobody_listening_is_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(Unasked, match="ConnectionRefusedError"):
        ask(f"http://127.0.0.1:{port}/", f"127.0.0.1:{port}")


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1",
        "fd00:ec2::254", "fe80::1", "0.0.0.0", "::", "100.100.100.200", "168.63.129.16",  # noqa: S104 - asked, not bound
        "224.0.0.1", "ff02::1", "255.255.255.255",
        "::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe", "::ffff:0:a9fe:a9fe",
    ],
)  # fmt: skip
def test_addresses_that_hand_out_credentials_are_never_asked(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither as they are nor behind a listed name; among several, one of them is enough."""
    written = f"[{address}]" if ":" in address else address
    with pytest.raises(Unasked, match="never ask"):
        ask(f"http://{written}/", written)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    found = [(socket.AF_INET, 1, 6, "", ("192.0.2.1", 80)), (family, 1, 6, "", (address, 80))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(Unasked, match="never ask"):
        ask("http://listed.example/", "listed.example")


def test_a_name_elsewhere_that_leads_to_this_machine_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with Web({"/doc": Resource()}) as web:
        port = int(web.host.rpartition(":")[2])
        found = [(socket.AF_INET, 1, 6, "", ("127.0.0.1", port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        with pytest.raises(Unasked, match="leads to this machine"):
            ask(f"http://rebound.example:{port}/doc", f"rebound.example:{port}")
        assert web.connections == 0
        assert ask(f"http://localhost:{port}/doc", f"localhost:{port}").status == 200


def test_a_name_that_is_not_resolved_in_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    done = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: done.wait(20) and [])
    with pytest.raises(Unasked, match="cannot be resolved in time"):
        ask("http://slow.example/", "slow.example", timeout=0.3)
    done.set()


class Tls(Web):
    """A server with a certificate of its own for `localhost`."""

    def __init__(self, folder: Path) -> None:
        super().__init__({"/doc": Resource()})
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
        start = datetime.now(UTC) - timedelta(days=1)
        made = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(start + timedelta(days=30))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        self.certificate = folder / "certificate.pem"
        self.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        private = folder / "key.pem"
        private.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trust.load_cert_chain(self.certificate, private)
        self._http.socket = trust.wrap_socket(
            self._http.socket, server_side=True, do_handshake_on_connect=False
        )
        assert isinstance(self._http, ThreadingHTTPServer)


@pytest.fixture
def tls(tmp_path: Path) -> Iterator[Tls]:
    with Tls(tmp_path) as server:
        yield server


def test_tls_is_verified(tls: Tls, monkeypatch: pytest.MonkeyPatch) -> None:
    port = tls.host.rpartition(":")[2]
    with pytest.raises(Unasked, match="SSLCertVerificationError"):
        ask(f"https://localhost:{port}/doc", f"localhost:{port}")
    assert tls.requests == []
    monkeypatch.setenv("SSL_CERT_FILE", str(tls.certificate))
    assert ask(f"https://localhost:{port}/doc", f"localhost:{port}").body == b"content"
    with pytest.raises(Unasked, match="IP address mismatch"):
        ask(f"https://127.0.0.1:{port}/doc", f"127.0.0.1:{port}")


def test_a_handshake_that_hangs_ends_with_its_time() -> None:
    with Raw(hang) as server:
        with pytest.raises(Unasked, match="time of a probe"):
            ask(server.url().replace("http:", "https:"), server.host, timeout=1.0)
        assert server.closed.wait(15)


def test_every_address_is_one_of_the_two_kinds() -> None:
    """What is compared with the list is what is connected to."""
    assert target("http://[::ffff:7f00:1]/").host == str(ipaddress.ip_address("::ffff:7f00:1"))
