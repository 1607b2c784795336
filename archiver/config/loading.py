"""Find the configuration file, read it, and build the settings; every error names where the value stands.

The file is the one named by `--config` or `ARCHIVER_CONFIG`, else `./archiver.toml`, else
`$XDG_CONFIG_HOME/checkpoint-archiver/archiver.toml`; none is needed. A variable is `ARCHIVER_` with section
and key joined by `__`: `ARCHIVER_STORE__URL`.
"""

from __future__ import annotations

import os
import shlex
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import SettingsError

from archiver.config.explaining import explained, like, variable
from archiver.config.homes import config_home
from archiver.config.paths import absolute, is_file
from archiver.config.settings import PATHS, Settings, file_values, leaves
from archiver.errors import ConfigError

FILE_NAME = "archiver.toml"

_MAX_FILE = 1 << 20
_ANOTHER = "name another one with --config"


def load(
    config: Path | None = None,
    flags: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    without_file: bool = False,
) -> Settings:
    """The settings in force; `config` names the file, `flags` hold sections as given on the command line."""
    path = None if without_file else find_file(config)
    given: dict[str, Any] = {section: dict(values) for section, values in (flags or {}).items() if values}
    from_file = _read(path) if path else {}
    _refuse_unknown_variables()
    token = file_values.set(from_file)
    try:
        settings = Settings(**given)
    except ValidationError as error:
        raise explained(error, path, from_file, given) from None  # it says all that pydantic does
    except SettingsError as error:
        raise ConfigError(
            f"the environment cannot be read as settings: {error}",
            remedy="correct or unset the ARCHIVER_… variable that it names",
        ) from error
    finally:
        file_values.reset(token)
    settings._file = path
    return settings


def find_file(config: Path | None) -> Path | None:
    """The configuration file: the one asked for must exist, the others need not."""
    asked = asked_for(config)
    if asked is not None:
        if not is_file(asked):
            raise ConfigError(
                f"there is no configuration file {asked}",
                remedy=f"`archiver init --config {shlex.quote(str(asked))}` writes one",
            )
        return asked
    here = _here()
    if here is not None:
        _refuse_foreign(here)
        return here
    home = config_home() / FILE_NAME
    return home if is_file(home) else None


def asked_for(config: Path | None) -> Path | None:
    """The file that a flag or else `ARCHIVER_CONFIG` names, whether it is there or not."""
    asked = config or (Path(value) if (value := os.environ.get("ARCHIVER_CONFIG")) else None)
    return None if asked is None else absolute(asked)


def _here() -> Path | None:
    """The file of the current folder; none where that folder was removed or is closed to this user."""
    try:
        here = Path.cwd() / FILE_NAME
        return here if here.is_file() else None
    except OSError:
        return None


def _refuse_foreign(path: Path) -> None:
    """A file found by chance in the current folder says where bundles go, so it must be the caller's own."""
    status = path.stat()
    if status.st_uid not in {os.geteuid(), 0} or status.st_mode & 0o002:
        raise ConfigError(
            f"{path} was found in the current folder, but other users own it or can write to it",
            remedy="look at it; then `chown` and `chmod o-w` it, or name it with --config "
            f"{shlex.quote(str(path))}",
        )


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_FILE + 1)
        if len(data) > _MAX_FILE:
            raise ConfigError(
                f"{path} has more than {_MAX_FILE} bytes: it is no configuration file", remedy=_ANOTHER
            )
        values = tomllib.loads(data.decode("utf-8"))
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}", remedy=f"check its owner and mode, or {_ANOTHER}"
        ) from error
    except RecursionError as error:
        raise ConfigError(f"{path} is nested too deep for a configuration file", remedy=_ANOTHER) from error
    except ValueError as error:  # UnicodeDecodeError and TOMLDecodeError, which says line and column
        raise ConfigError(f"{path} is not TOML: {error}", remedy=f"mend it there, or {_ANOTHER}") from error
    for section, key in PATHS:
        table = values.get(section)
        if isinstance(table, dict) and key in table:
            table[key] = _beside(path.parent, table[key])
    _place_sources(path.parent, values.get("sweep"))
    return values


def _place_sources(folder: Path, table: Any) -> None:
    """The paths of sources lie in tables of their own."""
    sources = table.get("sources") if isinstance(table, dict) else None
    for source in sources if isinstance(sources, list) else ():
        if isinstance(source, dict) and "path" in source:
            source["path"] = _beside(folder, source["path"])


def _beside(folder: Path, value: Any) -> Any:
    """Relative paths of the file are relative to its folder."""
    if isinstance(value, list):
        return [_beside(folder, element) for element in value]
    if not isinstance(value, str) or not value or "://" in value or value.startswith("~"):
        return value
    return str(folder / value)


def _refuse_unknown_variables() -> None:
    """A misspelt variable would otherwise be ignored.

    Only names with `__` are ours: Kubernetes makes variables such as `ARCHIVER_PORT` for a service.
    """
    known = {variable(key) for key, _ in leaves()}
    for name in os.environ:
        if name.startswith("ARCHIVER_") and "__" in name and name not in known:
            raise ConfigError(
                f"environment variable {name}: there is no such setting", remedy=like(name, known)
            )
