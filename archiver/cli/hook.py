"""`archiver hook`."""

from __future__ import annotations


def hook_claude_code() -> None:
    """Have Claude Code save its sessions by itself."""
    raise NotImplementedError
