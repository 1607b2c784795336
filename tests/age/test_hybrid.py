"""The post-quantum kind of key: its texts, its checks, and files in it. CCTV has the rest."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from archiver import age
from archiver.age import bech32
from archiver.errors import InvalidKeyError
from archiver.secretfile import write_secret_file

KEY, OTHER = age.HybridIdentity.generate(), age.HybridIdentity.generate()
PUBLIC = bech32.decode(str(KEY.recipient))[1]


def test_the_example_of_the_specification() -> None:
    """Identity and recipient as age.md prints them; the recipient by its digest."""
    secret = bytes.fromhex("31bda90fbf9fccdde5cfc0ed5a0378c5ea67ea193d7938b03b8c5dabb9a67de3")
    identity = age.HybridIdentity(secret)
    assert hashlib.sha256(str(identity.recipient).encode()).hexdigest() == (
        "a091dd7e0ee9d62b75173dcc98441a0424baa941e66a8776e570a4ae60ff61ea"
    )


def test_keys_are_read_as_they_are_written() -> None:
    again = age.parse_identity(KEY.secret_text())
    assert isinstance(again, age.HybridIdentity)
    assert KEY.secret_text().startswith("AGE-SECRET-KEY-PQ-1")
    assert str(KEY.recipient).startswith("age1pq1")
    assert age.parse_recipient(str(KEY.recipient)) == again.recipient == KEY.recipient != OTHER.recipient
    assert len({KEY.recipient, again.recipient, OTHER.recipient}) == 2
    assert KEY.fingerprint == hashlib.sha256(str(KEY.recipient).encode()).hexdigest()[:32]


def test_nothing_shows_the_secret() -> None:
    for shown in (repr(KEY), str(KEY), repr(KEY.recipient)):
        assert KEY.fingerprint in shown
        assert KEY.secret_text()[19:] not in shown


@pytest.mark.parametrize(
    ("public", "reason"),
    [
        (PUBLIC[:-1], "1216 bytes, not 1215"),
        (PUBLIC + b"\0", "1216 bytes, not 1217"),
        (b"\xff" * 3 + PUBLIC[3:], "ML-KEM half"),
        (PUBLIC[:-32] + bytes(32), "low-order"),
        (PUBLIC[:-32] + b"\xff" * 32, "canonical"),
    ],
)
def test_what_is_no_recipient(public: bytes, reason: str) -> None:
    with pytest.raises(InvalidKeyError, match=reason):
        age.parse_recipient(bech32.encode("age1pq", public))


def test_an_identity_file(tmp_path: Path) -> None:
    path = tmp_path / "identity.txt"
    age.write_identity(path, KEY, created=datetime(2026, 1, 31, tzinfo=UTC))
    assert path.read_text(encoding="utf-8").split("\n")[1:] == [
        f"# public key: {KEY.recipient}",
        KEY.secret_text(),
        "",
    ]
    assert [each.fingerprint for each in age.read_identities(path)] == [KEY.fingerprint]


def test_each_of_several_opens_the_file(sealed, released) -> None:
    data = sealed([OTHER.recipient, KEY.recipient], b"state")
    assert released([KEY], data) == released([OTHER], data) == (b"state", None)
    assert sealed([KEY.recipient], b"") != sealed([KEY.recipient], b"")


def _age_knows_it() -> bool:
    if shutil.which("age-keygen") is None:
        return False
    return subprocess.run(["age-keygen", "-pq"], capture_output=True).returncode == 0


@pytest.mark.skipif(not _age_knows_it(), reason="the age command 1.3 or newer is not installed")
def test_the_age_command(sealed, released, tmp_path: Path) -> None:
    write_secret_file(tmp_path / "key", KEY.secret_text() + "\n")
    opened = subprocess.run(
        ["age", "-d", "-i", tmp_path / "key"],
        input=sealed([OTHER.recipient, KEY.recipient], b"state"),
        capture_output=True,
        check=True,
    )
    assert opened.stdout == b"state"
    (tmp_path / "to").write_text(f"{KEY.recipient}\n", encoding="utf-8")
    made = subprocess.run(["age", "-R", tmp_path / "to"], input=b"state", capture_output=True, check=True)
    assert released([KEY], made.stdout) == (b"state", None)
