"""Files of credentials: which are left out of a workspace, and what is learned from them first."""

from __future__ import annotations

import base64
import secrets

import pytest

from archiver.model import LeftOut
from archiver.redact import Carried, CarriedRedactor, Redactor, carried, credential_files
from archiver.redact.finder import Finder
from archiver.scratch import Scratch
from tests.redact.conftest import KEY
from tests.redact.containers import blocks, file
from tests.redact.support import expand


def word() -> str:
    return "q" + secrets.token_hex(10) + "Z"


def pem(label: str = "PRIVATE KEY") -> str:
    body = base64.b64encode(secrets.token_bytes(400)).decode()
    lines = "\n".join(body[at : at + 64] for at in range(0, len(body), 64))
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n"


@pytest.fixture
def redactor(finder: Finder) -> Redactor:
    return Redactor(finder, KEY, ())


@pytest.fixture
def work(redactor: Redactor, scratch: Scratch) -> CarriedRedactor:
    return redactor.carried(scratch)


def take(work: CarriedRedactor, path: str, text: str | bytes) -> Carried | LeftOut:
    return work.file(file(path), blocks(text.encode() if isinstance(text, str) else text))


LEFT_OUT = [
    *(".env", "a/b/.env", ".env.local", "app/.env.production", "ID_RSA", ".ssh/id_ed25519", "deploy.key"),
    *("AuthKey_1.p8", "x.p12", "x.PFX", "release.jks", "a/upload.keystore", "pass.kdbx", "host.keytab"),
    *(".netrc", "_netrc", ".pgpass", ".git-credentials", ".config/git/credentials", ".aws/credentials"),
    *(".cargo/credentials.toml", "x/application_default_credentials.json", ".vault-token", "me.ppk"),
    *(".codex/auth.json", ".claude/.credentials.json", ".gnupg/private-keys-v1.d/A.key"),
]
CARRIED = [
    *(".env.example", ".env.sample", ".env.local.template", ".env.dist", "env", "src/environment.py"),
    *("id_rsa.pub", "id_rsa_notes.txt", "keys.py", "monkey", "x.keyboard", "credentials", "netrc.md"),
    *(".npmrc", ".pypirc", "auth.json", "a.pem", "main.tf", "terraform.tfstate", "kubeconfig", ".aws/config"),
    *("prod.env", ".envrc", "secrets.yml", "a.crt", ".env/bin/activate", "credentials.toml"),
]


@pytest.mark.parametrize("path", LEFT_OUT)
def test_a_file_of_credentials_is_left_out_unread(
    redactor: Redactor, work: CarriedRedactor, path: str
) -> None:
    def unread() -> None:
        raise AssertionError("it was read")

    made = work.file(file(path), unread)  # type: ignore[arg-type]
    assert isinstance(made, LeftOut)
    assert made.reason.startswith("a file of credentials (")
    assert made.reason.endswith("); not carried")
    assert redactor.receipt().left_out == (made,)


@pytest.mark.parametrize("path", CARRIED)
def test_a_file_of_another_name_or_without_a_finding_is_carried(work: CarriedRedactor, path: str) -> None:
    assert isinstance(take(work, path, "registry = https://r.example/\nname = x\n"), Carried)


@pytest.mark.parametrize(
    "path",
    [".npmrc", "pip.conf", "prod.env", "a.tfstate", ".docker/config.json", "a.tfvars", "conf/auth.json"],
)
def test_settings_with_a_token_are_left_out_too(work: CarriedRedactor, path: str) -> None:
    token = expand("npm_{alnum:36}", 5)
    assert isinstance(take(work, path, f"//registry.npmjs.org/:_authToken={token}\n"), LeftOut)
    assert isinstance(take(work, "other.txt", f"//registry.npmjs.org/:_authToken={token}\n"), Carried)


@pytest.mark.parametrize(
    "text",
    [
        pem(),
        pem("OPENSSH PRIVATE KEY"),
        "\n# of the host\n" + pem("ENCRYPTED PRIVATE KEY"),
        pem("PGP PRIVATE KEY BLOCK"),
        "# created: today\n# public key: age1x\n" + expand("AGE-SECRET-KEY-1{bech32:58}", 3) + "\n",
        "PuTTY-User-Key-File-3: ssh-ed25519\n",
        b"\xfe\xed\xfe\xed\0\0\0\2" + bytes(50),
        b"\x03\xd9\xa2\x9a\x67\xfb\x4b\xb5" + bytes(50),
        b"\x30\x82\x09\x51\x02\x01\x03\x30\x82" + bytes(50),
        b"\x30\x82\x04\xbd\x02\x01\x00\x30\x0d\x06\x09" + bytes(50),
        b"\x30\x82\x04\xa4\x02\x01\x00\x02\x82\x01\x01" + bytes(50),
    ],
)
def test_a_file_that_is_a_key_is_left_out_whatever_its_name(work: CarriedRedactor, text: str | bytes) -> None:
    made = take(work, "notes/innocent", text)
    assert isinstance(made, LeftOut)
    assert "a file of credentials" in made.reason


