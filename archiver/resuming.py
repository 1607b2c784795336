"""How to go on from a restored checkpoint, in the harness that wrote its transcript.

Steps are comments and commands for a shell, the last one the command to go on with. Whatever of the run
stands in them is quoted, so that a copy of the text does what it says, and nothing of the run can be an
option. Comments too hold nothing that a shell would act on: at a prompt zsh takes them for commands.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Final

from archiver import jsonio, members
from archiver.model import Checkpoint, Items, Transcript, TranscriptPart
from archiver.redact import contains_placeholder
from archiver.safetext import shorten
from archiver.shellwords import word
from archiver.transcripts import get_dialect
from archiver.transcripts.dialect import Facts

_SESSION: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")
"""An id that may be an argument and a file name; one that begins with `-` would be an option."""
_ROLLOUT: Final = re.compile(
    r"rollout-([0-9]{4})-([0-9]{2})-([0-9]{2})T[0-9-]{8}-([0-9A-Za-z_-]{1,100})\.jsonl"
)
_AGENT: Final = re.compile(r"agent-[^/]+\.jsonl")
_AGENTS: Final = "subagents"
_PROJECTS: Final = '"${CLAUDE_CONFIG_DIR:-$HOME/.claude}"/projects'
_LONGEST_SLUG: Final = 200
"""Characters after which Claude Code puts a digest in place of the rest."""
_MOST_FOLDERS: Final = 20
_MOST_NAMED: Final = 10
_AS_IT_IS: Final = (
    "# cp -n leaves a session of that name that is there as it is: move it away first if it is older"
)
_CONFIGURATION: Final = (".claude", ".codex", ".mcp.json", "CLAUDE.md", "CLAUDE.local.md", "AGENTS.md")
"""What harnesses read in the folder that they are started in: hooks, servers to start, instructions."""
_CONFIGURES: Final = re.compile(
    r"(^|/)(\.claude|\.codex|\.mcp\.json|\.envrc|\.git|\.vscode|\.cursor|settings(\.local)?\.json|config\.toml"
    r"|hooks(\.json)?|(CLAUDE|AGENTS|GEMINI|MEMORY)(\.[^/]*)?\.md)(/|$)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class GoingOn:
    """What to do, the last step last, and what to be careful with."""

    steps: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()


def going_on(checkpoint: Checkpoint, folder: Path, paths: Sequence[PurePosixPath]) -> GoingOn:
    """What to do with the transcript in `folder`, whose parts lie there at `paths`, the main one first."""
    if not paths:
        return GoingOn(
            tuple(_look("there is no transcript: go on from this state", folder.parent / members.STATE))
        )
    steps = tuple(_steps(checkpoint, folder, paths))
    return GoingOn(steps, (*_of_names(paths), *_of_project(checkpoint, steps)))


def _steps(checkpoint: Checkpoint, folder: Path, paths: Sequence[PurePosixPath]) -> Iterator[str]:
    dialect = checkpoint.transcript.dialect
    first = folder / paths[0]
    session = _session(checkpoint.transcript)
    if dialect == "claude-code":
        yield from _claude_code(checkpoint, folder, paths, session)
    elif dialect == "codex" and session and _is_rollout(checkpoint.transcript):
        yield from _codex(checkpoint, first, session)
    elif any(part.nested_at for part in checkpoint.transcript.parts):
        yield from _look("of these conversations, send the one that goes on with its next request", first)
    elif dialect in ("anthropic-messages", "openai-chat"):
        yield from _look("send these messages with the next request", first)
    elif dialect == "openai-responses":
        yield from _look("send these items as the input of the next request", first)
    else:
        yield from _look("this is the transcript; no program is known that goes on with it", first)


def _look(what: str, file: Path) -> Iterator[str]:
    """For whoever goes on with a program of their own: the file, shown so that it steers no terminal."""
    yield f"# {what}"
    yield f"cat -v {word(str(file))}"


def _claude_code(
    checkpoint: Checkpoint, folder: Path, paths: Sequence[PurePosixPath], session: str | None
) -> Iterator[str]:
    """Claude Code finds a session by the name of its file, in a folder named after that of the project."""
    stem = PurePosixPath(checkpoint.transcript.parts[0].name).stem
    session = session or (stem if _SESSION.fullmatch(stem) else None)
    first = word(str(folder / paths[0]))
    if _is_of_sub_agent(checkpoint.transcript.parts[0]):
        yield from _look(
            "this is what a sub-agent did, and claude resumes whole sessions only", folder / paths[0]
        )
        return
    if session is None:
        yield from _look("this session has no id that claude could be told to resume", folder / paths[0])
        return
    yield _AS_IT_IS
    path = _path(checkpoint)
    slug = _slug(path) if path else ""
    if not path:
        yield from _elsewhere(checkpoint)
        target = '"$project"'
        begin = f"project={_PROJECTS}/\"$(pwd -P | sed 's/[^A-Za-z0-9]/-/g')\" && mkdir -p {target}"
    elif len(slug) > _LONGEST_SLUG:
        yield "# Claude Code itself names the folder of this project: start and end claude there once"
        target = '"$project"'
        begin = f"project=$(ls -td {_PROJECTS}/{slug[:_LONGEST_SLUG]}-* | head -n 1) && mkdir -p {target}"
    else:
        target = f"{_PROJECTS}/{slug}"
        begin = f"mkdir -p {target}"
    copies = [f"cp -n {first} {target}/{session}.jsonl", *_agents(folder, paths, target)]
    yield " && ".join([begin, *copies])
    yield f"{_in(path)}claude --resume {session}"


def _agents(folder: Path, paths: Sequence[PurePosixPath], target: str) -> Iterator[str]:
    """Files of sub-agents go where the session looks for them; nothing else of the transcript is copied."""
    names = {path.parts[0]: None for path in paths[1:] if _is_agent(path) and len(path.parts) == 3}
    for name in islice(names, _MOST_FOLDERS):
        place = f"{target}/{word(name)}"
        yield f"mkdir -p {place} && cp -Rn {word(str(folder / name / _AGENTS))} {place}/"
    if any(_is_agent(path) and len(path.parts) == 1 for path in paths[1:]):
        yield f"cp -n {word(str(folder))}/agent-*.jsonl {target}/"


def _is_agent(path: PurePosixPath) -> bool:
    *above, name = path.parts
    return _AGENT.fullmatch(name) is not None and (
        not above or (len(above) == 2 and above[1] == _AGENTS and not above[0].startswith("-"))
    )


def _slug(path: str) -> str:
    """Claude Code's name for the folder of a project; it counts as JavaScript does, in units of UTF-16."""
    return "".join(
        c if c.isascii() and c.isalnum() else "-" * (1 + (ord(c) > 0xFFFF)) for c in path.rstrip("/") or "/"
    )


