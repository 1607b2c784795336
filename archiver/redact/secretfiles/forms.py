"""What each form of file holds, as (name, value) pairs; `UnusableFileError` for a file that breaks its form.

Sources: the manual pages of netrc(5), pgpass and git-credential-store, and the documentation of
python-dotenv, npm and pip.
"""

from __future__ import annotations

import configparser
import io
import re
import tomllib
from collections.abc import Callable, Iterator
from typing import Any, Final

import dotenv
import dotenv.parser
import yaml

from archiver import jsonio
from archiver.redact.secretfiles.reading import UnusableFileError

Pair = tuple[str, str]
"""The last name of a value, and the value."""
Parse = Callable[[str], Iterator[Pair]]

MAX_VALUES: Final = 20_000
"""Nodes of a document that are looked at, so that references cannot make a small file a large tree."""
_DEEPEST: Final = 60
_YAML = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def dotenv_file(text: str) -> Iterator[Pair]:
    """`NAME=value` lines: `export`, quotes, comments, more than one line, and `${NAME}` both ways."""
    for binding in dotenv.parser.parse_stream(io.StringIO(text)):
        if binding.error:
            raise UnusableFileError(f"line {binding.original.line} is not NAME=value")
    for resolved in (True, False):
        for name, value in dotenv.dotenv_values(stream=io.StringIO(text), interpolate=resolved).items():
            if value:
                yield name, value


_NETRC = re.compile(r"(?:^|\s)(?:password|passwd|account)[ \t\n]+(\"(?:[^\"\\]|\\.)*\"|\S+)", re.DOTALL)
_MACHINE = re.compile(r"(?:^|\s)(?:machine|default)(?:\s|$)")
_MACRO = re.compile(r"(?:^|\n)\s*macdef\b.*?(?:\n\s*\n|\Z)", re.DOTALL)
_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def netrc(text: str) -> Iterator[Pair]:
    """Passwords of machines."""
    text = _COMMENT.sub("", _MACRO.sub("\n", text))
    if text.strip() and _MACHINE.search(text) is None:
        raise UnusableFileError("it names no machine")
    for match in _NETRC.finditer(text):
        value = match[1][1:-1] if match[1][:1] == '"' and len(match[1]) > 1 else match[1]
        yield "password", _ESCAPED.sub(r"\1", value)


_FIELD = re.compile(r"((?:[^:\\]|\\.)*)(?::|$)")


def pgpass(text: str) -> Iterator[Pair]:
    """Lines of `host:port:database:user:password`."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = _FIELD.findall(line)
        if len(fields) < 5:
            raise UnusableFileError(f"line {number} has not five fields")
        yield "password", _ESCAPED.sub(r"\1", fields[4])


def urls(text: str) -> Iterator[Pair]:
    """One URL a line; what of it is secret, whoever takes the value sees."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            if "://" not in line:
                raise UnusableFileError(f"line {number} is no URL")
            yield "password", line.strip()


def ini(text: str) -> Iterator[Pair]:
    """Sections with `name = value`, or no section at all, as npm and Java write it."""
    parser = configparser.ConfigParser(
        interpolation=None, strict=False, allow_no_value=True, delimiters=("=", ":"), default_section="\0"
    )
    if any(line.lstrip().startswith("//") for line in text.splitlines()):  # npm: names hold colons
        parser = configparser.ConfigParser(
            interpolation=None, strict=False, allow_no_value=True, delimiters=("=",), default_section="\0"
        )
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    try:
        parser.read_string(f"[ ]\n{text}")
    except configparser.Error as error:
        raise UnusableFileError(f"it is not in INI form: {type(error).__name__}") from None
    for section in parser.sections():
        for name, value in parser.items(section):
            for line in (value or "").splitlines():
                inner, sign, rest = line.partition("=")  # nested settings, as AWS has them
                nested = bool(sign) and inner.strip().isidentifier()
                yield from ((inner.strip(), rest.strip()),) if nested else ()
            if value:
                yield name.rpartition(":")[2], value


def json_file(text: str) -> Iterator[Pair]:
    """Every string of a JSON document, or of JSON lines, by its key."""
    try:
        documents = [jsonio.loads(text.encode())]
    except ValueError:
        try:
            documents = [jsonio.loads(line.encode()) for line in text.splitlines() if line.strip()]
        except ValueError:
            raise UnusableFileError("it is not JSON") from None
    return walk(documents)


def toml(text: str) -> Iterator[Pair]:
    """Every string of a TOML document by its key."""
    try:
        return walk(tomllib.loads(text))
    except (ValueError, RecursionError):
        raise UnusableFileError("it is not TOML") from None


def yaml_file(text: str) -> Iterator[Pair]:
    """Every string of the YAML documents by its key.

    Nodes are read, not values: so no tag makes an object, and no merge makes a small file a large one.
    """
    plain: dict[int, Any] = {}
    try:
        documents = [_plain(node, plain) for node in yaml.compose_all(text, Loader=_YAML)]
    except (yaml.YAMLError, ValueError, RecursionError):
        raise UnusableFileError("it is not YAML") from None
    if text.strip() and not any(isinstance(document, dict | list) for document in documents):
        raise UnusableFileError("it is not YAML with names and values")
    return walk(documents)


def _plain(node: yaml.Node | None, made: dict[int, Any]) -> Any:
    if isinstance(node, yaml.ScalarNode) or node is None:
        return node.value if node is not None else None
    if id(node) in made:
        return made[id(node)]
    if isinstance(node, yaml.SequenceNode):
        items: list[Any] = []
        made[id(node)] = items
        items.extend(_plain(inner, made) for inner in node.value)
        return items
    fields: dict[str, Any] = {}
    made[id(node)] = fields
    for key, inner in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else "value"
        value = _plain(inner, made)
        fields[name] = value if name not in fields else [fields[name], value]  # a second one counts as well
    return fields


def whole(text: str) -> Iterator[Pair]:
    """A file that is one value."""
    yield "value", text.strip()


def walk(value: Any) -> Iterator[Pair]:
    """Every string of a document with the nearest key above it; pairs of `name` and `value` count as one."""
    seen: set[int] = set()
    stack: list[tuple[str, Any, int]] = [("value", value, 0)]
    looked = 0
    while stack:
        name, node, depth = stack.pop()
        looked += 1
        if looked > MAX_VALUES or depth > _DEEPEST:
            raise UnusableFileError(f"it has more than {MAX_VALUES} values, or is nested too deeply")
        if isinstance(node, str):
            yield name, node
        elif isinstance(node, int) and not isinstance(node, bool):
            yield name, str(node)
        elif isinstance(node, dict | list):
            if id(node) in seen:  # an alias of YAML: it was looked at under its first name
                continue
            seen.add(id(node))
            stack.extend(_children(node, name, depth + 1))


def _children(node: dict[Any, Any] | list[Any], name: str, depth: int) -> Iterator[tuple[str, Any, int]]:
    if isinstance(node, list):
        yield from ((name, inner, depth) for inner in node)
        return
    called = node.get("name")
    for key, inner in node.items():
        paired = key == "value" and isinstance(called, str)
        yield (str(called) if paired else str(key)), inner, depth
