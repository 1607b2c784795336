"""Keys as text and identity files: one spelling, clear errors, and no secret in any of them."""

from __future__ import annotations

import hashlib
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from archiver import age
from archiver.age import bech32, encoding
from archiver.age.header import Stanza
from archiver.errors import AlreadyExistsError, HeaderError, InvalidKeyError, KeyUnavailableError

KEY = age.X25519Identity(hashlib.sha256(b"test key").digest())  # fixed: parametrised tests are named by it
CREATED = datetime(2026, 1, 31, 14, tzinfo=UTC)

LOW_ORDER = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
]
NOT_CANONICAL = [
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",  # p
    "f6ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",  # p + 9, the base point
    "0900000000000000000000000000000000000000000000000000000000000080",  # the base point with bit 255
]


def test_recipients_and_identities_are_read_as_they_are_written() -> None:
    assert str(age.parse_recipient(str(KEY.recipient))) == str(KEY.recipient)
    again = age.parse_identity(KEY.secret_text())
    assert isinstance(again, age.X25519Identity)
    assert again.recipient == KEY.recipient
    assert again.fingerprint == age.parse_recipient(str(KEY.recipient)).fingerprint


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (str(KEY.recipient).upper(), "not a kind of recipient"),
        (str(KEY.recipient) + " ", "Bech32 does not have"),
        (str(KEY.recipient)[:-1], "checksum"),
        (KEY.secret_text(), "secret identity"),
        (KEY.secret_text().lower(), "secret identity"),
        (bech32.encode("age", bytes(31)), "32 bytes, not 31"),
        (bech32.encode("age1pq", bytes(32)), "1216 bytes, not 32"),
        (bech32.encode("age1tag", bytes(33)), "not a kind of recipient"),
        ("arn:aws:kms:eu-central-1:1:key/x", "not the ARN of a KMS key"),
        ("", "not an age recipient"),
    ],
)
def test_what_is_no_recipient(text: str, reason: str) -> None:
    with pytest.raises(InvalidKeyError, match=reason):
        age.parse_recipient(text)


@pytest.mark.parametrize("public", LOW_ORDER)
def test_a_recipient_that_anybody_could_open_for(public: str) -> None:
    with pytest.raises(InvalidKeyError, match="low-order"):
        age.parse_recipient(bech32.encode("age", bytes.fromhex(public)))


@pytest.mark.parametrize("public", NOT_CANONICAL)
def test_a_recipient_with_a_second_spelling(public: str) -> None:
    """Sealed to such a string, its identity could not open the file: it salts with the canonical one."""
    with pytest.raises(InvalidKeyError, match="canonical"):
        age.parse_recipient(bech32.encode("age", bytes.fromhex(public)))


@pytest.mark.parametrize("share", LOW_ORDER)
def test_a_share_of_low_order_is_refused(share: str) -> None:
    stanza = Stanza("X25519", (encoding.encode(bytes.fromhex(share)).decode(),), bytes(32))
    with pytest.raises(HeaderError, match="low-order"):
        KEY.unwrap([stanza])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (KEY.secret_text().lower(), "not a kind of identity"),
        (KEY.secret_text()[:-1], "checksum"),
        (KEY.secret_text().replace("AGE", "age"), "mixes"),
        (str(KEY.recipient), "public recipient"),
        (bech32.encode("AGE-SECRET-KEY-PQ-", bytes(31)), "32 bytes, not 31"),
        (bech32.encode("AGE-PLUGIN-X-", bytes(32)), "not a kind of identity"),
        (bech32.encode("AGE-SECRET-KEY-", bytes(33)), "32 bytes, not 33"),
        ("", "not an age identity"),
    ],
)
def test_what_is_no_identity(text: str, reason: str) -> None:
    with pytest.raises(InvalidKeyError, match=reason) as caught:
        age.parse_identity(text)
    assert not text or text not in str(caught.value)


@pytest.mark.parametrize("phrase", ["", "\ud800"])
def test_what_is_no_passphrase(phrase: str) -> None:
    for kind in (age.ScryptIdentity, age.ScryptRecipient):
        with pytest.raises(InvalidKeyError, match="passphrase"):
            kind(phrase)


def test_nothing_shows_a_secret() -> None:
    shown = repr(KEY) + str(KEY) + repr(age.ScryptIdentity("word")) + repr(age.ScryptRecipient("word"))
    assert str(KEY.recipient) in shown
    assert KEY.secret_text()[16:] not in shown
    assert "word" not in shown


def file(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def test_an_identity_file(tmp_path: Path) -> None:
    path = tmp_path / "identity.txt"
    age.write_identity(path, KEY, created=CREATED)
    assert path.read_text(encoding="utf-8").split("\n") == [
        "# created: 2026-01-31T14:00:00+00:00",
        f"# public key: {KEY.recipient}",
        KEY.secret_text(),
        "",
    ]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.fingerprint for each in age.read_identities(path)] == [KEY.fingerprint]
    with pytest.raises(AlreadyExistsError, match="never overwritten"):
        age.write_identity(path, age.generate(), created=CREATED)
    assert [each.fingerprint for each in age.read_identities(path)] == [KEY.fingerprint]


def test_comments_blank_lines_and_several_keys_of_both_kinds(tmp_path: Path) -> None:
    other = age.HybridIdentity.generate()
    text = f"# one\r\n\r\n{KEY.secret_text()}\r\n  # two\n\n{other.secret_text()}"
    found = age.read_identities(file(tmp_path / "keys", text))
    assert [each.fingerprint for each in found] == [KEY.fingerprint, other.fingerprint]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("# a\n\n{key}\n{broken}\n", r"keys, line 4: not an age identity .*checksum"),
        ("{public}\n", "keys, line 1: a public recipient"),
        ("# only a comment\n", "keys holds no identity"),
        ("", "keys holds no identity"),
        ("-----BEGIN PRIVATE KEY-----\n", "keys is a PEM file"),
    ],
)
def test_a_broken_identity_file_names_file_and_line(tmp_path: Path, text: str, reason: str) -> None:
    secret = KEY.secret_text()
    filled = text.format(key=secret, broken=secret[:-1], public=KEY.recipient)
    with pytest.raises(InvalidKeyError, match=reason) as caught:
        age.read_identities(file(tmp_path / "keys", filled))
    assert secret[16:-1] not in str(caught.value)


def test_an_identity_file_that_others_can_read(tmp_path: Path) -> None:
    path = file(tmp_path / "keys", KEY.secret_text(), mode=0o644)
    with pytest.raises(InvalidKeyError, match="other users") as caught:
        age.read_identities(path)
    assert f"chmod 600 {path}" in (caught.value.remedy or "")


def test_a_missing_identity_file(tmp_path: Path) -> None:
    with pytest.raises(KeyUnavailableError, match="No such file"):
        age.read_identities(tmp_path / "none")
