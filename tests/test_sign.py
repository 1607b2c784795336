"""Signed frames: one form, every change found, and keys that cannot be misread."""

from __future__ import annotations

import base64
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa, x25519
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver import sign
from archiver.errors import AlreadyExistsError, InvalidKeyError, KeyUnavailableError, SignatureError

TYPE = "application/vnd.example.record.v1+json"
KEY = sign.SigningKey.from_seed(bytes(range(32)))
BODY = b'{"a":1}\n{"b":2}'
FRAME = sign.sign(KEY, TYPE, BODY)


def test_the_frame_byte_for_byte() -> None:
    """Ed25519 is deterministic, so the whole frame of a known key can stand here."""
    first = (
        b"archiver-signed-v1 ed25519:A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg= "
        b"QIdnQzCiim6Rw602UUqXWkyXG7kzThMMZI35ecSnFIUQFafgz4rOCuUdKB5BQ8mkFvYMNXy5THvK9i4gz6n0Bw==\n"
    )
    assert first + BODY == FRAME
    assert len(first) == 161


def test_pae_is_that_of_dsse() -> None:
    """The example of the DSSE specification."""
    expected = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert sign.pae("http://example.com/HelloWorld", b"hello world") == expected
    assert sign.pae("é", b"") == b"DSSEv1 2 \xc3\xa9 0 "


@given(st.binary(max_size=300), st.text(max_size=20))
def test_round_trip(body: bytes, kind: str) -> None:
    assert sign.verify(sign.sign(KEY, kind, body), kind) == (KEY.public, body)


def test_every_bit_of_a_frame_counts() -> None:
    for place in range(len(FRAME)):
        for bit in range(8):
            changed = bytearray(FRAME)
            changed[place] ^= 1 << bit
            with pytest.raises(SignatureError):
                sign.verify(bytes(changed), TYPE)


def test_every_prefix_and_any_tail() -> None:
    for size in range(len(FRAME)):
        with pytest.raises(SignatureError):
            sign.verify(FRAME[:size], TYPE)
    with pytest.raises(SignatureError):
        sign.verify(FRAME + b"\n", TYPE)


@given(st.integers(0, 161), st.integers(0, 2), st.binary(max_size=2))
@settings(max_examples=300)
def test_no_second_form(at: int, drop: int, new: bytes) -> None:
    changed = FRAME[:at] + new + FRAME[at + drop :]
    if changed != FRAME:
        with pytest.raises(SignatureError):
            sign.verify(changed, TYPE)


def test_the_type_is_signed() -> None:
    with pytest.raises(SignatureError, match=r"did not sign it as application/other"):
        sign.verify(FRAME, "application/other")


def test_another_key_does_not_fit() -> None:
    other = sign.SigningKey.generate().public.encode()
    with pytest.raises(SignatureError, match="does not fit"):
        sign.verify(FRAME.replace(KEY.public.encode(), other), TYPE)


@pytest.mark.parametrize("old", [b"A6EH", b"Mbg="])
def test_base64_has_one_spelling(old: bytes) -> None:
    for new in {b"A6EH": [b"A6E\n", b"A6E="], b"Mbg=": [b"Mbh=", b"Mbg", b"Mbg=="]}[old]:
        with pytest.raises(SignatureError):
            sign.verify(FRAME.replace(old, new, 1), TYPE)


def test_spare_bits_of_the_signature() -> None:
    head, _, tail = FRAME.partition(b"==\n")
    with pytest.raises(SignatureError, match="canonical base64"):
        sign.verify(head[:-1] + bytes([head[-1] + 1]) + b"==\n" + tail, TYPE)


def test_a_signature_with_s_over_the_order_is_refused() -> None:
    """S + L verifies by the bare equation: a second signature for the same body."""
    signature = KEY.sign(sign.pae(TYPE, BODY))
    order = 2**252 + 27742317777372353535851937790883648493
    s = int.from_bytes(signature[32:], "little") + order
    forged = base64.b64encode(signature[:32] + s.to_bytes(32, "little"))
    with pytest.raises(SignatureError):
        sign.verify(FRAME.replace(base64.b64encode(signature), forged), TYPE)


# --- public keys --------------------------------------------------------------------------------------------

P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P


