"""Two savers of one history, and all that the bundles of each hold."""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import pytest

from archiver import pack, sealing
from archiver.model import Member
from archiver.model.workspace import TreeEntry
from archiver.redact.members import blocks
from loop.test_remembered import Steps, password

Table = dict[str, bytes]
PASSWORDS = 3
_NONE = pack.Kept()
_WORDS = '"abc def", ' * 9_000
"""Of an output that becomes an artifact."""


class Held:
    """The members of each bundle with their bytes, those that lie in a base too."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._bytes: dict[str, bytes] = {}
        self.last: Table = {}
        packing = pack.pack

        def noted(members: Any, *given: Any, base: Any = None, kept: Any = _NONE, **how: Any) -> Any:
            self.last = {one.path: self._read(one) for one in members.value}
            self.last |= {path: self._bytes[base.table[path][1]] for path in kept.paths}
            return packing(members, *given, base=base, kept=kept, **how)

        monkeypatch.setattr(sealing.pack, "pack", noted)

    def _read(self, member: Member) -> bytes:
        return self._bytes.setdefault(member.sha256, b"".join(blocks(member)))


def tree_of(table: Table) -> dict[str, TreeEntry]:
    """The lines of the tree that count."""
    lines: dict[str, TreeEntry] = {}
    for path in sorted(path for path in table if path.startswith("workspace/tree/")):
        for line in table[path].splitlines(keepends=True):
            entry = TreeEntry.parse(line)
            lines[entry.path] = entry
    return {path: entry for path, entry in lines.items() if entry.type != "gone"}


def restored(table: Table) -> tuple[Any, ...]:
    """What a restore makes of them, whatever the members are called."""
    tree = tree_of(table)
    objects = {path: data for path, data in table.items() if path.startswith("workspace/objects/")}
    artifacts = {path: data for path, data in table.items() if path.startswith("artifacts/")}
    state = json.loads(table["checkpoint.json"])
    text, whole = (_text(table, state.get(name)) for name in ("transcript", "full_transcript"))
    return tree, objects, artifacts, text, whole


def _text(table: Table, transcript: Any) -> bytes:
    parts = transcript["parts"] if transcript else ()
    return b"".join(table[path] for part in parts for path in part["segments"])


def forms(value: str) -> Iterable[bytes]:
    yield value.encode()
    yield "".join(f"\\u{ord(sign):04x}" for sign in value).encode()
    yield base64.b64encode(value.encode())[:-4]


def opened(data: bytes) -> bytes:
    if data[:2] == b"\x1f\x8b":
        return gzip.decompress(data)
    if data[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return b"".join(map(archive.read, archive.namelist()))
    return data


def secrets_in(table: Table, known: Collection[bytes]) -> set[tuple[str, str]]:
    """Known passwords, and the members in which they stand."""
    values = [value for value in map(password, range(PASSWORDS)) if value.encode() in known]
    return {
        (value, path)
        for path, data in table.items()
        for value in values
        if value in path or any(form in opened(data) for form in forms(value))
    }


class World(Steps):
    """A conversation and a folder, in which secrets stand bare, wrapped, and told."""

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed)
        self.folder = folder
        self.note, self.objective = "", "Go on."
        for number in range(25):
            place = folder / f"part{number % 3}"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"file{number}.txt").write_text(f"text {number}\n" * 60)

    def secret(self) -> str:
        return password(self.chance.randrange(PASSWORDS))

    def edit(self) -> str:
        kind = self.chance.choice(sorted(_EDITS))
        _EDITS[kind](self, self.folder, self.secret(), self.chance.randrange(4))
        return kind


def _clear(path: Path) -> Path:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    return path


def bare(_: World, folder: Path, value: str, number: int) -> None:
    _clear(folder / f"bare{number}.txt").write_text(f"seen {value} there\n" * 3)


def escaped(_: World, folder: Path, value: str, number: int) -> None:
    text = "".join(f"\\u{ord(sign):04x}" for sign in value)
    _clear(folder / f"doc{number}.json").write_text(f'{{\n "a": "{text}"\n}}\n')


def zipped(_: World, folder: Path, value: str, number: int) -> None:
    with zipfile.ZipFile(_clear(folder / f"pack{number}.zip"), "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("inner.txt", f"seen {value} there\n")


def gzipped(_: World, folder: Path, value: str, number: int) -> None:
    _clear(folder / f"log{number}.gz").write_bytes(gzip.compress(f"seen {value} there\n".encode(), mtime=0))


def encoded(_: World, folder: Path, value: str, number: int) -> None:
    _clear(folder / f"coded{number}").write_bytes(base64.b64encode(value.encode()) + b"\n")


def binary(_: World, folder: Path, value: str, number: int) -> None:
    _clear(folder / f"bytes{number}").write_bytes(b"\0\1\2" + value.encode() + b"\xff")


def named(_: World, folder: Path, value: str, number: int) -> None:
    _clear(folder / f"n{number}-{value}").write_text("name\n")


def unnamed(_: World, folder: Path, _value: str, number: int) -> None:
    for path in folder.glob(f"n{number}-*"):
        path.unlink()


def linked(_: World, folder: Path, value: str, number: int) -> None:
    _clear(folder / f"link{number}").symlink_to(f"to/{value}")


def relinked(_: World, folder: Path, _value: str, number: int) -> None:
    _clear(folder / f"link{number}").symlink_to("nowhere")


def told(_: World, folder: Path, value: str, number: int) -> None:
    _clear(folder / f"tell{number}.ini").write_text(f'password = "{value}"\n')


def untold(_: World, folder: Path, _value: str, number: int) -> None:
    _clear(folder / f"tell{number}.ini")


def env(_: World, folder: Path, value: str, number: int) -> None:
    path = _clear(folder / (".env", "x.env", ".npmrc", "part0/.env")[number])
    path.write_text(f"LABEL={value}\n")


def env_other(_: World, folder: Path, _value: str, number: int) -> None:
    path = _clear(folder / (".env", "x.env", ".npmrc", "part0/.env")[number])
    if number % 2:
        path.mkdir()
    else:
        path.symlink_to("nowhere")


def env_gone(_: World, folder: Path, _value: str, number: int) -> None:
    _clear(folder / (".env", "x.env", ".npmrc", "part0/.env")[number])


def pipe(_: World, folder: Path, value: str, number: int) -> None:
    for path in folder.glob("password=*"):
        path.unlink()
    if number:
        os.mkfifo(folder / f"password={value}")


def note(world: World, _folder: Path, value: str, number: int) -> None:
    world.note = f"DB_PASSWORD={value}" if number else ""


def objective(world: World, _folder: Path, value: str, number: int) -> None:
    world.objective = f"use {value} then" if number else "Go on."


def bare_turn(world: World, _folder: Path, value: str, _number: int) -> None:
    world.messages.append({"role": "user", "content": f"try {value} now"})


def telling_turn(world: World, _folder: Path, value: str, _number: int) -> None:
    world.messages.append({"role": "user", "content": f"DB_PASSWORD={value}"})


def output(world: World, _folder: Path, value: str, number: int) -> None:
    text = "".join(f"\\u{ord(sign):04x}" for sign in value)
    inner = f'{{"rows": [{_WORDS} "{text if number % 2 else value}"]}}'
    world._number += 1
    call = f"toolu_{world._number:08d}"
    use = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "dump"}}
    world.messages += [
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": inner}]},
    ]


def plain(world: World, folder: Path, _value: str, number: int) -> None:
    path = folder / f"part{number % 3}" / f"file{world.chance.randrange(25)}.txt"
    _clear(path).write_text(world.words(30))


def touched(_: World, folder: Path, _value: str, number: int) -> None:
    for path in sorted((folder / f"part{number % 3}").glob("*.txt"))[:3]:
        os.utime(path, ns=(number, number))


_ALL: tuple[Callable[[World, Path, str, int], None], ...] = (
    bare, escaped, zipped, gzipped, encoded, binary, named, unnamed, linked, relinked, told, untold, env,
    env_other, env_gone, pipe, note, objective, bare_turn, telling_turn, output, plain, touched,
)  # fmt: skip
_EDITS = {one.__name__: one for one in _ALL}
