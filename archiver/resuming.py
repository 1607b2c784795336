"""How to go on from a restored checkpoint, in the harness that wrote its transcript."""

from __future__ import annotations

import re
import shlex
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Final

from archiver.model import Checkpoint, Transcript
from archiver.redact import contains_placeholder
from archiver.transcripts import get_dialect

_SESSION: Final = re.compile(r"[0-9A-Za-z_-]{1,100}")
_ROLLOUT: Final = re.compile(r"rollout-(\d{4})-(\d\d)-(\d\d)T[0-9-]{8}-[0-9A-Za-z_-]{1,100}\.jsonl")
_PROJECT: Final = "<folder of the project>"
_AS_IT_IS: Final = (
    "cp -n leaves a session of that name that is there as it is: move it away first if it is older"
)


def next_steps(checkpoint: Checkpoint, folder: Path, first: Path) -> tuple[str, ...]:
    """What to do with the transcript in `folder`, whose main part is the file `first`."""
    dialect = checkpoint.transcript.dialect
    if dialect == "claude-code":
        return _claude_code(checkpoint, folder, first)
    if dialect == "codex" and (steps := _codex(checkpoint, first)):
        return steps
    if any(part.nested_at for part in checkpoint.transcript.parts):
        return (
            f"{first} holds many conversations: send what the one that goes on holds with its next request",
        )
    if dialect in ("anthropic-messages", "openai-chat"):
        return (f"send the messages of {first} with the next request",)
    if dialect == "openai-responses":
        return (f"send the items of {first} as `input` of the next request",)
    return (f"the transcript is in {first}",)


def _claude_code(checkpoint: Checkpoint, folder: Path, first: Path) -> tuple[str, ...]:
    """Claude Code finds a session by the name of its file."""
    transcript = checkpoint.transcript
    session = _newest_session(transcript) or PurePosixPath(transcript.parts[0].name).stem
    slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in _path(checkpoint))
    target = f"~/.claude/projects/{slug or _PROJECT}"
    name = f"{session}.jsonl"
    rename = ""
    if first.name != name and _SESSION.fullmatch(session):
        rename = f" && mv -n {target}/{shlex.quote(first.name)} {target}/{name}"
    return (
        f"mkdir -p {target} && cp -Rn {shlex.quote(str(folder))}/. {target}/{rename}",
        f"cd {_project(checkpoint)} && claude --resume {shlex.quote(session)}",
        _AS_IT_IS,
    )


def _newest_session(transcript: Transcript) -> str | None:
    """The newest session id that the main part states: the one its harness resumes."""
    facts = get_dialect(transcript.dialect).facts
    found = None
    for item in transcript.parts[0].items:
        found = facts(item).session or found
    return found


def _codex(checkpoint: Checkpoint, file: Path) -> tuple[str, ...]:
    """Codex finds a session by the id in the name of its file, and reads no flat ones any more."""
    head = next(islice(checkpoint.transcript.parts[0].items, 1), None)
    stated = get_dialect("codex").facts(head)
    if stated.session is None or not isinstance(head, dict) or "payload" not in head:
        return ()
    if not _SESSION.fullmatch(stated.session):
        return ()
    started = stated.at or checkpoint.created_at
    found = _ROLLOUT.fullmatch(file.name)
    name = file.name if found else f"rollout-{started:%Y-%m-%dT%H-%M-%S}-{stated.session}.jsonl"
    day = "/".join(found.groups()) if found else f"{started:%Y/%m/%d}"
    target = f'"${{CODEX_HOME:-$HOME/.codex}}"/sessions/{day}'
    return (
        f"mkdir -p {target} && cp -n {shlex.quote(str(file))} {target}/{name}",
        f"cd {_project(checkpoint)} && codex resume {stated.session}",
        _AS_IT_IS,
    )


def _project(checkpoint: Checkpoint) -> str:
    return shlex.quote(_path(checkpoint) or _PROJECT)


def _path(checkpoint: Checkpoint) -> str:
    """The folder of the project; empty where it is not known, or holds a placeholder and so is no path."""
    path = checkpoint.workspace.path or ""
    return "" if contains_placeholder(path) else path