def double(point: tuple[int, int]) -> tuple[int, int]:
    """Twice a point of the twisted Edwards curve (RFC 8032, section 5.1.4)."""
    x, y = point
    term = D * x * x * y * y % P
    return 2 * x * y * pow(1 + term, -1, P) % P, (y * y + x * x) * pow(1 - term, -1, P) % P


def x_of(y: int) -> int:
    """A root of x² = (y² − 1) / (d y² + 1)."""
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    root = pow(square, (P + 3) // 8, P)
    return root if root * root % P == square else root * pow(2, (P - 1) // 4, P) % P


def public(y: int, sign_bit: int = 0) -> str:
    return "ed25519:" + base64.b64encode((y | sign_bit << 255).to_bytes(32, "little")).decode()


def test_the_list_of_small_orders_is_right() -> None:
    for y in sign._SMALL_ORDER:
        point = (x_of(y), y)
        for _ in range(3):
            point = double(point)
        assert point == (0, 1)


@pytest.mark.parametrize("sign_bit", [0, 1])
@pytest.mark.parametrize("y", [*sorted(sign._SMALL_ORDER), P, P + 1, P + 3])
def test_keys_that_fit_many_bodies_or_have_two_spellings(y: int, sign_bit: int) -> None:
    with pytest.raises(InvalidKeyError, match="canonical or fits many"):
        sign.parse_public(public(y, sign_bit))


def test_why_small_orders_are_refused() -> None:
    """Nobody's signature: the neutral point and S = 0 fit every body under the neutral key."""
    neutral = (1).to_bytes(32, "little")
    signature = neutral + bytes(32)
    Ed25519PublicKey.from_public_bytes(neutral).verify(signature, b"anything")
    encoded = base64.b64encode(signature)
    frame = b"archiver-signed-v1 " + public(1).encode() + b" " + encoded + b"\nanything"
    with pytest.raises(SignatureError, match="unusable key"):
        sign.verify(frame, TYPE)


def test_a_public_key_is_read_as_it_is_written() -> None:
    assert sign.parse_public(KEY.public).hex().startswith("03a107bff3ce10be")
    for text in ("", KEY.public[8:], KEY.public + "\n", KEY.public.upper(), KEY.public[:-2] + "h="):
        with pytest.raises(InvalidKeyError, match="not a public signing key"):
            sign.parse_public(text)


# --- key files ----------------------------------------------------------------------------------------------


def test_a_key_file_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "writer.pem"
    KEY.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text().startswith("-----BEGIN PRIVATE " + "KEY-----\n")
    assert sign.SigningKey.load(path).public == KEY.public
    with pytest.raises(AlreadyExistsError):
        sign.SigningKey.generate().save(path)
    assert sign.SigningKey.load(path).public == KEY.public


def test_a_key_file_that_others_can_read(tmp_path: Path) -> None:
    path = tmp_path / "writer.pem"
    KEY.save(path)
    path.chmod(0o640)
    with pytest.raises(InvalidKeyError, match="other users") as caught:
        sign.SigningKey.load(path)
    assert "chmod 600" in (caught.value.remedy or "")


def test_a_missing_key_file(tmp_path: Path) -> None:
    with pytest.raises(KeyUnavailableError, match="No such file"):
        sign.SigningKey.load(tmp_path / "none.pem")


def pem(key: object, password: bytes | None = None) -> bytes:
    lock = BestAvailableEncryption(password) if password else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not a PEM file"),
        (b"AGE-SECRET-KEY-\n", "not a PEM file"),
        (pem(ec.generate_private_key(ec.SECP256R1())), "kind E"),
        (pem(rsa.generate_private_key(65537, 2048)), "kind RSA"),
        (pem(x25519.X25519PrivateKey.generate()), "kind X25519"),
        (pem(Ed25519PrivateKey.generate(), b"password"), "locked with a password"),
        (
            Ed25519PrivateKey.generate()
            .public_key()
            .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
            "not a PEM file",
        ),
    ],
    ids=["empty", "age", "ec", "rsa", "x25519", "locked", "public"],
)
def test_a_file_that_is_no_signing_key(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "writer.pem"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(InvalidKeyError, match=reason):
        sign.SigningKey.load(path)


def test_nothing_shows_the_secret() -> None:
    assert repr(KEY) == f"<SigningKey {KEY.public}>"
