"""Where harnesses keep their sessions.

Claude Code   <CLAUDE_CONFIG_DIR, or ~/.claude>/projects/<slug of the folder>/<session>.jsonl
Codex         <CODEX_HOME, or ~/.codex>/sessions/<year>/<month>/<day>/rollout-<time>-<session>.jsonl
              <CODEX_HOME, or ~/.codex>/archived_sessions/rollout-<time>-<session>.jsonl
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from archiver.config.paths import absolute, home

PROJECTS: Final = "projects"
SESSIONS: Final = "sessions"
ARCHIVED: Final = "archived_sessions"
_LINES: Final = ".jsonl"
_AGENT: Final = "agent-"
_ROLLOUT: Final = "rollout-"


def claude_projects() -> Path:
    """The folder of Claude Code that has a folder of sessions for each folder it was used in."""
    configured = os.environ.get("CLAUDE_CONFIG_DIR")
    return (absolute(configured) if configured else home() / ".claude") / PROJECTS


def codex_home() -> Path:
    """The folder of Codex."""
    configured = os.environ.get("CODEX_HOME")
    return absolute(configured) if configured else home() / ".codex"


def codex_sessions() -> Path:
    """Where Codex keeps the sessions that nobody has put away."""
    return codex_home() / SESSIONS


def is_session(name: str) -> bool:
    """Whether a file of that name is a session of Claude Code, and none of a sub-agent."""
    return name.endswith(_LINES) and not name.startswith((".", _AGENT))


def is_agent(name: str) -> bool:
    """Whether a file of that name is of a sub-agent of Claude Code."""
    return name.endswith(_LINES) and name.startswith(_AGENT)


def is_rollout(name: str) -> bool:
    """Whether a file of that name is a session of Codex."""
    return name.endswith(_LINES) and name.startswith(_ROLLOUT)
