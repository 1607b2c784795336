"""Write the vectors of the KMS stanza to `tests/vectors/kms/`: one file, one failure, one expected reason.

KMS itself is not in them: `expected.json` begins with the data keys that it would give, by ARN, context and
blob. Of each file it says which keys are tried, for which object, how reading ends and what was read by then.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from make_age_vectors import (  # type: ignore[import-not-found]  # a script beside this one
    FILE_KEY,
    PAYLOAD,
    PLAIN,
    fixed,
    head,
    hybrid,
    x25519,
)

from archiver.age import Context, DataKey, DataKeys, KeyArn, KmsIdentity, KmsRecipient, parse_arn
from archiver.age.header import Header, Stanza
from archiver.age.kms import TYPE
from archiver.errors import WrappedKeyError

FOLDER = Path(__file__).parent / "kms"

OWN = parse_arn("arn:aws:kms:eu-central-1:111122223333:key/01234567-89ab-cdef-0123-456789abcdef")
OTHER = parse_arn("arn:aws-us-gov:kms:us-gov-west-1:444455556666:key/mrk-0123456789abcdef0123456789abcdef")
CONTEXT = Context("checkpoint-archiver", "run-1", "fix the parser", "bundle")
UNICODE = Context("a.b_c~d", "R&D=1 №7", "修复 %41+", "note")


def blob(name: str, size: int = 152) -> bytes:
    return fixed(f"blob {name}")(size)


class FixedKms:
    """Gives each blob one data key, by ARN and context."""

    def __init__(self, size: int = 152) -> None:
        self._size = size

    def generate(self, arn: KeyArn, context: Mapping[str, str]) -> DataKey:
        name = arn.text + json.dumps(context)
        return DataKey(fixed(f"data key {name}")(32), blob(name, self._size), arn.text)

    def decrypt(self, arn: KeyArn, context: Mapping[str, str], blob: bytes) -> DataKey:
        key = self.generate(arn, context)
        if key.blob != blob:
            raise WrappedKeyError("the blob was changed")
        return key


def identity(arn: KeyArn, context: Context, size: int = 152) -> KmsIdentity:
    """The key, as it opens objects of that context."""
    return KmsIdentity(arn, DataKeys(FixedKms(size)), context)


def stanza(
    arn: KeyArn = OWN, context: Context = CONTEXT, file_key: bytes = FILE_KEY, size: int = 152
) -> Stanza:
    return KmsRecipient(arn, DataKeys(FixedKms(size)), context).wrap(file_key, random=fixed("salt"))[0]


@dataclass(frozen=True)
class Vector:
    """A file, the keys to try for which object, the error it must end in and what can be read before that."""

    name: str
    data: bytes
    error: str | None = None
    reason: str = ""
    keys: tuple[str, ...] = ("own",)
    context: Context = CONTEXT
    blob_size: int = 152

    @property
    def file(self) -> str:
        return f"{self.name}.age"

    def expected(self) -> dict[str, object]:
        released = b"" if self.error else PLAIN
        return {
            "keys": list(self.keys),
            "object": self.context.text(),
            "blob_size": self.blob_size,
            "error": self.error,
            "reason": self.reason,
            "released_length": len(released),
            "released_sha256": hashlib.sha256(released).hexdigest(),
        }


def good_vectors() -> list[Vector]:
    return [
        Vector("kms", head(stanza()) + PAYLOAD),
        Vector("beside_x25519", head(stanza(), x25519()) + PAYLOAD),
        Vector("beside_x25519_without_kms", head(stanza(), x25519()) + PAYLOAD, keys=("anna",)),
        Vector("beside_hybrid", head(hybrid(), stanza()) + PAYLOAD),
        Vector("two_keys", head(stanza(OTHER), stanza()) + PAYLOAD),
        Vector("second_of_two_keys", head(stanza(OTHER), stanza()) + PAYLOAD, keys=("other",)),
        Vector("context_of_unicode", head(stanza(context=UNICODE)) + PAYLOAD, context=UNICODE),
        Vector("shortest_blob", head(stanza(size=1)) + PAYLOAD, blob_size=1),
        Vector("longest_blob", head(stanza(size=6144)) + PAYLOAD, blob_size=6144),
        Vector(
            "later_version_beside_x25519",
            head(Stanza(TYPE, ("v2", "x"), b""), x25519()) + PAYLOAD,
            keys=("anna",),
        ),
    ]


def malformed_vectors() -> list[Vector]:
    good = stanza()
    version, arn, context = good.arguments
    body = good.body
    form, key, text = "have the version v1", "does not name a key by its ARN", "one canonical form"
    size, length = "1 to 6144 bytes", "the length that it says"
    long = (6145).to_bytes(2, "big") + bytes(6145) + body[-64:]
    cases: dict[str, tuple[tuple[str, ...], bytes, str]] = {
        "no_arguments": ((), body, form),
        "no_version": ((arn, context), body, form),
        "no_context": ((version, arn), body, form),
        "extra_argument": ((version, arn, context, "x"), body, form),
        "version_zero": (("v0", arn, context), body, form),
        "version_leading_zero": (("v01", arn, context), body, form),
        "version_upper_case": (("V1", arn, context), body, form),
        "alias": ((version, arn.split("key/")[0] + "alias/runs", context), body, key),
        "arn_upper_case_id": ((version, arn.replace("abcdef", "ABCDEF"), context), body, key),
        "arn_short_account": ((version, arn.replace("1111", "111"), context), body, key),
        "arn_of_a_bucket": ((version, "arn:aws:s3:::bucket", context), body, key),
        "context_order": ((version, arn, "&".join(reversed(context.split("&")))), body, text),
        "context_missing_task": ((version, arn, context.rsplit("&", 1)[0]), body, text),
        "context_empty_run": ((version, arn, context.replace("run=run-1", "run=")), body, text),
        "context_unknown_object": ((version, arn, context.replace("bundle", "folder")), body, text),
        "context_extra_pair": ((version, arn, context + "&x=y"), body, text),
        "context_needless_escape": ((version, arn, context.replace("run-1", "%72un-1")), body, text),
        "context_lower_case_escape": ((version, arn, context.replace("fix", "%c3%a9")), body, text),
        "context_not_utf8": ((version, arn, context.replace("fix", "%FF")), body, text),
        "context_plus_for_space": ((version, arn, context.replace("%20", "+")), body, text),
        "body_empty": (good.arguments, b"", size),
        "body_half_length": (good.arguments, body[:1], size),
        "blob_empty": (good.arguments, b"\0\0" + body[-64:], size),
        "blob_too_long": (good.arguments, long, size),
        "body_short": (good.arguments, body[:-1], length),
        "body_long": (good.arguments, body + b"\0", length),
        "length_too_small": (good.arguments, (151).to_bytes(2, "big") + body[2:], length),
        "length_too_large": (good.arguments, (153).to_bytes(2, "big") + body[2:], length),
    }
    return [
        Vector(name, head(Stanza(TYPE, arguments, content), x25519()) + PAYLOAD, "HeaderError", reason, keys)
        for name, (arguments, content, reason) in cases.items()
        for keys in [("anna", "own")]
    ]


def refused_vectors() -> list[Vector]:
    good = stanza()
    forged = replace(CONTEXT, run="run-2")
    moved = stanza(file_key=fixed("another file key")(16))
    mismatches = {
        "another_application": replace(CONTEXT, application="other"),
        "another_run": forged,
        "another_task": replace(CONTEXT, task="another"),
        "another_object": replace(CONTEXT, object="record"),
    }
    tampered = {
        "blob_changed": changed(good, 2),
        "salt_changed": changed(good, -64),
        "wrapped_changed": changed(good, -1),
        "context_forged": Stanza(TYPE, (*good.arguments[:2], forged.text()), good.body),
        "arn_forged": Stanza(TYPE, ("v1", OTHER.text, good.arguments[2]), good.body),
    }
    later = head(Stanza(TYPE, ("v2", "x"), b""))
    return [
        *(
            Vector(name, head(good) + PAYLOAD, "ContextMismatchError", "KMS was not asked", context=context)
            for name, context in mismatches.items()
        ),
        *(
            Vector(
                name,
                head(one) + PAYLOAD,
                "WrappedKeyError",
                "was changed",
                ("own", "other"),
                forged if name == "context_forged" else CONTEXT,
            )
            for name, one in tampered.items()
        ),
        Vector("foreign_key", head(stanza(OTHER)) + PAYLOAD, "ForeignKeyError", "is not in keys.kms"),
        Vector("no_key", head(good) + PAYLOAD, "ForeignKeyError", "no identity was given", ()),
        Vector("stanza_moved", head(moved) + PAYLOAD, "MovedKeyError", "moved there from another file"),
        Vector("header_changed", mac_of_another(good) + PAYLOAD, "HeaderMacError", "was changed after"),
        Vector("later_version", later + PAYLOAD, "UnsupportedSchemaError", "has version v2"),
    ]


def changed(good: Stanza, at: int) -> Stanza:
    body = bytearray(good.body)
    body[at] ^= 1
    return Stanza(good.type, good.arguments, bytes(body))


def mac_of_another(good: Stanza) -> bytes:
    """A header of that stanza and one more that the MAC does not cover."""
    stanzas = (good, Stanza("extra", (), b""))
    return Header(stanzas, hashlib.sha256(b"another MAC").digest()).marshal()


def all_vectors() -> list[Vector]:
    return [*good_vectors(), *malformed_vectors(), *refused_vectors()]


def data_keys() -> list[dict[str, str]]:
    """What KMS answers, for whoever implements the stanza."""
    asked = [
        *((OWN, CONTEXT, size) for size in (152, 1, 6144)),
        *((OTHER, CONTEXT, 152), (OWN, UNICODE, 152)),
    ]
    answers = [(arn, context, FixedKms(size).generate(arn, context.pairs())) for arn, context, size in asked]
    return [
        {
            "arn": arn.text,
            "context": context.text(),
            "blob_sha256": hashlib.sha256(key.blob).hexdigest(),
            "data_key": key.plaintext.hex(),
        }
        for arn, context, key in answers
    ]


def document() -> dict[str, object]:
    vectors = {vector.name: vector.expected() for vector in sorted(all_vectors(), key=lambda each: each.name)}
    return {"own": OWN.text, "other": OTHER.text, "data_keys": data_keys(), "vectors": vectors}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    for vector in all_vectors():
        (FOLDER / vector.file).write_bytes(vector.data)
    text = json.dumps(document(), indent=1) + "\n"
    (FOLDER / "expected.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
