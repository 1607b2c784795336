"""Write the age test vectors to `tests/vectors/age/`: one file, one failure, one expected reason.

Everything in them follows from seeds, the secret keys too: none stands in the repository. Only the stanzas
of the post-quantum kind cannot be made twice alike, because the library draws their randomness itself: they
are recorded in `hybrid.txt` (made anew where it is missing), and the vectors are edits of them. A payload of
several chunks is chosen so that its ciphertext is zeros, and the file is kept compressed (`.age.z`).
`expected.json` says of each file which keys are tried, how reading ends and what was read by then.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from archiver.age import encoding, stream
from archiver.age.header import Stanza, make
from archiver.age.hints import HINT
from archiver.age.hybrid import HybridIdentity
from archiver.age.primitives import hkdf
from archiver.age.scrypt import ScryptRecipient, WorkFactor
from archiver.age.x25519 import X25519Identity

FOLDER = Path(__file__).parent / "age"
RECORDED = Path(__file__).parent / "hybrid.txt"
PASSPHRASE = "not a secret, only a test"

FILE_KEY = hashlib.sha256(b"file key").digest()[:16]
NONCE = hashlib.sha256(b"payload nonce").digest()[:16]
PLAIN = b"checkpoint"
CHUNK = stream.CHUNK
COMPRESS_FROM = 4096


@dataclass(frozen=True)
class Vector:
    """A file, the keys to try, the error it must end in (None: it opens) and what can be read before that."""

    name: str
    data: bytes
    keys: tuple[str, ...]
    error: str | None
    reason: str
    released: bytes

    @property
    def file(self) -> str:
        return f"{self.name}.age.z" if len(self.data) >= COMPRESS_FROM else f"{self.name}.age"

    def expected(self) -> dict[str, object]:
        return {
            "keys": list(self.keys),
            "error": self.error,
            "reason": self.reason,
            "released_length": len(self.released),
            "released_sha256": hashlib.sha256(self.released).hexdigest(),
        }


def seed(name: str) -> bytes:
    return hashlib.sha256(b"checkpoint-archiver test identity " + name.encode()).digest()


def identity(name: str) -> X25519Identity:
    """The test key of that name."""
    return X25519Identity(seed(name))


def hybrid_identity(name: str) -> HybridIdentity:
    """The post-quantum test key of that name."""
    return HybridIdentity(seed(name))


def fixed(name: str) -> Callable[[int], bytes]:
    """Bytes that look random and follow from the name."""
    return lambda size: hashlib.shake_256(name.encode()).digest(size)


def x25519(name: str = "anna", file_key: bytes = FILE_KEY) -> Stanza:
    return identity(name).recipient.wrap(file_key, random=fixed(f"share of {name}"))[0]


def scrypt(file_key: bytes = FILE_KEY) -> Stanza:
    return ScryptRecipient(PASSPHRASE, WorkFactor.TEST_ONLY).wrap(file_key, random=fixed("salt"))[0]


def record_hybrid() -> None:
    lines = [
        f"{name} {argument} {encoding.encode(stanza.body).decode()}"
        for name in ("quentin", "quirin")
        for stanza in hybrid_identity(name).recipient.wrap(FILE_KEY)
        for argument in stanza.arguments
    ]
    RECORDED.write_text("\n".join(lines) + "\n", encoding="ascii")


def hybrid(name: str = "quentin") -> Stanza:
    """The recorded stanza that wraps `FILE_KEY` for that key."""
    lines = [line.split() for line in RECORDED.read_text(encoding="ascii").splitlines()]
    enc, body = next((enc, body) for whose, enc, body in lines if whose == name)
    return Stanza("mlkem768x25519", (enc,), encoding.decode(body.encode()) or b"")


def head(*stanzas: Stanza, file_key: bytes = FILE_KEY) -> bytes:
    """A header with a MAC that fits, whatever the stanzas hold."""
    return make(stanzas, file_key).marshal()


def chunk(number: int, plain: bytes, *, last: bool) -> bytes:
    flag = b"\1" if last else b"\0"
    return stream.payload_cipher(FILE_KEY, NONCE).encrypt(number.to_bytes(11, "big") + flag, plain, None)


def zeros(number: int, *, last: bool, size: int = CHUNK) -> bytes:
    """The plaintext whose ciphertext is zeros."""
    return chunk(number, bytes(size), last=last)[:-16]


PAYLOAD = NONCE + chunk(0, PLAIN, last=True)
DAMAGED = PAYLOAD[:-1] + bytes([PAYLOAD[-1] ^ 1])


def edited(raw: bytes, old: bytes, new: bytes) -> bytes:
    """`raw` with one place changed, and the MAC made anew over the bytes as they stand."""
    assert raw.count(old) == 1, old
    covered = raw.replace(old, new)[: -len(" ") - 43 - len("\n")]
    mac = hmac.digest(hkdf(FILE_KEY, salt=b"", info=b"header"), covered, "sha256")
    return covered + b" " + encoding.encode(mac) + b"\n"


def good_vectors() -> list[Vector]:
    letters = "".join(map(chr, range(0x21, 0x7F)))
    whole = Stanza("whole", (), bytes(96))
    anna = identity("anna").fingerprint
    files = {
        "x25519": head(x25519()),
        "x25519_two_recipients": head(x25519("bert"), x25519()),
        "x25519_among_unknown": head(Stanza("grease", ("a", "b"), b"?"), x25519(), Stanza("more", (), b"")),
        "stanza_all_characters": head(Stanza(letters[:50], tuple(letters[50:]), b""), x25519()),
        "stanza_whole_last_line": head(whole, x25519()),
        "hint": head(Stanza(HINT, (anna,), b""), x25519()),
    }
    vectors = [Vector(name, raw + PAYLOAD, ("anna",), None, "", PLAIN) for name, raw in files.items()]
    vectors.append(Vector("scrypt", head(scrypt()) + PAYLOAD, ("passphrase",), None, "", PLAIN))
    return vectors


def header_vectors() -> list[Vector]:
    raw = head(x25519())
    extra = head(x25519(), Stanza("extra", ("argument",), b"\xff" * 48))
    line = b"/" * 64 + b"\n"
    mac = raw[raw.rindex(b"---") :]
    head_line, canonical = b"-> extra argument", "is not canonical base64"
    malformed, columns = "neither a well-formed stanza nor the end", "more than 64 columns"
    no_mac = "does not end with one canonical MAC line"
    cases: dict[str, tuple[bytes, str]] = {
        "header_crlf": (raw.replace(b"\n", b"\r\n"), "the version line is not"),
        "header_armoured": (b"-----BEGIN AGE ENCRYPTED FILE-----\n", "is armoured"),
        "version_unknown": (edited(raw, b"org/v1", b"org/v2"), "the version line is not"),
        "version_longer": (edited(raw, b"org/v1", b"org/v1 "), "the version line is not"),
        "stanza_none": (b"age-encryption.org/v1\n" + mac, "has no stanza"),
        "stanza_bad_start": (edited(extra, head_line, b"-- extra argument"), malformed),
        "stanza_no_type": (edited(extra, head_line, b"->"), malformed),
        "stanza_empty_argument": (edited(extra, head_line, b"-> extra  argument"), malformed),
        "stanza_trailing_space": (edited(extra, head_line, b"-> extra argument "), malformed),
        "stanza_tab": (edited(extra, head_line, b"-> extra\targument"), malformed),
        "stanza_not_ascii": (edited(extra, head_line, "-> extra arguménts".encode()), malformed),
        "stanza_long_line": (edited(extra, line + b"\n", line[:-1] + b"////\n\n"), columns),
        "stanza_no_body": (edited(extra, line + b"\n", b""), canonical),
        "stanza_no_short_line": (edited(extra, line + b"\n", line), canonical),
        "stanza_two_short_lines": (edited(extra, line + b"\n", b"AAAA\nAAAA\n"), malformed),
        "stanza_padding": (edited(extra, line + b"\n", b"AAA=\n"), canonical),
        "stanza_spare_bits": (edited(extra, line + b"\n", b"AAB\n"), canonical),
        "stanza_impossible_length": (edited(extra, line + b"\n", b"AAAAA\n"), canonical),
        "stanza_cr": (edited(extra, line + b"\n", b"AAAA\r\n"), canonical),
        "stanzas_too_many": (edited(raw, b"-> X25519", b"-> a\n\n" * 1024 + b"-> X25519"), "more than 1024"),
        "mac_missing": (raw[: -len(mac)] + b"--- \n", no_mac),
        "mac_short": (raw[: -len(mac)] + mac[:10] + b"\n", no_mac),
        "mac_long": (raw[:-1] + b"AAA\n", no_mac),
        "mac_no_space": (raw.replace(b"--- ", b"---"), no_mac),
        "mac_two_spaces": (raw.replace(b"--- ", b"---  "), no_mac),
        "mac_trailing_space": (raw[:-1] + b" \n", no_mac),
        "mac_spare_bits": (raw[:-2] + following(raw[-2:-1]) + b"\n", no_mac),
    }
    vectors = [
        Vector(name, data + PAYLOAD, ("anna",), "HeaderError", reason, b"")
        for name, (data, reason) in cases.items()
    ]
    vectors.append(Vector("empty", b"", ("anna",), "HeaderError", "has no end", b""))
    vectors.append(Vector("header_cut", raw[:-10], ("anna",), "HeaderError", "has no end", b""))
    changed = head(x25519(), Stanza("extra", (), b"")).replace(b"-> extra", b"-> other")
    vectors.append(Vector("mac_wrong", changed + PAYLOAD, ("anna",), "HeaderMacError", "was changed", b""))
    return vectors


def following(character: bytes) -> bytes:
    """A last base64 character that stands for the same bytes, with a spare bit set."""
    alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    return alphabet[alphabet.index(character) + 1 :][:1]


def x25519_vectors() -> list[Vector]:
    good = x25519()
    share = encoding.decode(good.arguments[0].encode()) or b""

    def with_share(new: bytes) -> bytes:
        return head(Stanza("X25519", (encoding.encode(new).decode(),), good.body))

    low_order = bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800")
    argument = good.arguments[0]
    size, body = "is not canonical base64 of 32 bytes", "does not have 32 bytes"
    broken = {
        "x25519_no_share": (head(Stanza("X25519", (), good.body)), "exactly one argument"),
        "x25519_extra_argument": (head(Stanza("X25519", (argument, "1"), good.body)), "exactly one argument"),
        "x25519_short_share": (with_share(share[:-1]), size),
        "x25519_long_share": (with_share(share + b"\0"), size),
        "x25519_share_spare_bits": (
            head(Stanza("X25519", (argument[:-1] + following(argument[-1:].encode()).decode(),), good.body)),
            size,
        ),
        "x25519_share_zero": (with_share(bytes(32)), "low-order point"),
        "x25519_share_low_order": (with_share(low_order), "low-order point"),
        "x25519_short_body": (head(Stanza("X25519", (argument,), good.body[:-1])), body),
        "x25519_long_file_key": (head(x25519(file_key=FILE_KEY + b"long")), body),
        "x25519_second_broken": (head(good, Stanza("X25519", (argument, "1"), good.body)), "exactly one"),
    }
    vectors = [
        Vector(name, data + PAYLOAD, ("anna",), "HeaderError", reason, b"")
        for name, (data, reason) in broken.items()
    ]
    other_tag = good.body[:-1] + bytes([good.body[-1] ^ 1])
    hinted = head(Stanza(HINT, (identity("bert").fingerprint,), b""), x25519("bert"))
    missed = {
        "x25519_no_match": (head(x25519("bert")), ("anna",), "does not say which keys"),
        "x25519_no_match_hint": (hinted, ("anna",), identity("bert").fingerprint),
        "x25519_bad_tag": (head(Stanza("X25519", good.arguments, other_tag)), ("anna",), "does not open it"),
        "x25519_lower_case": (
            head(Stanza("x25519", good.arguments, good.body)),
            ("anna",),
            "does not open it",
        ),
        "x25519_passphrase": (hinted, ("passphrase",), "locked to keys, not with a passphrase"),
        "x25519_no_identity": (hinted, (), "no identity was given"),
    }
    vectors += [
        Vector(name, data + PAYLOAD, keys, "KeyUnavailableError", reason, b"")
        for name, (data, keys, reason) in missed.items()
    ]
    return vectors


def hybrid_vectors() -> list[Vector]:
    good, other = hybrid(), hybrid("quirin")
    enc = encoding.decode(good.arguments[0].encode()) or b""

    def with_enc(new: bytes) -> bytes:
        return head(Stanza(good.type, (encoding.encode(new).decode(),), good.body))

    def with_body(new: bytes) -> bytes:
        return head(Stanza(good.type, good.arguments, new))

    low_order = bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800")
    argument = good.arguments[0]
    spare = argument[:-1] + following(argument[-1:].encode()).decode()
    hinted = head(Stanza(HINT, (hybrid_identity("quirin").fingerprint,), b""), other)
    size, body = "is not canonical base64 of 1120 bytes", "does not have 32 bytes"
    opens = {
        "hybrid": (head(good), ("quentin",)),
        "hybrid_two_recipients": (head(other, good), ("quentin",)),
        "hybrid_among_unknown": (head(Stanza("grease", ("a",), b"?"), good), ("quentin",)),
        "hybrid_beside_x25519": (head(x25519(), good), ("bert", "quentin")),  # refused on write only
    }
    broken = {
        "hybrid_no_key": (head(Stanza(good.type, (), good.body)), "exactly one argument"),
        "hybrid_extra_argument": (
            head(Stanza(good.type, (argument, "1"), good.body)),
            "exactly one argument",
        ),
        "hybrid_short_key": (with_enc(enc[:-1]), size),
        "hybrid_long_key": (with_enc(enc + b"\0"), size),
        "hybrid_key_spare_bits": (head(Stanza(good.type, (spare,), good.body)), size),
        "hybrid_share_zero": (with_enc(enc[:-32] + bytes(32)), "low-order point"),
        "hybrid_share_low_order": (with_enc(enc[:-32] + low_order), "low-order point"),
        "hybrid_short_body": (with_body(good.body[:-1]), body),
        "hybrid_long_body": (with_body(good.body + b"long"), body),
        "hybrid_second_broken": (head(good, Stanza(good.type, (argument, "1"), good.body)), "exactly one"),
    }
    closed = "the identity given does not open it"
    missed = {
        "hybrid_no_match": (head(other), ("quentin",), closed),
        "hybrid_no_match_hint": (hinted, ("quentin",), hybrid_identity("quirin").fingerprint),
        "hybrid_bad_tag": (with_body(good.body[:-1] + bytes([good.body[-1] ^ 1])), ("quentin",), closed),
        "hybrid_lattice_changed": (with_enc(bytes([enc[0] ^ 1]) + enc[1:]), ("quentin",), closed),
        "hybrid_share_changed": (
            with_enc(enc[:-32] + bytes([enc[-32] ^ 1]) + enc[-31:]),
            ("quentin",),
            closed,
        ),
        "hybrid_upper_case": (
            head(Stanza(good.type.upper(), good.arguments, good.body)),
            ("quentin",),
            closed,
        ),
    }
    return [
        *(Vector(name, data + PAYLOAD, keys, None, "", PLAIN) for name, (data, keys) in opens.items()),
        *(
            Vector(name, data + PAYLOAD, ("quentin",), "HeaderError", reason, b"")
            for name, (data, reason) in broken.items()
        ),
        *(
            Vector(name, data + PAYLOAD, keys, "KeyUnavailableError", reason, b"")
            for name, (data, keys, reason) in missed.items()
        ),
    ]


def scrypt_vectors() -> list[Vector]:
    good = scrypt()
    salt, factor = good.arguments
    raw = encoding.decode(salt.encode()) or b""

    def with_arguments(*arguments: str) -> bytes:
        return head(Stanza("scrypt", arguments, good.body))

    def with_salt(new: bytes) -> bytes:
        return with_arguments(encoding.encode(new).decode(), factor)

    number, size = "not a plain decimal number", "is not canonical base64 of 16 bytes"
    spare = salt[:-1] + following(salt[-1:].encode()).decode()
    broken = {
        "scrypt_twice": (head(good, good), "is not alone"),
        "scrypt_and_x25519": (head(x25519(), good), "is not alone"),
        "scrypt_and_hint": (head(Stanza(HINT, (), b""), good), "is not alone"),
        "scrypt_no_work_factor": (with_arguments(salt), "exactly two arguments"),
        "scrypt_extra_argument": (with_arguments(salt, factor, "1"), "exactly two arguments"),
        "scrypt_salt_spare_bits": (with_arguments(spare, factor), size),
        "scrypt_salt_short": (with_salt(raw[:-1]), size),
        "scrypt_salt_long": (with_salt(raw + b"\0"), size),
        "scrypt_factor_zero": (with_arguments(salt, "0"), number),
        "scrypt_factor_leading_zero": (with_arguments(salt, "010"), number),
        "scrypt_factor_plus": (with_arguments(salt, "+10"), number),
        "scrypt_factor_negative": (with_arguments(salt, "-10"), number),
        "scrypt_factor_hexadecimal": (with_arguments(salt, "0xa"), number),
        "scrypt_factor_trailing": (with_arguments(salt, "10a"), number),
        "scrypt_factor_23": (with_arguments(salt, "23"), "is over 22"),
        "scrypt_factor_overflow": (with_arguments(salt, "18446744073709551626"), "is over 22"),
        "scrypt_short_body": (head(Stanza("scrypt", good.arguments, good.body[:-1])), "not have 32 bytes"),
        "scrypt_long_file_key": (head(scrypt(FILE_KEY + b"long")), "does not have 32 bytes"),
    }
    vectors = [
        Vector(name, data + PAYLOAD, ("passphrase", "anna"), "HeaderError", reason, b"")
        for name, (data, reason) in broken.items()
    ]
    other_tag = good.body[:-1] + bytes([good.body[-1] ^ 1])
    missed = {
        "scrypt_bad_tag": (
            head(Stanza("scrypt", good.arguments, other_tag)),
            ("passphrase",),
            "does not open",
        ),
        "scrypt_other_factor": (with_arguments(salt, "11"), ("passphrase",), "does not open it"),
        "scrypt_upper_case": (
            head(Stanza("Scrypt", good.arguments, good.body)),
            ("passphrase",),
            "not with a",
        ),
        "scrypt_wrong_passphrase": (
            head(good),
            ("wrong passphrase",),
            "the passphrase given does not open it",
        ),
        "scrypt_no_passphrase": (head(good), ("anna",), "no passphrase was given"),
    }
    vectors += [
        Vector(name, data + PAYLOAD, keys, "KeyUnavailableError", reason, b"")
        for name, (data, keys, reason) in missed.items()
    ]
    return vectors


def stream_vectors() -> list[Vector]:
    first, last = zeros(0, last=False), zeros(1, last=True)
    only = zeros(0, last=True)
    open_first, open_second = chunk(0, first, last=False), chunk(1, zeros(1, last=False), last=False)
    closed_first, closed_second = chunk(0, only, last=True), chunk(1, last, last=True)
    short = chunk(1, PLAIN, last=True)
    changed, cut = "was changed or cut off in chunk", "ends without its last chunk"
    trailing = "has data after its last chunk"
    opens = {
        "stream_empty": (chunk(0, b"", last=True), b""),
        "stream_one_whole": (closed_first, only),
        "stream_two_whole": (open_first + closed_second, first + last),
        "stream_whole_and_short": (open_first + short, first + PLAIN),
    }
    fails = {
        "stream_no_chunk": (b"", cut, b""),
        "stream_bad_tag": (DAMAGED[16:], f"{changed} 0", b""),
        "stream_tag_cut": (PAYLOAD[16:-16], f"{changed} 0", b""),
        "stream_chunk_cut": (PAYLOAD[16:-1], f"{changed} 0", b""),
        "stream_short_not_last": (chunk(0, PLAIN, last=False), f"{changed} 0", b""),
        "stream_two_short_last": (PAYLOAD[16:] + short, f"{changed} 0", b""),
        "stream_cut_between": (open_first, cut, first),
        "stream_cut_between_later": (open_first + open_second, cut, first + zeros(1, last=False)),
        "stream_second_bad_tag": (open_first + short[:-1] + b"?", f"{changed} 1", first),
        "stream_second_cut": (open_first + short[:15], f"{changed} 1", first),
        "stream_second_not_last": (open_first + chunk(1, PLAIN, last=False), f"{changed} 1", first),
        "stream_swapped": (open_second + open_first + chunk(2, PLAIN, last=True), f"{changed} 0", b""),
        "stream_repeated": (open_first + open_first + short, f"{changed} 1", first),
        "stream_last_empty": (open_first + chunk(1, b"", last=True), "has an empty last chunk", first),
        "stream_trailing_byte": (closed_first + b"\0", trailing, only),
        "stream_trailing_chunk": (closed_first + short, trailing, only),
        "stream_trailing_whole": (closed_first + closed_second, trailing, only),
    }
    raw = head(x25519()) + NONCE
    vectors = [Vector(name, raw + data, ("anna",), None, "", text) for name, (data, text) in opens.items()]
    vectors += [
        Vector(name, raw + data, ("anna",), "PayloadError", reason, text)
        for name, (data, reason, text) in fails.items()
    ]
    before = "before its payload begins"
    vectors.append(Vector("nonce_missing", raw[:-16], ("anna",), "HeaderError", before, b""))
    vectors.append(Vector("nonce_short", raw[:-4], ("anna",), "HeaderError", before, b""))
    return vectors


def all_vectors() -> list[Vector]:
    return [
        *good_vectors(),
        *header_vectors(),
        *x25519_vectors(),
        *hybrid_vectors(),
        *scrypt_vectors(),
        *stream_vectors(),
    ]


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    if not RECORDED.exists():
        record_hybrid()
    vectors = all_vectors()
    for vector in vectors:
        packed = zlib.compress(vector.data, 9) if vector.file.endswith(".z") else vector.data
        (FOLDER / vector.file).write_bytes(packed)
    expected = {vector.name: vector.expected() for vector in sorted(vectors, key=lambda each: each.name)}
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
