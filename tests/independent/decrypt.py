"""Open a sealed object by its specification alone (schemas/FORMAT.md): shares no code with the package.

It knows the keys of identity files, X25519 and post-quantum. A stanza of AWS KMS it names and skips.

python decrypt.py IDENTITY_FILE FILE.age > plaintext
python decrypt.py --untar FOLDER IDENTITY_FILE BUNDLE.tar.zst.age
python decrypt.py --record IDENTITY_FILE RECORD.age > body.json
python decrypt.py --note IDENTITY_FILE NOTE.age > body.json
"""

import argparse
import base64
import hashlib
import hmac
import io
import sys
import tarfile
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import zstandard
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

TYPE = "application/vnd.checkpoint-archiver.{}.v1+json"
BECH32 = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"
XWING = bytes.fromhex("5c2e2f2f5e5c")


def b64(text):
    return base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)


def hkdf(secret, salt, info):
    return HKDF(SHA256(), 32, salt, info).derive(secret)


def secrets(path):
    """The key of each AGE-SECRET-KEY line: five bits a character, the last six are a checksum."""
    for line in Path(path).read_text().split():
        kind, one, text = line.partition("1")
        if kind in KINDS and one:
            bits = "".join(f"{BECH32.index(c):05b}" for c in text[:-6])
            yield KINDS[kind](int(bits[:256], 2).to_bytes(32, "big"))


class Classic:
    """X25519: the secret is the scalar."""

    word = b"X25519"

    def __init__(self, secret):
        self.key = X25519PrivateKey.from_private_bytes(secret)
        self.own = self.key.public_key().public_bytes_raw()

    def shared(self, share):
        return self.key.exchange(X25519PublicKey.from_public_bytes(share))

    def cipher(self, share):
        wrap = hkdf(self.shared(share), share + self.own, b"age-encryption.org/v1/X25519")
        return ChaCha20Poly1305(wrap), bytes(12)


class Hybrid:
    """X-Wing in HPKE's base mode (RFC 9180), KEM 0x647a, KDF 1, AEAD 3, nothing pre-shared."""

    word = b"mlkem768x25519"
    suite = b"HPKE" + bytes.fromhex("647a00010003")

    def __init__(self, secret):
        both = hashlib.shake_256(secret).digest(96)
        self.lattice, self.curve = MLKEM768PrivateKey.from_seed_bytes(both[:64]), Classic(both[64:])

    def cipher(self, enc):
        ciphertext, share = enc[:1088], enc[1088:]
        parts = self.lattice.decapsulate(ciphertext), self.curve.shared(share), share, self.curve.own
        shared = hashlib.sha3_256(b"".join(parts) + XWING).digest()
        hashes = self.extract(b"", b"psk_id_hash", b"") + self.extract(
            b"", b"info_hash", b"age-encryption.org/mlkem768x25519"
        )
        secret = self.extract(shared, b"secret", b"")
        key, nonce = (
            self.expand(secret, *what) for what in ((b"key\0" + hashes, 32), (b"base_nonce\0" + hashes, 12))
        )
        return ChaCha20Poly1305(key), nonce

    def extract(self, salt, label, text):
        return hmac.digest(salt, b"HPKE-v1" + self.suite + label + text, "sha256")

    def expand(self, secret, info, size):
        length = size.to_bytes(2, "big")
        return hmac.digest(secret, length + b"HPKE-v1" + self.suite + info + b"\1", "sha256")[:size]


KINDS = {"AGE-SECRET-KEY-": Classic, "AGE-SECRET-KEY-PQ-": Hybrid}


def unwrap(lines, key):
    """Try each stanza of the key's kind, with its one-line body; all others are skipped."""
    for line, body in pairwise(lines):
        if line.startswith(b"-> " + key.word + b" "):
            cipher, nonce = key.cipher(b64(line.split()[2]))
            with suppress(InvalidTag):  # it is for another key
                return cipher.decrypt(nonce, b64(body), None)
    return None


def closed(lines):
    """Why no key fits: what the file could be opened with."""
    service = [
        line.split()[3].decode() for line in lines if line.startswith(b"-> checkpoint.archiver/aws-kms v1 ")
    ]
    return "no key fits" + "".join(f"; AWS KMS opens it with {arn}" for arn in service)


def decrypt(data, keys):
    covered, _, rest = data.partition(b"\n--- ")
    mac, _, payload = rest.partition(b"\n")
    lines = covered.split(b"\n")
    assert lines[0] == b"age-encryption.org/v1", "not an age file"
    file_key = next(filter(None, (unwrap(lines, key) for key in keys)), None)
    assert file_key, closed(lines)
    expected = hmac.digest(hkdf(file_key, b"", b"header"), covered + b"\n---", "sha256")
    assert hmac.compare_digest(b64(mac), expected), "the header was changed"
    cipher = ChaCha20Poly1305(hkdf(file_key, payload[:16], b"payload"))
    chunks = [payload[at : at + 65552] for at in range(16, len(payload), 65552)]
    assert chunks, "the payload was cut off"
    for number, chunk in enumerate(chunks):
        last = number == len(chunks) - 1
        yield cipher.decrypt(number.to_bytes(11, "big") + bytes([last]), chunk, None)


def verify(frame, kind):
    head, _, body = frame.partition(b"\n")
    name, public, signature = head.split(b" ")
    assert name == b"archiver-signed-v1"
    kind = TYPE.format(kind).encode()
    pae = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(body), body)
    Ed25519PublicKey.from_public_bytes(b64(public.removeprefix(b"ed25519:"))).verify(b64(signature), pae)
    return body


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("identity_file")
    parser.add_argument("file")
    parser.add_argument("--untar", metavar="FOLDER")
    parser.add_argument("--text", metavar="FILE", help="the dictionary of an incremental bundle")
    parser.add_argument("--record", dest="kind", action="store_const", const="record")
    parser.add_argument("--note", dest="kind", action="store_const", const="note")
    options = parser.parse_args()
    plain = b"".join(decrypt(Path(options.file).read_bytes(), list(secrets(options.identity_file))))
    if options.untar:
        text = Path(options.text).read_bytes() if options.text else b""
        raw = zstandard.ZstdCompressionDict(text, dict_type=zstandard.DICT_TYPE_RAWCONTENT) if text else None
        frames = zstandard.ZstdDecompressor(dict_data=raw).stream_reader(
            io.BytesIO(plain), read_across_frames=True
        )
        with tarfile.open(fileobj=frames, mode="r|") as tar:
            tar.extractall(options.untar, filter="data")
    else:
        sys.stdout.buffer.write(verify(plain, options.kind) if options.kind else plain)
