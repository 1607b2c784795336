"""Passwords that people make up: short, of words, and secret all the same.

Nothing about such a value is random, so all depends on where it stands: a literal beside a name that says
password, more so beside the name of a user, or a line of a file of settings. Types, labels and messages of
programs stand in the same places and are told apart by their words.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from archiver.redact.negatives import is_code, says_nothing

Place = Literal["literal", "paired", "line", "pair-line"]
"""`literal`: in quotes or tags. `paired`: so, or ended by `;`, and beside a user's name that is given too.
`line`: all of a line `NAME=value`. `pair-line`: a line `name = value` under one for the user."""

_LABELS: Final = frozenset(
    (
        b"password passwd passphrase passwort pwd pass pw string text str bytes char varchar boolean bool "
        b"integer int number object array any unknown none null nil true false required optional hidden "
        b"visible input type value field label placeholder name user username login key token wrong "
        b"invalid incorrect missing empty forgotten forgot reset change changed new old current confirm "
        b"confirmation repeat verify encrypted plain plaintext hash hashed bcrypt argon scrypt auto "
        b"prompt ask env environment vault file stdin keychain keyring basic bearer default disabled "
        b"enabled yes no sensitive redacted masked generated random manual interactive ok okay weak "
        b"strong short long min max length error failed success expired expires mismatch match update "
        b"create delete show toggle enter your the for and or not with this that senha contrasena parola "
        b"wachtwoord haslo heslo lozinka parole salasana sifre data id email mail phone code otp pin "
        b"credentials credential method mode provider props state ref form validate validator schema "
        b"request response param params arg args self cls ctx config option options opts settings static "
        b"const let var def func function return await async"
    ).split()
)
_ALGORITHM = re.compile(
    rb"(?:[a-z_]*[-_])?(?:sha|md|aes|base|utf|oauth|argon|pbkdf|rsa|des|hs|rs|es|ps|u?int|float|str|v|http|h|ipv|x|nt"
    rb"|ed|pkcs|rfc|iso|py|python|web|s|k|i|l)[-_]?\d.*",
    re.IGNORECASE,
)
_MADE_OF = re.compile(rb"[A-Za-z0-9!@#$%^&*+=?~_.\-]{4,64}")
_SIGN_INSIDE = re.compile(rb"[A-Za-z0-9][!$^*~@]+[A-Za-z0-9]|[A-Za-z0-9][$^~]\Z")
_HASH_INSIDE = re.compile(rb"[A-Za-z0-9]{3,}#[A-Za-z0-9]{3,}")
_MAIL = re.compile(rb"[^@]+@[^@]+\.[A-Za-z]{2,}|@[\w.\-]+|[\w.\-]+@\d*")
_NUMBERED = re.compile(
    rb"[A-Za-z]{2,}[0-9]{2,}[A-Za-z0-9]{0,12}|(?:[A-Z][a-z]{2,}){1,4}[0-9]|[a-z]{3,}[0-9]{1,3}[a-z]{3,}[0-9]{1,}"
)
_GLUED = re.compile(rb"[a-z]{16,40}")
_WORDS = re.compile(rb"[A-Za-z]+(?:[_\-. ][A-Za-z0-9]+){0,5}")
_PIECES = re.compile(rb"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_JOINTS = re.compile(rb"[_\-. ]")
_SHORT = 6


def is_made_up(value: bytes, place: Place, *, secret: bool = False) -> bool:
    """A password of words, digits and signs; `secret` when the name says secret and not password."""
    if not 4 <= len(value) <= 64 or says_nothing(value) or _is_label(value):
        return False
    if place != "paired" and (is_code(value) or value[:1] in (b"$", b"#", b"@", b"%", b"&", b"-", b".")):
        return False
    if _MADE_OF.fullmatch(value) is None:
        return place == "paired" and _spaced(value)
    if _ALGORITHM.fullmatch(value) or _MAIL.fullmatch(value):
        return False
    if secret:
        return place == "paired" or _HASH_INSIDE.fullmatch(value) is not None
    if _SIGN_INSIDE.search(value) or _NUMBERED.fullmatch(value):
        return len(value) >= _SHORT
    if place == "literal":
        return _GLUED.fullmatch(value) is not None
    if place == "pair-line":
        return _WORDS.fullmatch(value) is not None and not _talks(value)
    return True


def _is_label(value: bytes) -> bool:
    """One of the words of programs, or nothing but such words."""
    words = [word.lower() for word in _PIECES.findall(value)]
    return bool(words) and all(word in _LABELS for word in words) and not any(48 <= c < 58 for c in value)


def _talks(value: bytes) -> bool:
    """Words of programs among others, as names of variables have them."""
    return any(piece.lower() in _LABELS or piece.lower() == b"secret" for piece in _JOINTS.split(value))


def _spaced(value: bytes) -> bool:
    """Two or three words, none of which is a word of programs."""
    return 1 <= value.count(b" ") <= 2 and _WORDS.fullmatch(value) is not None and not _talks(value)
