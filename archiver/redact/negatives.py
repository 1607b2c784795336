"""What a value says that is no secret: placeholders, references, documentation, code, paths, identifiers."""

from __future__ import annotations

import re

from archiver.redact.words import pairs

_NOTHING = re.compile(
    rb"""
    (?:[*x.\-_#?=~+]|\xe2\x80\xa2)* | [A-Za-z]?(.)\1{3,}
    | \$\{?[A-Za-z_]\w*[}:]?.* | %\w+% | [!&*@][A-Za-z_]+ | (?:%[sdrv]|\{[^{}]*\})
    | (?:null|none|nil|true|false|undefined|string|str|bytes|any|optional|required|default|empty|unset|n/?a)
    | AWS4-HMAC-SHA256 | .{4,120}/aws4_request | secret(?:str|bytes|string)
    | (?:0x)?0+ | 0x[0-9a-f]{1,10} | \#[0-9a-f]{3,8}
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_REFERS = re.compile(
    rb"^<|\$\{|\$\([A-Za-z_]|\{\{|\#\{|<[A-Za-z_ \-]+>|%\([a-z]|\.\.\."
    rb"|\xe2\x80\xa6|\*\*\*\*|(?i:xxxx)|\[REDACTED[:\]]|&lt;|([^A])\1{7,}"
)
_EXAMPLE = re.compile(
    rb"(?:^|[^a-z])(?:(?:your|my|some|the|insert|replace|enter|add|put|use)[_\- ]|(?:example|sample"
    rb"|placeholder|change_?-?me|dummy|fake|redacted|removed|hidden|masked|todo|fixme|not-?_?(?:a-?_?)?real|goes-?_?here|here"
    rb"|invalid)(?:[^a-z]|$))|example",
    re.IGNORECASE,
)
_SEQUENCE = re.compile(rb"1234567890|0123456789|abcdefg|a1b2c3d4|d4c3b2a1|deadbeef", re.IGNORECASE)
_FILLER = re.compile(
    rb"EXAMPLE|([0#.\-_])\1{9,}|A{26}|([a-z1-9])\2{41,}|AIza(.)\3{20,}|\[REDACTED:|[xX*]{6}|(?i:example|placeholder|redacted|your[_\-]|change_?me)"
)
_UUID = re.compile(rb"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_NAMED = re.compile(rb"(?=\w*[0-9])[a-z][a-z0-9]*(?:_[a-z0-9]+)*_(?:password|passwd|secret|token|key|pass)")
"""A variable that holds a secret: `pkcs12_password`."""
_PATH = re.compile(rb"(?:[A-Za-z]:)?[.~]{0,2}[/\\]?[\w.\-@]+(?:[/\\][\w.\-@*]+)+/?|[.~]{0,2}/[\w.\-]*")
_ROOTED = re.compile(
    rb"(?:~|\.{1,2}|[A-Za-z]:)[/\\]"
    rb"|/(?:home|Users|tmp|var|etc|usr|opt|run|app|mnt|root|data|srv|dev|proc|work|private)/"
)
_DOTTED = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*(?:(?:\.|::|->|\?\.)[A-Za-z_][A-Za-z0-9_]*)+")
_CALL = re.compile(rb"[A-Za-z_][\w.]*(?:\(|\[[\w\"'])")
_WORDY = re.compile(rb"[A-Z]?[a-z]*[0-9]{0,2}|[A-Z]+[0-9]{0,2}|[0-9]{1,4}")
_SPLIT = re.compile(rb"[^A-Za-z0-9]+")
_LONG_NAME, _FEW_NUMBERS = 20, 3
"""A name of code that is long has few numbers in it."""
_NUMBERS = re.compile(rb"[0-9]+")
_MOMENT = re.compile(rb"v?[0-9]+(?:[.\-:/T_ ][0-9]+)+Z?")
_FILE = re.compile(
    rb"[\w.\-/]+\.(?:py|js|ts|tsx|jsx|go|rs|rb|java|json|ya?ml|toml|txt|md|sh|env|pem|key|crt|html|css)"
)


def says_nothing(value: bytes) -> bool:
    """True for placeholders, references to variables, documentation examples and our own placeholders."""
    return (
        _NOTHING.fullmatch(value) is not None
        or _REFERS.search(value) is not None
        or _EXAMPLE.search(value) is not None
        or _SEQUENCE.search(value) is not None
    )


def refers(value: bytes) -> bool:
    """True for references, masks and words such as `changeme`: no secret even where only one can stand."""
    return (
        _EXAMPLE.search(value) is not None
        or _NOTHING.fullmatch(value) is not None
        or _REFERS.search(value) is not None
    )


def is_filler(value: bytes) -> bool:
    """True for a value of a provider's form that documentation made up: `AKIA…EXAMPLE`, `ghp_xxxxxxxx…`."""
    return _FILLER.search(value) is not None


def is_uuid(value: bytes) -> bool:
    """True for a UUID, which is a secret only where nothing else can stand."""
    return _UUID.fullmatch(value) is not None


def is_reference(value: bytes) -> bool:
    """True for a path, a file or dotted name, a date, a URL without a password: it says where a secret is."""
    if b"://" in value:
        return b"@" not in value
    return _UUID.fullmatch(value) is None and is_code(value)


def is_dotted(value: bytes) -> bool:
    """True for names joined by dots, as code reaches for attributes."""
    if _DOTTED.fullmatch(value) is None:
        return False
    last = max(_SPLIT.split(value), key=len)
    if len(last) < _LONG_NAME or last.endswith((b"Key", b"Token", b"Secret", b"Password")):
        return True
    return len(_NUMBERS.findall(last)) < _FEW_NUMBERS or is_identifier(last)


def is_code(value: bytes) -> bool:
    """UUIDs, dates, versions, paths, file names, dotted names and calls."""
    if (
        _UUID.fullmatch(value)
        or _MOMENT.fullmatch(value)
        or is_dotted(value)
        or _FILE.fullmatch(value)
        or _NAMED.fullmatch(value)
    ):
        return True
    if b"://" in value or b"()" in value or value[-1:] == b"(" or _CALL.match(value):
        return True
    if _PATH.fullmatch(value) is None:
        return False
    return _ROOTED.match(value) is not None or _wordy(value) or is_identifier(value)


def is_common(value: bytes) -> bool:
    """True for a word or a short number, which stands in many texts without being the secret."""
    if value.isalpha():
        return len(value) < 16 and (value.islower() or value.isupper() or value.istitle())
    return value.isdigit() and len(value) < 8


def is_identifier(value: bytes) -> bool:
    """True for words joined by punctuation, camel case or numbers: `my_token_2`, `apiKeyV1`.

    Measured: letters of identifiers are common pairs to 62 % or more in 99 of 100, random ones in 5 of 100.
    Numbers between letters make words less likely.
    """
    common, count = pairs(value)
    numbers = _NUMBERS.findall(value)
    digits = sum(map(len, numbers))
    if count < 4 or len(numbers) > 3:
        return len(numbers) < 2 and digits <= 4
    if len(numbers) == 3 and 4 * digits > len(value):
        return False
    return common >= (0.62, 0.62, 0.75, 0.9)[len(numbers)] * count


def is_scrambled(value: bytes, least: int) -> bool:
    """True for letters that nobody would write: at least `least` pairs of them, most of them rare."""
    common, count = pairs(value)
    return count >= least and common < 0.48 * count


def _wordy(value: bytes) -> bool:
    """True when every piece between punctuation is a word or a short number."""
    return all(_WORDY.fullmatch(piece) for piece in _SPLIT.split(value))
