"""Values from files that the caller named, and from the files where well-known tools keep credentials."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

from archiver.errors import RedactionUnavailableError
from archiver.redact.exact import ExactValue, secret_names
from archiver.redact.names import Names
from archiver.redact.secretfiles import kinds, values
from archiver.redact.secretfiles.reading import AbsentFileError, UnusableFileError, read

MOST_FILES: Final = 1_000
"""Files that the patterns of one list may name."""
MOST_SECRETS: Final = 2_000
"""Values that one file may give: each is searched for in all that is saved."""
_PLAIN = re.compile(r"[A-Za-z0-9_.\-]{1,60}")

_HOME: Final = (
    *(".aws/credentials", ".aws/config", ".netrc", "_netrc", ".docker/config.json", ".kube/config"),
    *(".npmrc", ".yarnrc.yml", ".pypirc", ".pip/pip.conf", ".config/pip/pip.conf", ".pgpass", ".my.cnf"),
    *(".git-credentials", ".config/git/credentials", ".config/gh/hosts.yml", ".config/glab-cli/config.yml"),
    *(".config/hub", ".config/gcloud/application_default_credentials.json", ".azure/msal_token_cache.json"),
    *(".azure/accessTokens.json", ".azure/service_principal_entries.json"),
    *(".terraform.d/credentials.tfrc.json", ".cargo/credentials.toml", ".cargo/credentials"),
    *(".gem/credentials", ".composer/auth.json", ".config/composer/auth.json", ".databrickscfg", ".boto"),
    *(".s3cfg", ".vault-token", ".cache/huggingface/token", ".codex/auth.json", ".claude/.credentials.json"),
    *(".gemini/oauth_creds.json", ".local/share/opencode/auth.json", ".ssh/id_rsa", ".ssh/id_ecdsa"),
    *(".ssh/id_ed25519", ".ssh/id_dsa"),
)
"""Where tools keep credentials, below the home folder."""
_FOLDER: Final = (".env", ".env.local", ".npmrc", ".netrc")
"""What a project keeps in its folder."""
_VARIABLES: Final = {
    "AWS_SHARED_CREDENTIALS_FILE": "",
    "AWS_CONFIG_FILE": "",
    "NETRC": "",
    "DOCKER_CONFIG": "config.json",
    "KUBECONFIG": "",
    "NPM_CONFIG_USERCONFIG": "",
    "PIP_CONFIG_FILE": "",
    "PGPASSFILE": "",
    "GOOGLE_APPLICATION_CREDENTIALS": "",
    "CLOUDSDK_CONFIG": "application_default_credentials.json",
    "GH_CONFIG_DIR": "hosts.yml",
    "CARGO_HOME": "credentials.toml",
    "CODEX_HOME": "auth.json",
    "CLAUDE_CONFIG_DIR": ".credentials.json",
}
"""Variables that move such a file, and its name where the variable names the folder."""


def named(paths: Iterable[Path]) -> list[ExactValue]:
    """The secrets of files that the caller named; a path may be a pattern such as `conf/*.env`.

    Raises `RedactionUnavailableError` for a file that is not there, cannot be read, or is not in its form,
    and for a pattern that no file fits: what cannot be searched for must not be thought safe.
    """
    found: list[ExactValue] = []
    for path in paths:
        for file in _files(path):
            try:
                found += _values(file, str(file))
            except UnusableFileError as error:
                raise RedactionUnavailableError(
                    f"the values of the secret file {file} cannot be searched for: {error}",
                    remedy="mend the file, or take it out of redaction.secret_files",
                ) from error
    return found


def well_known(home: Path | None, folder: Path | None, environ: Mapping[str, str]) -> list[ExactValue]:
    """The secrets of the user's own credential files, and of `.env` in `folder`.

    Absent ones do not matter; one that cannot be read is given as a value that says why it is missing.
    """
    found: list[ExactValue] = []
    for path in dict.fromkeys(_places(home, folder, environ)):
        shown = _shown(path, home)
        try:
            found += _values(path, shown)
        except AbsentFileError:
            continue
        except UnusableFileError as error:
            found.append(ExactValue(shown, "", missing=str(error)))
    return found


def _places(home: Path | None, folder: Path | None, environ: Mapping[str, str]) -> Iterator[Path]:
    if home is not None:
        yield from (home / name for name in _HOME)
    for variable, name in _VARIABLES.items():
        for place in environ.get(variable, "").split(os.pathsep if variable == "KUBECONFIG" else "\0"):
            if place.startswith("/"):
                yield Path(place, name)
    if folder is not None:
        yield from (folder / name for name in _FOLDER)


def _shown(path: Path, home: Path | None) -> str:
    # As texts: this is done at each save, for files of which few are there, and `relative_to` takes its time.
    text, inside = str(path), f"{home}{os.sep}"
    return f"~/{text.removeprefix(inside)}" if home is not None and text.startswith(inside) else text


def _files(path: Path) -> list[Path]:
    """The file of that name; else those that fit it as a pattern."""
    text = str(path)
    if os.path.lexists(path) or not glob.has_magic(text):
        return [path]
    fitting = glob.iglob(text, recursive=True, include_hidden=True)  # noqa: PTH207 - the pattern is absolute
    found = sorted(islice(fitting, MOST_FILES + 1))
    files = [Path(one) for one in found if not Path(one).is_dir()]
    if not files or len(found) > MOST_FILES:
        count = "no file" if not files else f"more than {MOST_FILES} files"
        raise RedactionUnavailableError(
            f"{count} fit{'s' if not files else ''} the pattern {path} of redaction.secret_files",
            remedy="mend the pattern, or take it out of redaction.secret_files",
        )
    return files


def _values(path: Path, shown: str) -> list[ExactValue]:
    return values_of(read(path), path, shown)


def values_of(text: str, path: Path, shown: str) -> list[ExactValue]:
    """The secrets of a file of credentials, whose form `path` tells; `UnusableFileError` if it has none."""
    names = secret_names()
    found: dict[str, ExactValue] = {}
    for name, value in kinds.parser_of(path, text)(text) if text.strip() else ():
        for called, secret in values.secrets_in(name, value, names, eager=True):
            label = called if _PLAIN.fullmatch(called) and not _is_itself(called, names) else "value"
            found.setdefault(secret, ExactValue(f"{label} in {shown}", secret, guessed=True))
        if len(found) > MOST_SECRETS:
            raise UnusableFileError(f"it holds more than {MOST_SECRETS} secrets")
    return list(found.values())


def _is_itself(name: str, names: Names) -> bool:
    """True for a name that could be a secret: a report must not show it."""
    return any(values.secrets_in("", name, names, eager=True))
