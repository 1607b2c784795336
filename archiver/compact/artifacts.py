"""Large outputs and images kept once by digest, as members of the bundle."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable
from typing import Final

from archiver.compact.notes import Content
from archiver.compact.text import encode, head, tail
from archiver.model import Artifact, Member
from archiver.scratch import Scratch

FOLDER: Final = "artifacts"
_SHOWN: Final = 256
"""Bytes of head and tail in the list of artifacts; the transcript itself shows more."""
_MEDIA = re.compile(r"[!-:<-~]{1,100}")
_SURROGATES = re.compile(r"[\ud800-\udfff]")


class Artifacts:
    """Collects artifacts; those that a checkpoint has already come first and are not written again."""

    def __init__(self, held: Iterable[Artifact], scratch: Scratch) -> None:
        self.members: list[Member] = []
        self._by_digest = {artifact.sha256: artifact for artifact in held}
        self._written: set[str] = set()
        self._scratch = scratch

    def copy(self) -> Artifacts:
        """What is collected so far, to be gone on from elsewhere."""
        made = Artifacts((), self._scratch)
        made.members = list(self.members)
        made._by_digest = dict(self._by_digest)
        made._written = set(self._written)
        return made

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """All of them, each once, in the order in which they were first seen."""
        return tuple(self._by_digest.values())

    def text(self, text: str, summary: str) -> Content:
        """Keep an output; gives its size, digest and the artifact that holds it."""
        data = encode(text)
        digest = self._keep(data)
        if digest not in self._by_digest:
            self._by_digest[digest] = described(text, data, summary, digest)
        return Content(len(data), digest, (digest,))

    def blob(self, media: str, text: str) -> tuple[str, Content]:
        """Keep a base64 payload decoded, or as the text it is where decoding would lose something.

        Gives the media type of what was kept, and its size and digest.
        """
        media = media if _MEDIA.fullmatch(media) else "application/octet-stream"
        data = _decoded(text)
        if data is None:
            media, data = "text/plain", encode(text)
            summary = f"payload of {len(data)} bytes that is not plain base64, kept as it stood"
        else:
            summary = f"{media} of {len(data)} bytes"
        digest = self._keep(data)
        if digest not in self._by_digest:
            self._by_digest[digest] = Artifact(
                sha256=digest, size=len(data), media_type=media, summary=summary
            )
        return media, Content(len(data), digest, (digest,))

    def _keep(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self._written:
            self._written.add(digest)
            spool = self._scratch.spool("artifact")
            spool.write(data)
            spooled = spool.close()
            self.members.append(Member(f"{FOLDER}/{digest}", spooled.path, spooled.size, digest))
        return digest


def described(text: str, data: bytes, summary: str, digest: str = "") -> Artifact:
    """What the list says of a text, `data` in bytes; its digest is computed where the caller has none."""
    return Artifact(
        sha256=digest or hashlib.sha256(data).hexdigest(),
        size=len(data),
        summary=summary,
        head=_SURROGATES.sub("\ufffd", head(text, _SHOWN)),
        tail=_SURROGATES.sub("\ufffd", tail(text, _SHOWN)),
    )


def _decoded(text: str) -> bytes | None:
    """The bytes of canonical base64: encoding them again gives the same text."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if base64.b64encode(data) == text.encode("ascii", "replace") else None
