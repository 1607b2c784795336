"""Repositories made with the real git, and the world as a probe sees it."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from archiver.freshness import Context

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def context(folder: Path | None = None, timeout: float = 20.0, **facts: Any) -> Context:
    return Context(now=NOW, checkpoint_at=NOW, workspace=folder, timeout=timeout, **facts)


class Repo:
    """A repository made with the real git."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main", *options)
        self.git("config", "user.name", "A")
        self.git("config", "user.email", "a@example.org")

    def git(self, *arguments: str) -> str:
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "GIT_CONFIG_NOSYSTEM": "1"}
        return subprocess.run(
            ["git", *arguments], cwd=self.folder, env=environ, check=True, capture_output=True, text=True
        ).stdout.strip()

    def commit(self, text: str) -> str:
        (self.folder / "file.txt").write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "a commit")
        return self.git("rev-parse", "HEAD")


def hostile(repo: Repo, marker: Path) -> None:
    """Everything in a repository that makes git run a program, pointing at one that leaves a mark."""
    script = marker.parent / "payload.sh"  # git splits some of these values at spaces
    script.write_text(f"#!/bin/sh\necho ran >> '{marker}'\ncat\n")
    script.chmod(0o755)
    payload = str(script)
    (repo.folder / ".gitattributes").write_text("* filter=evil diff=evil\n")
    (repo.folder / ".git/info/attributes").write_text("* filter=evil diff=evil merge=evil\n")
    hooks = repo.folder / ".git" / "evil-hooks"
    hooks.mkdir()
    for hook in ("post-index-change", "pre-commit", "reference-transaction", "post-checkout"):
        (hooks / hook).write_text(script.read_text())
        (hooks / hook).chmod(0o755)
    included = repo.folder / ".git" / "included"
    included.write_text(f'[filter "evil"]\n\tclean = {payload}\n\tsmudge = {payload}\n\trequired = true\n')
    for key, value in {
        "core.fsmonitor": payload,
        "core.hooksPath": str(hooks),
        "core.pager": payload,
        "core.editor": payload,
        "core.sshCommand": payload,
        "core.askPass": payload,
        "core.gitProxy": payload,
        "core.alternateRefsCommand": payload,
        "credential.helper": payload,
        "pager.status": payload,
        "pager.log": payload,
        "diff.external": payload,
        "diff.evil.textconv": payload,
        "diff.evil.command": payload,
        "merge.evil.driver": payload,
        "filter.evil.process": payload,
        "include.path": str(included),
        "gpg.program": payload,
        "log.showSignature": "true",
        "alias.status": f"!{payload}",
        "alias.rev-parse": f"!{payload}",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::{payload}",
        "remote.origin.uploadpack": payload,
        "remote.origin.vcs": "ext",
        "protocol.ext.allow": "always",
        "protocol.allow": "always",
    }.items():
        repo.git("config", key, value)
