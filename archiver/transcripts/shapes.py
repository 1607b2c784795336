"""What ids, sealed text and media look like where a provider writes them.

What stands at such a place and has not its shape is text like any other: a harness, a proxy or a tool wrote
it, and it may hold a credential.
"""

from __future__ import annotations

import base64
import re
from typing import Any, Final

_UUID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_PREFIXES: Final = "|".join(
    (
        *(
            "call",
            "fc",
            "fco",
            "rs",
            "msg",
            "resp",
            "item",
            "conv",
            "req",
            "cmp",
            "ctc",
            "ctco",
            "ci",
            "cntr",
        ),
        *("cfile", "file", "ws", "fs", "ig", "mcp", "mcpr", "mcpl", "mcpa", "lsh", "lsho", "sh", "sho", "cu"),
        *("apc", "apco", "tsc", "tso", "am", "audio", "toolu", "srvtoolu", "tooluse", "chatcmpl", "gen"),
        *("connector", "link", "turn", "thread"),
    )
)
_ID: Final = re.compile(
    rf"{_UUID}|[0-9a-f]{{24}}|[0-9a-f]{{32}}|(?:{_PREFIXES})[_-](?:{_UUID}|[A-Za-z0-9_-]{{1,128}})"
)
_SIGNED_ID: Final = re.compile(r"call[A-Za-z0-9_-]{0,64}__thought__[A-Za-z0-9+/=_-]{16,}")
"""A proxy hangs the signature of a thought on the id of the call that followed it."""
_UUID_ALONE: Final = re.compile(_UUID)
_RESPONSE: Final = re.compile(r"resp_[A-Za-z0-9_-]{1,128}")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SEALED: Final = re.compile(r"[A-Za-z0-9+/_-]{32,}={0,2}")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]{22,}={0,2}")
_MEDIA_URL: Final = re.compile(r"data:(?:(?:image|audio|video)/[a-z0-9.+-]{1,40}|application/pdf);base64,")
_STANDARD: Final = str.maketrans("-_", "+/")
_PRINTABLE: Final = bytes((9, 10, 13, *range(32, 127)))
_HEAD: Final = 64
_MAGIC: Final = re.compile(
    rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|RIFF....(?:WEBP|WAVE)|BM....\x00\x00\x00\x00|II\*\x00|MM\x00\*"
    rb"|....ftyp|ID3[\x02-\x04]|\xff[\xf1\xf3\xf9\xfb]|OggS|fLaC|\x1aE\xdf\xa3|%PDF-",
    re.DOTALL,
)
"""How pictures, sound, video and PDF files begin."""


def is_id(value: Any) -> bool:
    """True for text that has the shape of an id of a provider: a UUID, or a known prefix and what follows."""
    return isinstance(value, str) and bool(_ID.fullmatch(value) or _SIGNED_ID.fullmatch(value))


def is_uuid(value: Any) -> bool:
    """True for a UUID in lower case."""
    return isinstance(value, str) and _UUID_ALONE.fullmatch(value) is not None


def is_response_id(value: Any) -> bool:
    """True for the id of a response."""
    return isinstance(value, str) and _RESPONSE.fullmatch(value) is not None


def is_commit(value: Any) -> bool:
    """True for the full name of a commit."""
    return isinstance(value, str) and _COMMIT.fullmatch(value) is not None


def is_sealed(value: Any) -> bool:
    """True for what only the provider can read: one run of base64, in either alphabet, of 32 or more."""
    return isinstance(value, str) and _SEALED.fullmatch(value) is not None


def is_blob(value: Any) -> bool:
    """True for sealed text that hides no text: one alphabet of base64, and no words behind it.

    What anybody can read once it is decoded is a text like any other, and may hold a credential.
    """
    return isinstance(value, str) and is_sealed(value) and not _mixes(value) and not _is_text(value)


def _mixes(value: str) -> bool:
    return ("+" in value or "/" in value) and ("-" in value or "_" in value)


def _is_text(value: str) -> bool:
    bare = value.rstrip("=").translate(_STANDARD)
    data = base64.b64decode(bare[: len(bare) // 4 * 4])
    return len(data.translate(None, _PRINTABLE)) * 10 < len(data)


def is_media(value: Any) -> bool:
    """True for a picture, sound, video or PDF file in base64, alone or as a data URL without parameters.

    The media type alone says nothing: what the base64 decodes to has to begin as such a file does.
    """
    if not isinstance(value, str):
        return False
    named = _MEDIA_URL.match(value)
    start = named.end() if named else 0
    if (len(value) - start) % 4 or _BASE64.fullmatch(value, start) is None:
        return False
    return _MAGIC.match(base64.b64decode(value[start : start + _HEAD])) is not None
