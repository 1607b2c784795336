"""Hooks in a settings file: the change that is shown first, and then made."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from archiver.config.homes import config_home
from archiver.config.loading import FILE_NAME
from archiver.errors import ArchiverError, RefusedError
from archiver.hooks import editing, settings_file
from archiver.hooks.settings_file import Scope, SettingsFile
from archiver.hooks.showing import command_shown, shown


@dataclass(frozen=True, slots=True)
class Change:
    """A settings file, and what it would become."""

    file: SettingsFile
    before: str
    after: str

    @property
    def needed(self) -> bool:
        return self.after != self.before

    def diff(self) -> list[str]:
        """The change as a unified diff, without line ends; credentials that stand near it are replaced."""
        name = str(self.file.path)
        old = [] if self.file.data is None else self.before.splitlines()
        made = list(
            difflib.unified_diff(old, self.after.splitlines(), f"{name} (now)", f"{name} (then)", lineterm="")
        )
        return shown(made) if old and made else made

    def make(self) -> None:
        """Write it; `RefusedError` if the file is not what it was."""
        settings_file.write(self.file, self.after)


@dataclass(frozen=True, slots=True)
class Installed:
    """What a settings file says of our hooks."""

    scope: Scope
    path: Path
    state: Literal["installed", "partly", "off", "no", "unreadable"]
    """`off`: they are there, and the file disables all hooks."""
    commands: tuple[str, ...] = ()
    """Different commands of ours, free of credentials; more than one only where somebody edited the file."""
    missing: tuple[str, ...] = ()
    """Events without a hook of ours, where others have one."""
    error: str = ""


def install(scope: Scope, path: Path, command: str) -> Change:
    """What it takes to have the hooks in a settings file."""
    return _change(scope, path, command)


def remove(scope: Scope, path: Path) -> Change:
    """What it takes to have none of our hooks there."""
    return _change(scope, path, None)


def _change(scope: Scope, path: Path, command: str | None) -> Change:
    file = settings_file.read(scope, path)
    before = file.text
    try:
        if command is None:
            return Change(file, before, before if file.data is None else editing.removed(before))
        return Change(file, before, editing.installed(before, command))
    except RefusedError as error:
        by_hand = "" if command is None else f"; or put this in by hand:\n{editing.snippet(command)}"
        raise RefusedError(
            f"{path} was left as it is: {error}", remedy=f"mend the file, then run this again{by_hand}"
        ) from error


def look(scope: Scope, path: Path) -> Installed:
    """What a settings file says of our hooks; what cannot be read is told, not raised."""
    try:
        text = settings_file.read(scope, path).text
        found = editing.commands(text)
        off = editing.all_off(text)
    except ArchiverError as error:
        return Installed(scope, path, "unreadable", error=str(error))
    if not found:
        return Installed(scope, path, "no")
    missing = tuple(event for event in editing.EVENTS if event not in found)
    commands = tuple(dict.fromkeys(map(command_shown, found.values())))
    return Installed(scope, path, "off" if off else "partly" if missing else "installed", commands, missing)


def carried(config: Path | None) -> Path | None:
    """The configuration that a hook has to be told: none where it finds the same one by itself."""
    if config is None or config == config_home() / FILE_NAME:
        return None
    return config