def _session(transcript: Transcript) -> str | None:
    """The newest session id that the main part states: the one its harness resumes."""
    facts = get_dialect(transcript.dialect).facts
    if transcript.dialect == "codex":
        head = next(islice(transcript.parts[0].items, 1), None)
        found = facts(head).session
    elif transcript.dialect == "claude-code":
        found = _newest(transcript.parts[0].items, facts)
    else:
        return None
    return found if found is not None and _SESSION.fullmatch(found) else None


def _newest(items: Items, facts: Callable[[Any], Facts]) -> str | None:
    """The session that the last line to state one states; of a long session only that line is looked into."""
    last = None
    for line in items.lines():
        if b'"sessionId"' in line:
            last = line
    if last is not None and (found := facts(jsonio.loads(last)).session):
        return found
    found = None  # there it was a word of some text, or it is written otherwise
    for item in items.values():
        found = facts(item).session or found
    return found


def _is_of_sub_agent(part: TranscriptPart) -> bool:
    """Whether nothing in it is of the session itself, whose id all the same stands in it."""
    if _AGENT.fullmatch(PurePosixPath(part.name).name):
        return True
    turns = (
        item.get("isSidechain") is True
        for item in part.items
        if isinstance(item, dict) and item.get("type") in ("user", "assistant")
    )
    return next(turns, False) and all(turns)


def _is_rollout(transcript: Transcript) -> bool:
    """Codex reads no flat ones any more."""
    head = next(islice(transcript.parts[0].items, 1), None)
    return isinstance(head, dict) and "payload" in head


def _codex(checkpoint: Checkpoint, file: Path, session: str) -> Iterator[str]:
    """Codex finds a session by the id in the name of its file."""
    head = next(islice(checkpoint.transcript.parts[0].items, 1), None)
    started = get_dialect("codex").facts(head).at or checkpoint.created_at
    found = _ROLLOUT.fullmatch(file.name)
    if found and found[4] != session:
        found = None  # codex looks for the id in the name
    name = file.name if found else f"rollout-{started:%Y-%m-%dT%H-%M-%S}-{session}.jsonl"
    day = "/".join(found.groups()[:3]) if found else f"{started:%Y/%m/%d}"
    target = f'"${{CODEX_HOME:-$HOME/.codex}}"/sessions/{day}'
    yield _AS_IT_IS
    path = _path(checkpoint)
    if not path:
        yield from _elsewhere(checkpoint)
    yield f"mkdir -p {target} && cp -n {word(str(file))} {target}/{name}"
    yield f"{_in(path)}codex resume {session}"


def _elsewhere(checkpoint: Checkpoint) -> Iterator[str]:
    """Where to be, where the checkpoint does not name a folder that a shell here could go to."""
    named = checkpoint.workspace.path or ""
    known = named and not contains_placeholder(named)
    where = f"which was {word(shorten(named, 200))}" if known else "which the checkpoint does not name"
    yield f"# do this in the folder of the project, {where}"


def _in(path: str) -> str:
    return f"cd {word(path)} && " if path else ""


def _path(checkpoint: Checkpoint) -> str:
    """The folder of the project; empty where it is not known or no absolute path of this kind of system.

    One that holds a placeholder is no path, and neither is one that no program could be given.
    """
    path = checkpoint.workspace.path or ""
    if not path.startswith("/") or "\0" in path or contains_placeholder(path):
        return ""
    return path


def _of_names(paths: Sequence[PurePosixPath]) -> Iterator[str]:
    """Files of the transcript that a harness would take for its configuration where it finds them."""
    names = [str(path) for path in paths if _CONFIGURES.search(str(path))]
    if names:
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        yield (
            "the transcript holds files with names of configuration or instructions, which the run chose: "
            f"{', '.join(names[:_MOST_NAMED])}{more}; start nothing in that folder, and copy none of them"
        )


def _of_project(checkpoint: Checkpoint, steps: Sequence[str]) -> Iterator[str]:
    """The harness that goes on obeys what lies in the run's own folder, where the run could write."""
    path = _path(checkpoint)
    last = steps[-1]
    if not path or not last.startswith("cd "):
        return
    there = [name for name in _CONFIGURATION if os.path.lexists(f"{path}/{name}")]
    found = f"; there are {', '.join(there)}" if there else ""
    yield (
        "the last command starts the harness in the run's own folder, whose hooks, servers and instructions "
        f"it then obeys: look at them first{found}"
    )
