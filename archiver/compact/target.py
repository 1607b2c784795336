"""What a tool call acts on, read from the names of its arguments: a file, a command or something else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from archiver import jsonio
from archiver.errors import NotSerialisableError
from archiver.transcripts.dialect import Call

Kind = Literal["read", "write", "command", "other"]

_FILE_KEYS: Final = ("file_path", "notebook_path", "path", "filename", "file", "filepath", "target_file")
_COMMAND_KEYS: Final = ("command", "cmd", "script")
_WRITE_KEYS: Final = frozenset(
    {
        "content", "contents", "file_text", "new_string", "new_str", "new_source", "insert_text", "edits",
        "old_string", "old_str", "replacement", "patch", "diff", "code_edit",
    }
)  # fmt: skip
_SUBCOMMANDS: Final = frozenset(
    {"view", "create", "str_replace", "insert", "undo_edit", "delete", "rename", "write", "read"}
)
_READ_SUBCOMMANDS: Final = frozenset({"view", "read"})
_RANGE_KEYS: Final = frozenset({"offset", "limit", "view_range", "start_line", "end_line", "pages", "range"})
_NARROWING_KEYS: Final = frozenset({"pattern", "query", "regex", "glob"})
_LABEL_KEYS: Final = (
    "query", "pattern", "url", "description", "prompt", "name", "id", "task_id", "subject", "skill",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Target:
    """What one call acts on.

    `label` is what a person reads. `key` is equal for two calls of which the later makes the earlier result
    out of date; a read of a part of a file has a `key` of its own and the `whole` of the file beside it.
    Empty keys are equal to none.
    """

    kind: Kind
    label: str
    key: bytes
    whole: bytes

    @property
    def is_part(self) -> bool:
        return self.key != self.whole


def target_of(call: Call) -> Target:
    """The target of a call; arguments of unexpected shape make a target of kind `other`."""
    arguments = call.arguments
    if not isinstance(arguments, Mapping):
        label = arguments if isinstance(arguments, str) else ""
        return _other(call.name, label, arguments)
    command = _command(arguments)
    file = _first(arguments, _FILE_KEYS)
    if file and (not command or command in _SUBCOMMANDS) and not _NARROWING_KEYS & arguments.keys():
        return _file(arguments, file, command)
    if command:
        return _whole("command", command, _digest("command", command))
    return _other(call.name, _first(arguments, (*_LABEL_KEYS, *_FILE_KEYS)), arguments)


def _command(arguments: Mapping[str, Any]) -> str:
    for key in _COMMAND_KEYS:
        value = arguments.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            return " ".join(value)
    return ""


def _file(arguments: Mapping[str, Any], file: str, subcommand: str) -> Target:
    whole = _digest("file", file)
    writes = subcommand not in _READ_SUBCOMMANDS if subcommand else bool(_WRITE_KEYS & arguments.keys())
    if writes:
        return Target("write", file, whole, whole)
    part = {key: arguments[key] for key in sorted(_RANGE_KEYS & arguments.keys())}
    return Target("read", file, _digest("part", [file, part]) if part else whole, whole)


def _other(name: str, label: str, arguments: Any) -> Target:
    return _whole("other", label, _digest("other", [name, arguments]))


def _whole(kind: Kind, label: str, key: bytes) -> Target:
    return Target(kind, label, key, key)


def _first(arguments: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    for key in keys:
        value = arguments.get(key)
        if isinstance(value, str) and value:
            return value
    return ""


def _digest(word: str, value: Any) -> bytes:
    """16 bytes that stand for a value: enough to tell targets apart, small enough to keep one a call."""
    try:
        data = jsonio.canonical([word, value])
    except (NotSerialisableError, RecursionError):  # nested too deeply
        return b""
    except TypeError:  # lone surrogates and integers beyond 64 bits
        data = jsonio.dumps([word, value])
    return hashlib.sha256(data).digest()[:16]