def test_a_certificate_is_carried_and_one_with_its_key_is_not(work: CarriedRedactor) -> None:
    certificate = pem("CERTIFICATE")
    for path in ("tls.pem", "tls.crt"):
        work.learn(file(path), blocks(certificate.encode()))
        made = take(work, path, certificate)
        assert isinstance(made, Carried)
        assert not made.redacted
        assert isinstance(take(work, path, certificate + pem()), LeftOut)


def test_values_of_a_file_of_credentials_are_replaced_everywhere(
    redactor: Redactor, work: CarriedRedactor
) -> None:
    secret, part, key = word(), word(), pem()
    texts = {
        "app/.env": f"DB_PASSWORD={secret}\nPORT=8080\n",
        ".netrc": f"machine a.example login me password {part}\n",
        "tls.key": key,
        "store.p12": b"\x30\x82\x09\x51\x02\x01\x03\x30\x82" + bytes(50),
    }
    for path, text in texts.items():
        assert work.is_secret(path)
        work.learn(file(path), blocks(text if isinstance(text, bytes) else text.encode()))
    body = "".join(key.splitlines()[1:-1])
    made = take(work, "a.txt", f"so {secret}\nand {part}\n> {body[:90]}\nport 8080\n")
    assert isinstance(made, Carried)
    assert isinstance(made.source, bytes)
    assert not any(one.encode() in made.source for one in (secret, part, body[:60]))
    assert made.source.endswith(b"port 8080\n")
    assert secret not in redactor.text(f"it is {secret}")
    receipt = redactor.receipt()
    assert any("DB_PASSWORD in app/.env" in finding.about for finding in receipt.findings)
    assert receipt.unread == ()


def test_what_cannot_be_learned_is_named(
    redactor: Redactor, work: CarriedRedactor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carried, "MOST_SECRETS", 20)
    work.learn(file("a/.env"), blocks(b"this is no line\x01 of it\n=\n"))
    work.learn(file("b/.env"), blocks(b"A=" + b"x" * (5 << 20)))
    many = "".join(f"K{at}_TOKEN={word()}\n" for at in range(15)).encode()
    work.learn(file("c/.env"), blocks(many))
    work.learn(file("d/.env"), blocks(many.replace(b"_TOKEN", b"_SECRET").replace(b"=q", b"=r")))
    unread = redactor.receipt().unread
    assert [one.split(":")[0] for one in unread] == ["a/.env", "b/.env", "d/.env"]
    assert "4 MiB" in unread[1]
    assert "20 secrets" in unread[2]


def test_by_setting_they_are_carried_redacted(redactor: Redactor, scratch: Scratch) -> None:
    work = redactor.carried(scratch, credentials="redact")
    secret = word()
    made = take(work, ".env", f"DB_PASSWORD={secret}\nPORT=8080\n")
    assert isinstance(made, Carried)
    assert isinstance(made.source, bytes)
    assert made.redacted
    assert made.source.startswith(b"DB_PASSWORD=[REDACTED:")
    assert made.source.endswith(b"\nPORT=8080\n")
    key = take(work, "id_rsa", pem())
    assert isinstance(key, Carried)
    assert isinstance(key.source, bytes)
    assert b"[REDACTED:" in key.source
    for path in ("x.jks", "other"):
        assert isinstance(take(work, path, b"\xfe\xed\xfe\xed\0\0\0\2" + bytes(50)), LeftOut)


def test_every_row_of_the_list_is_met() -> None:
    met = {credential_files.by_name(path) for path in (*LEFT_OUT, *CARRIED, *OTHERS)}
    assert {(when, what) for _, when, what in credential_files.NAMED} <= met


OTHERS = [
    *("ssh_host_rsa_key", "Login.keychain-db", "secring.gpg", ".htpasswd", ".azure/msal_token_cache.json"),
    *(".docker/config.json", ".config/gh/hosts.yml", ".huggingface/token", "vpn/home.ovpn"),
    *(".local/share/opencode/auth.json", "a.tfvars", "secrets.toml"),
]
