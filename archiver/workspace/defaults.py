"""What is ignored unless asked for: what a command makes again, and nothing that anybody has written.

A name that people also give to folders of their own counts only where something beside it says what it is.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Default(NamedTuple):
    """A pattern in gitignore syntax, and why what it fits need not be carried."""

    pattern: str
    why: str


class Marked(NamedTuple):
    """A folder by its name that is ignored where `marker` lies, a path from the folder around it."""

    name: str
    marker: str
    why: str


PATTERNS: Final = (
    Default("node_modules/", "packages; the lock file says which"),
    Default(
        ".venv/", "a virtual environment of Python; it holds paths of its machine and works nowhere else"
    ),
    Default("__pycache__/", "compiled modules"),
    Default(".mypy_cache/", "made again by the next run of mypy"),
    Default(".pytest_cache/", "made again by the next run of pytest"),
    Default(".ruff_cache/", "made again by the next run of ruff"),
    Default(".tox/", "environments that tox makes"),
    Default(".nox/", "environments that nox makes"),
    Default(".cache/", "a cache by its name, as of the XDG folders"),
    Default(".gradle/", "state of the build that Gradle makes again"),
    Default(".terraform/", "providers and modules that `terraform init` fetches"),
    Default(".DS_Store", "how a folder was shown on a Mac"),
    Default(".*.sw[op]", "swap files of vim: they hold pieces of open files and are of no use elsewhere"),
    Default(".#*", "locks of Emacs: links that lead nowhere"),
)

MARKED: Final = (
    Marked("target", "Cargo.toml", "what Cargo builds; the name alone says nothing"),
    Marked("venv", "venv/pyvenv.cfg", "a virtual environment of Python, by the file that makes it one"),
    Marked("env", "env/pyvenv.cfg", "the same"),
)

OWN_FILE: Final = ".archiverignore"
"""In the root of a folder: more patterns."""
REPOSITORY: Final = ".git"
"""The history of a repository: left out by name, with a word, because it is work."""
