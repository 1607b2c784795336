"""Files go both ways between this package, rage (pyrage) and, where it is installed, the age command."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pyrage
import pytest

from archiver import age
from archiver.secretfile import write_secret_file

SIZES = [0, 1, 65535, 65536, 65537, 3 * 65536]
KEY, OTHER = age.generate(), age.generate()
PHRASE = "correct horse"


def text(size: int) -> bytes:
    return (b"0123456789abcdef" * (size // 16 + 1))[:size]


def theirs(identity: age.X25519Identity) -> pyrage.x25519.Identity:
    return pyrage.x25519.Identity.from_str(identity.secret_text())


def test_keys_are_written_alike() -> None:
    made = pyrage.x25519.Identity.generate()
    ours = age.parse_identity(str(made))
    assert isinstance(ours, age.X25519Identity)
    assert ours.secret_text() == str(made)
    assert str(ours.recipient) == str(made.to_public())
    assert str(theirs(KEY).to_public()) == str(KEY.recipient)


@pytest.mark.parametrize("size", SIZES)
def test_ours_opens_in_rage(size: int, sealed) -> None:
    data = sealed([OTHER.recipient, KEY.recipient], text(size))
    for identity in (KEY, OTHER):
        assert pyrage.decrypt(data, [theirs(identity)]) == text(size)


@pytest.mark.parametrize("size", SIZES)
def test_theirs_opens_here(size: int, released) -> None:
    data = pyrage.encrypt(text(size), [theirs(OTHER).to_public(), theirs(KEY).to_public()])
    for identity in (KEY, OTHER):
        assert released([identity], data) == (text(size), None)


def test_a_passphrase_of_ours_opens_there(sealed) -> None:
    ours = sealed([age.ScryptRecipient(PHRASE, age.WorkFactor.TEST_ONLY)], text(65537))
    assert pyrage.passphrase.decrypt(ours, PHRASE) == text(65537)


@pytest.mark.soak  # they try out a work factor that takes a second, and here it takes several
def test_a_passphrase_of_theirs_opens_here(released) -> None:
    """The vectors of CCTV have files with a passphrase, too, that cost less."""
    data = pyrage.passphrase.encrypt(text(65537), PHRASE)
    assert released([age.ScryptIdentity(PHRASE)], data) == (text(65537), None)


@pytest.mark.skipif(shutil.which("age") is None, reason="the age command is not installed")
@pytest.mark.parametrize("size", SIZES)
def test_the_age_command(size: int, sealed, released, tmp_path: Path) -> None:
    write_secret_file(tmp_path / "key", KEY.secret_text() + "\n")
    opened = subprocess.run(
        ["age", "-d", "-i", tmp_path / "key"],
        input=sealed([OTHER.recipient, KEY.recipient], text(size)),
        capture_output=True,
        check=True,
    )
    assert opened.stdout == text(size)
    made = subprocess.run(
        ["age", "-r", str(KEY.recipient)], input=text(size), capture_output=True, check=True
    )
    assert released([KEY], made.stdout) == (text(size), None)
