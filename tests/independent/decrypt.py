"""Open a sealed object by its specification alone (schemas/FORMAT.md): shares no code with the package.

python decrypt.py IDENTITY_FILE FILE.age > plaintext
python decrypt.py --untar FOLDER IDENTITY_FILE BUNDLE.tar.zst.age
python decrypt.py --record IDENTITY_FILE RECORD.age > body.json
"""

import argparse
import base64
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
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

RECORD = b"application/vnd.checkpoint-archiver.record.v1+json"
BECH32 = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"


def b64(text):
    return base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)


def hkdf(secret, salt, info):
    return HKDF(SHA256(), 32, salt, info).derive(secret)


def secrets(path):
    """The 32 bytes of each AGE-SECRET-KEY-1 line: five bits a character, the last six are a checksum."""
    for line in Path(path).read_text().split():
        if line.startswith("AGE-SECRET-KEY-1"):
            bits = "".join(f"{BECH32.index(c):05b}" for c in line[16:-6])
            yield X25519PrivateKey.from_private_bytes(int(bits[:256], 2).to_bytes(32, "big"))


def unwrap(lines, key):
    """Try each `-> X25519 SHARE` stanza with its one-line body; all other stanzas are skipped."""
    own = key.public_key().public_bytes_raw()
    for line, body in pairwise(lines):
        if line.startswith(b"-> X25519 "):
            share = b64(line.split()[2])
            shared = key.exchange(X25519PublicKey.from_public_bytes(share))
            wrap = hkdf(shared, share + own, b"age-encryption.org/v1/X25519")
            with suppress(InvalidTag):  # it is for another key
                return ChaCha20Poly1305(wrap).decrypt(bytes(12), b64(body), None)
    return None


def decrypt(data, keys):
    covered, _, rest = data.partition(b"\n--- ")
    mac, _, payload = rest.partition(b"\n")
    lines = covered.split(b"\n")
    assert lines[0] == b"age-encryption.org/v1", "not an age file"
    file_key = next(filter(None, (unwrap(lines, key) for key in keys)), None)
    assert file_key, "no key fits"
    expected = hmac.digest(hkdf(file_key, b"", b"header"), covered + b"\n---", "sha256")
    assert hmac.compare_digest(b64(mac), expected), "the header was changed"
    cipher = ChaCha20Poly1305(hkdf(file_key, payload[:16], b"payload"))
    chunks = [payload[at : at + 65552] for at in range(16, len(payload), 65552)]
    assert chunks, "the payload was cut off"
    for number, chunk in enumerate(chunks):
        last = number == len(chunks) - 1
        yield cipher.decrypt(number.to_bytes(11, "big") + bytes([last]), chunk, None)


def verify(frame):
    head, _, body = frame.partition(b"\n")
    name, public, signature = head.split(b" ")
    assert name == b"archiver-signed-v1"
    pae = b"DSSEv1 %d %b %d %b" % (len(RECORD), RECORD, len(body), body)
    Ed25519PublicKey.from_public_bytes(b64(public.removeprefix(b"ed25519:"))).verify(b64(signature), pae)
    return body


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("identity_file")
    parser.add_argument("file")
    parser.add_argument("--untar", metavar="FOLDER")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    plain = b"".join(decrypt(Path(options.file).read_bytes(), list(secrets(options.identity_file))))
    if options.untar:
        frames = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(plain), read_across_frames=True)
        with tarfile.open(fileobj=frames, mode="r|") as tar:
            tar.extractall(options.untar, filter="data")
    else:
        sys.stdout.buffer.write(verify(plain) if options.record else plain)
