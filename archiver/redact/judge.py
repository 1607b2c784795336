"""Is a value beside a name that says secret a secret?

All functions take the value as bytes. They are only asked about values whose context already says secret: no
rule of this package looks at entropy alone. What is cheap is asked first: a hostile text asks often.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from typing import Final

from archiver.redact.negatives import (
    is_code,
    is_dotted,
    is_filler,
    is_identifier,
    is_scrambled,
    refers,
    says_nothing,
)
from archiver.redact.passwords import is_made_up

_DIGITS: Final = b"0123456789"
_LETTERS: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_HEX = re.compile(rb"[0-9a-f]+|[0-9A-F]+")
_SYMBOL = re.compile(rb"[^A-Za-z0-9_\-./:]")
_STRONG = re.compile(rb"[!@#$%^&*?~]")
_CODE_SIGNS = re.compile(rb"[(){}\[\]<>=|]|&&")
_TOKEN = re.compile(rb"[A-Za-z0-9+/=_.~:!@$%^*\-]+")
_MANY_DIGITS: Final = 24
_VARIED: Final = 6
"""Different bytes that a random value of any length has."""
_SHORT_DATA: Final = 40
"""Bytes; what is longer is a file, in which a word of placeholders says nothing of the rest."""
_SHORTEST: Final = 4
_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")
_BARE = re.compile(rb"[A-Za-z0-9+/=_.~:!@#$%^&*()?,|\-]{12,4096}")
_JOINTS = re.compile(rb"[-_.:/=+,|]+")
_USER = re.compile(rb"[A-Za-z0-9_.@+\-]{1,64}")
_NO_PASSWORDS: Final = frozenset({b"password", b"pass", b"pwd", b"token", b"port", b"passwd", b"pw", b"p"})


def is_password(value: bytes) -> bool:
    """A value beside a name that says password: letters and digits that no identifier would have."""
    if not 6 <= len(value) <= 512 or b" " in value.strip():
        return False
    return _looks_like_password(value) and not says_nothing(value) and not is_code(value)


def _looks_like_password(value: bytes) -> bool:
    digits, letters = _count(value, _DIGITS), _count(value, _LETTERS)
    if not letters:
        return False
    if digits:
        return _SYMBOL.search(value) is not None or (
            len(value) >= 8 and not is_identifier(value) and not _numbered(value)
        )
    if len(_STRONG.findall(value)) >= 2:
        return _CODE_SIGNS.search(value) is None
    return _TOKEN.fullmatch(value) is not None and is_scrambled(value, 9)


def is_token(value: bytes) -> bool:
    """A value beside a name that says secret, token or key: long, mixed, and of no other known kind."""
    if not 10 <= len(value) <= 4096 or b" " in value:
        return False
    return _looks_like_token(value) and not says_nothing(value) and not is_code(value)


def _looks_like_token(value: bytes) -> bool:
    digits = _count(value, _DIGITS)
    if digits == len(value):
        return False
    if _HEX.fullmatch(value):
        return len(value) >= 16 and digits > 0
    if len(value) < 20 and _TOKEN.fullmatch(value) is None:
        return False
    if digits < 2:
        return len(value) >= 16 and is_scrambled(value, 8)
    if is_identifier(value) or _numbered(value):
        return False
    return entropy(value) >= (2.8 if len(value) < 20 else 3.2)


def _numbered(value: bytes) -> bool:
    """Words and whole numbers between joints, as names of builds and accounts have them."""
    pieces = _JOINTS.split(value)
    numbers = [piece for piece in pieces if piece.isdigit()]
    return (
        bool(numbers)
        and len(pieces) <= 4
        and all(len(p) <= 12 and is_identifier(p) for p in pieces if p not in numbers)
    )


def is_opaque(value: bytes) -> bool:
    """A value after `Bearer` and the like: any token that is neither a word nor a placeholder."""
    if len(value) < 8 or is_dotted(value):
        return False
    if _count(value, _DIGITS):
        return not is_identifier(value) and not says_nothing(value)
    return len(value) >= 16 and is_scrambled(value, 8) and not says_nothing(value)


def is_bare_token(value: bytes) -> bool:
    """A whole decoded text that is a random token or `user:password`, though nothing around it says so.

    Only for what was found behind an encoding: chance makes almost no printable text, so what is printable
    was encoded on purpose. Identifiers, paths, URLs, sentences and structures are no tokens.
    """
    if _BARE.fullmatch(value) is None or says_nothing(value) or is_code(value):
        return False
    user, colon, rest = value.partition(b":")
    if b":" in rest or (colon and _USER.fullmatch(user) is None):
        return False
    return _is_random(rest if colon else value)


def _is_random(value: bytes) -> bool:
    """At least one run between joints that nobody would write."""
    if is_code(value) or entropy(value) < 2.8:
        return False
    run = max(_JOINTS.split(value), key=len)
    digits = _count(run, _DIGITS)
    if len(run) < 8 or digits == len(run) or len(set(run)) < _VARIED:
        return False
    if _HEX.fullmatch(run):
        return len(run) >= 32 and digits > 0
    return (digits >= 2 and not is_identifier(run)) or is_scrambled(run, 8)


def is_plausible(value: bytes, *, telling: bool) -> bool:
    """A value of a provider's form after its word; `telling` forms need only not to be filler.

    Any other must have digits among its letters, or letters that nobody would write, and some variety; digits
    alone must be more than any id or moment has.
    """
    if is_filler(value):
        return False
    if telling:
        return True
    digits = _count(value, _DIGITS)
    if (digits == len(value) < _MANY_DIGITS) or len(set(value)) < _VARIED:
        return False
    return digits > 0 or is_scrambled(value, 8)


def entropy(value: bytes) -> float:
    """Shannon entropy of the bytes, in bits a byte."""
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values())


def _count(value: bytes, chars: bytes) -> int:
    return len(value) - len(value.translate(None, chars))


def is_login(value: bytes) -> bool:
    """Base64 of `user:password` in printable ASCII."""
    raw = _unbase64(value)
    return raw is not None and len(raw) >= 6 and b":" in raw and raw.isascii() and raw.decode().isprintable()


def is_filled(value: bytes) -> bool:
    """Anything that stands where only a secret can stand and is no placeholder."""
    return bool(value) and not says_nothing(value)


def is_made_up_password(value: bytes) -> bool:
    """A password where only one can stand: random, or made up by people."""
    return is_made_up(value, "paired") or is_password(value) or is_token(value)


def is_given(value: bytes) -> bool:
    """The same for an argument of a call, which may be a short random token too."""
    return is_made_up_password(value) or is_opaque(value)


def is_hash(value: bytes) -> bool:
    """A salted hash of a full form: all but filler."""
    return not is_filler(value)


def is_pair(value: bytes) -> bool:
    """`user:password`, neither of them a reference."""
    user, _, password = value.partition(b":")
    return not refers(user) and not refers(password) and password.lower() not in _NO_PASSWORDS


def is_url_password(value: bytes) -> bool:
    """A password in a URL: anything but a placeholder, the word itself, or what is too short for one."""
    return len(value) >= _SHORTEST and not refers(value) and value.lower() not in _NO_PASSWORDS


def is_secret_data(value: bytes) -> bool:
    """A value of a Kubernetes Secret: base64 of anything that is no placeholder."""
    raw = _unbase64(value)
    return raw is not None and len(raw) >= 6 and (len(raw) > _SHORT_DATA or not says_nothing(raw.strip()))


def is_secret_text(value: bytes) -> bool:
    """A value of the `stringData` of a Kubernetes Secret: any text that is no placeholder."""
    return len(value) >= 6 and not says_nothing(value.strip())


def _unbase64(value: bytes) -> bytes | None:
    text = value.translate(_URL_SAFE).rstrip(b"=")
    try:
        return base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        return None
