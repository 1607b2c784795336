"""Sealing and opening alone, beside ChaCha20-Poly1305 and SHA-256 alone in the same run.

    python benchmarks/age_speed.py [MEGABYTES]         256 by default

One core, memory to memory. It prints GB/s, and the ratio to ChaCha20-Poly1305 alone in chunks of 64 KiB.
Machines are noisy: compare ratios.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable
from io import BytesIO

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from archiver import age

CHUNK = 64 * 1024
WRITE = 1 << 20
ROUNDS = 5
KEY = age.generate()


def aead(data: bytes) -> None:
    cipher, view = ChaCha20Poly1305(bytes(32)), memoryview(data)
    for number, at in enumerate(range(0, len(view), CHUNK)):
        cipher.encrypt(number.to_bytes(12, "big"), view[at : at + CHUNK], None)


def sha256(data: bytes) -> None:
    digest, view = hashlib.sha256(), memoryview(data)
    for at in range(0, len(view), CHUNK):
        digest.update(view[at : at + CHUNK])


def seal(data: bytes, digest: bool, out: Callable[[bytes], object]) -> None:
    sealer, view = age.seal([KEY.recipient], out, digest=digest), memoryview(data)
    for at in range(0, len(view), WRITE):
        sealer.write(view[at : at + WRITE])
    sealer.close()


def unseal(sealed: bytes, digest: bool) -> None:
    buffer = bytearray(8 * CHUNK)
    with age.unseal([KEY], BytesIO(sealed), digest=digest) as plain:
        while plain.readinto(buffer):
            pass


def main(megabytes: int) -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    data = os.urandom(1 << 20) * megabytes
    sealed = bytearray()
    seal(data, True, sealed.extend)
    whole = bytes(sealed)
    work: dict[str, Callable[[], None]] = {
        "ChaCha20-Poly1305": lambda: aead(data),
        "SHA-256": lambda: sha256(data),
        "seal": lambda: seal(data, False, len),
        "seal, with digest": lambda: seal(data, True, len),
        "open": lambda: unseal(whole, False),
        "open, with digest": lambda: unseal(whole, True),
    }
    best = dict.fromkeys(work, float("inf"))
    for _ in range(ROUNDS):  # in turn, so that a busy moment falls on all alike
        for name, job in work.items():
            began = time.perf_counter()
            job()
            best[name] = min(best[name], time.perf_counter() - began)
    for name, seconds in best.items():
        ratio = best["ChaCha20-Poly1305"] / seconds
        print(f"{name:20} {len(data) / seconds / 1e9:5.2f} GB/s   {ratio:4.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 256)
