"""Where the value of a name stands: the ways in which languages and files assign one.

All functions take the buffer and the end of a trigger of `names.Names.trigger`, which is an assignment sign,
a comma or a `>` after a name that says secret; they look at a bounded window and end it at a NUL.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from archiver.redact.passwords import Place

_SPACES = rb"(?:[ \t]|\\[rnt]|[\r\n]){0,40}"
_OPENING = rb"(?P<q>\\{0,7}[\"'`])"
_CLOSING = rb"(?P<secret>[^\n\x00]{1,1024}?)(?<!\\)(?P=q)"

# A type or the name of an argument before the sign (`str =`), and what wraps a literal in some languages.
_TYPED = rb"(?:(?:&(?:'static[ \t])?)?[A-Za-z_][\w.\[\]|, ]{0,40}=[ \t]*)?"
_WRAPPED = (
    rb"(?:(?:new[ \t]{1,4})?(?:\[\]byte|std::string|String|NSString|SecureString|SecretStr|SecretString"
    rb"|Secret|Password|Token|str|bytes|Buffer\.from|ConvertTo-SecureString(?:[ \t]+-String)?)[ \t(]{1,4})?"
)
_QUOTED = re.compile(
    rb"[:=>~]{0,3}" + _SPACES + _TYPED + _WRAPPED + rb"(?:[rbuflq]{1,2}|@|\$(?=\"))?" + _OPENING + _CLOSING
)
_BARE = re.compile(
    rb"[:=>~]{0,3}[ \t]*(?:[A-Za-z_]\w{0,20}[ \t]*=[ \t]+)?"
    rb"(?P<secret>[^\s\"'`<>\\\x00;&,(){}\[\]|]{4,4096})(?P<next>[(\[{<]?)"
)
_WHOLE = re.compile(rb"(?P<secret>[^\s\"'`\\\x00]{4,4096})")
_PLAIN_BEYOND = 512
_ASSIGNS = re.compile(rb"(?:key|token|secret|passw(?:or)?d|pass|pwd|auth)[:=]", re.IGNORECASE)
_BYTES_A_SIGN = 24
_STARTS_ALONE = re.compile(rb"(?:^|[\s:\x00>+|]|\\n|\xe2\x86\x92|m)\Z")
_VALUE_KEY = rb"(?:\\{0,7}[\"']value\\{0,7}[\"'][ \t]{0,4}:)?"
_ARGUMENT = re.compile(
    _SPACES
    + _VALUE_KEY
    + _SPACES
    + _OPENING
    + rb"[\"']?(?P<secret>[^\n\x00\"'`]{4,1024}?)(?<!\\)[\"']?(?P=q)(?![ \t]{0,4}:)"
)
_RESOURCE = re.compile(rb"arn:[a-z\-]{3,12}:[a-z0-9\-]{2,30}:[a-z0-9\-]{0,20}:[^\s:]{0,30}:\Z")
_ARN_REACH = 120
"""Bytes; in a name of a resource of AWS, `secret:` says what the resource is."""
_LISTED = re.compile(rb"[\"'`][ \t\r\n]{0,40},[ \t\r\n]{0,40}(?P<q>[\"'`])[\w.:@\-]{1,60}(?P=q)[ \t]{0,4},\Z")
_GROUPED = re.compile(
    rb"(?:\A|[^\w\])}>])[ \t]{0,4}[(\[{][ \t\r\n]{0,40}(?P<q>[\"'`])[\w.:@\-]{1,60}(?P=q)[ \t]{0,4},\Z"
)
"""A tuple or list, and no call, begins with the name: its strings are words of one kind."""
_LIST_REACH = 160
"""Bytes; a name that another string comes before is one of a list, and so is what comes after it."""
_ELEMENT = re.compile(
    _SPACES + rb"(?:<!\[CDATA\[)?(?P<secret>[^<>\s\\\x00]{4,4096})(?:\]\]>)?" + _SPACES + rb"<\\{0,7}/"
)


class Value(NamedTuple):
    """Where a value stands, and whether quotes or tags say that it is a literal."""

    start: int
    end: int
    literal: bool


def after_sign(data: bytes, end: int, name: int) -> Value | None:
    """The value after `=` or `:`; `name` is the length of the name before the sign."""
    if _RESOURCE.search(data, max(0, end - name - _ARN_REACH), end - 1 - name) is not None:
        return None
    match = _QUOTED.match(data, end)
    if match is not None:
        return Value(*match.span("secret"), literal=True)
    value = _bare(data, end, name)
    if value is None or value.end - value.start <= _PLAIN_BEYOND:
        return value
    # A text full of assignments is no value; to judge what follows each would take the square of its length.
    signs = data.count(b"=", value.start, value.end) + data.count(b":", value.start, value.end)
    crowded = signs * _BYTES_A_SIGN > value.end - value.start
    return None if crowded or _ASSIGNS.search(data, value.start, value.end) else value


def _bare(data: bytes, end: int, name: int) -> Value | None:
    if data[end - 1 : end] == b"=" and _STARTS_ALONE.search(data, max(0, end - name - 4), end - 1 - name):
        match = _WHOLE.match(data, end)
        if match is not None:
            return _trim(data, *match.span("secret"))
    match = _BARE.match(data, end)
    if match is None or match["next"]:
        return None
    return _trim(data, *match.span("secret"))


def next_argument(data: bytes, end: int) -> Value | None:
    """The string after a comma: `define('NAME', 'value')`, `setProperty("name", "value")`."""
    match = _ARGUMENT.match(data, end)
    if match is None:
        return None
    low = max(0, end - _LIST_REACH)
    listed = _LISTED.search(data, low, end) or _GROUPED.search(data, low, end)
    return Value(*match.span("secret"), literal=listed is None)


def in_element(data: bytes, end: int) -> Value | None:
    """The text of an XML element, which may stand on a line of its own."""
    match = _ELEMENT.match(data, end)
    return None if match is None else Value(*match.span("secret"), literal=True)


def _trim(data: bytes, start: int, end: int) -> Value:
    while end > start and data[end - 1] in b",;.)]}":
        end -= 1
    return Value(start, end, literal=False)


_USER = re.compile(
    rb"(?<![a-z])(?:[\w.\-$>]{0,40}[_.\-$>])?(?:user(?:[_ ]?(?:name|id))?|uid|login|account|e?mail)"
    rb"[\"'`\])]{0,3}\s{0,24}(?:=>|:=|={1,3}|:|,)\s{0,24}\\{0,3}[\"'`]?(?P<user>[^\s\"'`;,\\(){}]{2,80})",
    re.IGNORECASE,
)
_USER_WORDS = (b"user", b"uid", b"login", b"account", b"mail")
"""One of them is in all that `_USER` matches; to look for them takes a tenth of the time."""
_SERVER = re.compile(
    rb"(?:server|data ?source|host|database|initial catalog|provider|driver|dsn|address)\s{0,2}=",
    re.IGNORECASE,
)
_LINE_START = re.compile(
    rb"(?:\A|[\n\x00]|\\n)[ \t>+|#\-]*(?:[0-9]{1,6}[ \t]*(?:\xe2\x86\x92|[:|\t ]))?[ \t]*"
    rb"(?:(?:export|set|ENV|SET)[ \t]+)?[\"']?\Z"
)
_LINE_END = re.compile(rb"[ \t]*(?:(?:#|//)[^\n\x00]*)?(?:\\{1,7}[rn]|[\r\n\x00]|\Z)")
_COMPARED = re.compile(rb"[!=]==?[ \t]*\\{0,7}[\"']|.==[ \t]*\\{0,7}[\"']")
_USER_REACH = 240
_START_REACH = 32


def place_of(data: bytes, end: int, value: Value, name: str) -> Place | None:
    """What the text around says of a value that is not random; `end` is the end of the trigger."""
    low = max(0, end - _USER_REACH)
    before = data[max(low, data.rfind(b"\0", low, end) + 1) : end]
    lower = before.lower()
    user = _USER.search(before) if any(word in lower for word in _USER_WORDS) else None
    if value.literal and _COMPARED.match(data, end - 2):
        return "paired"
    if value.literal:
        return "paired" if user is not None else "literal"
    if user is not None and data[value.end : value.end + 1] in (b";", b'"', b"'") and _SERVER.search(before):
        return "paired"
    start = data.rfind(name.encode(), 0, end)
    if _LINE_END.match(data, value.end) is None:
        return None
    if _LINE_START.search(data, max(0, start - _START_REACH), start) is None:
        return None
    glued = start + len(name) == end - 1 and value.start == end
    if glued and data[end - 1 : end] == b"=" and name.isupper():
        return "line"
    if user is not None and b"." not in user["user"]:
        return "pair-line"
    return None if data[value.start : value.end].isalpha() else "literal"
