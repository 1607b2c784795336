"""Trees made to harm, through the real command: a line for what is left out, nothing run, no wait."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from freshness.repos import Repo

BIN = Path(sys.executable).parent
SPARSE = 2**30
WAITS = 120
"""Seconds after which a command hangs."""
CONFINED = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for capability in (1, 2):  # to override, and to read past, the permissions of files
    if os.geteuid() == 0 and libc.prctl(24, capability, 0, 0, 0):
        os.write(2, b"no right to give up rights")
        os._exit(99)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Root may read what nobody may: it gives that right up before the command begins."""

ODD = (
    b"li\nne",
    b"inv\xff\xfe",
    b"\xff\n\xfe",
    b"-rf",
    b"*",
    b"\x1b[31mred",
    "ünï".encode(),
    b"sp ace",
    b"\\",
)
"""Names that a file may have."""


class Trap:
    """Programs that each leave a mark of their own."""

    def __init__(self, place: Path) -> None:
        self.marks = place / "marks"
        self.programs = place / "programs"
        self.marks.mkdir()
        self.programs.mkdir()

    def program(self, name: str) -> str:
        """One that leaves this mark; its path has no space, because git splits some values there."""
        path = self.programs / f"{name}.sh"
        path.write_text(f"#!/bin/sh\n: > '{self.marks / name}'\ncat\n")
        path.chmod(0o755)
        return str(path)

    def left(self) -> list[str]:
        return sorted(path.name for path in self.marks.iterdir())


def arm(repo: Repo, git: Path, trap: Trap, elsewhere: Repo) -> None:
    """All that makes git run a program, or look elsewhere, in a repository that has some history."""
    program = trap.program
    for where in (repo.folder / ".gitattributes", git / "info" / "attributes"):
        where.parent.mkdir(exist_ok=True)
        where.write_text("* filter=evil diff=evil merge=evil\n*.x filter=other\n")
    for hooks in (git / "hooks", git / "away-hooks"):
        hooks.mkdir(exist_ok=True)
        for hook in (
            "post-index-change", "reference-transaction", "post-checkout", "pre-auto-gc",
            "fsmonitor-watchman",
            "post-rewrite", "pre-commit", "post-commit", "sendemail-validate", "push-to-checkout",
        ):  # fmt: skip
            (hooks / hook).write_text(Path(program(f"hook-{hook}")).read_text())
            (hooks / hook).chmod(0o755)
    included = git / "included"
    included.write_text(f'[filter "other"]\n\tclean = {program("included-clean")}\n\trequired = true\n')
    for key, value in {
        "core.fsmonitor": program("fsmonitor"),
        "core.hooksPath": str(git / "away-hooks"),
        "core.pager": program("pager"),
        "core.editor": program("editor"),
        "sequence.editor": program("sequence-editor"),
        "core.sshCommand": program("ssh"),
        "core.askPass": program("askpass"),
        "core.gitProxy": program("proxy"),
        "core.alternateRefsCommand": program("alternate-refs"),
        "credential.helper": f"!{program('credential')}",
        "credential.https://host.example.helper": program("credential-host"),
        "pager.status": program("pager-status"),
        "pager.config": program("pager-config"),
        "diff.external": program("diff"),
        "diff.evil.command": program("diff-evil"),
        "diff.evil.textconv": program("textconv"),
        "merge.evil.driver": program("merge"),
        "filter.evil.clean": program("clean"),
        "filter.evil.smudge": program("smudge"),
        "filter.evil.process": program("process"),
        "filter.evil.required": "true",
        "include.path": str(included),
        "includeIf.gitdir:/**.path": str(included),
        "gpg.program": program("gpg"),
        "gpg.ssh.program": program("gpg-ssh"),
        "gpg.x509.program": program("gpg-x509"),
        "log.showSignature": "true",
        "commit.gpgSign": "true",
        "interactive.diffFilter": program("interactive"),
        "trailer.x.command": program("trailer"),
        "uploadpack.packObjectsHook": program("pack-objects"),
        "remote.origin.url": f"ext::{program('ext')}",
        "remote.origin.uploadpack": program("uploadpack"),
        "remote.origin.receivepack": program("receivepack"),
        "remote.origin.vcs": "ext",
        "remote.origin.promisor": "true",
        "extensions.partialClone": "origin",
        "extensions.worktreeConfig": "true",
        "url.ext::sh -c.insteadOf": "https://",
        "protocol.allow": "always",
        "protocol.ext.allow": "always",
        "protocol.file.allow": "always",
        "safe.directory": "*",
        "submodule.module.url": f"ext::{program('module-ext')}",
        "submodule.module.update": f"!{program('module-update')}",
        "submodule.module.active": "true",
        "submodule.recurse": "true",
        **{
            f"alias.{name}": f"!{program(f'alias-{name}')}"
            for name in ("status", "rev-parse", "ls-files", "cat-file", "diff-index", "check-attr", "bundle")
        },
    }.items():
        repo.git("config", "--file", str(git / "config"), key, value)
    (git / "config.worktree").write_text(f"[core]\n\tfsmonitor = {program('worktree-fsmonitor')}\n")
    (repo.folder / ".gitmodules").write_text(
        f'[submodule "module"]\n\tpath = module\n\turl = ext::{program("modules-ext")}\n'
        f"\tupdate = !{program('modules-update')}\n"
    )
    (git / "objects" / "info" / "alternates").write_text(f"{elsewhere.folder}/.git/objects\n")


class Hostile:
    """A folder with everything in it, and where its trap leaves marks."""

    def __init__(self, place: Path, kind: str) -> None:
        self.trap = Trap(place)
        elsewhere = Repo(place / "elsewhere")
        elsewhere.commit("one")
        self.root = place / "work"
        if kind == "folder":
            self.root.mkdir()
            repo = Repo(self.root / "repository")
        else:
            repo = Repo(self.root)
        repo.commit("one")
        git = repo.folder / ".git"
        if kind == "git file":
            git.rename(place / "git-folder")
            git.write_text(f"gitdir: {place / 'git-folder'}\n")
            git = place / "git-folder"
        self._fill(self.root)
        away = self.root / "leads-elsewhere"
        away.mkdir()
        (away / ".git").write_text(f"gitdir: {elsewhere.folder / '.git'}\n")
        (away / "inside.txt").write_text("inside\n")
        self.repo = repo
        arm(repo, git, self.trap, elsewhere)

    def _fill(self, root: Path) -> None:
        os.mkfifo(root / "pipe")
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(os.path.relpath(root / "socket"))
        (root / "loop").symlink_to("loop")
        (root / "ping").symlink_to("pong")
        (root / "pong").symlink_to("ping")
        (root / "up").symlink_to(".")
        for name in ODD:
            (root / os.fsdecode(name)).write_bytes(b"odd\n")
        (root / "sparse").touch()
        os.truncate(root / "sparse", SPARSE)
        (root / "closed").mkdir()
        (root / "closed" / "inside.txt").write_text("not for you\n")
        (root / "closed").chmod(0)
        (root / "secret").write_text("not for you\n")
        (root / "secret").chmod(0)

    @contextmanager
    def growing(self) -> Iterator[None]:
        """A file that grows all the time, so large that reading it takes longer than a step of that."""
        grows = self.root / "grows.txt"
        grows.write_bytes(b"line of text\n" * 40_000)
        ended = threading.Event()

        def grow() -> None:
            with grows.open("ab", buffering=0) as file:
                while not ended.is_set():  # without a pause: a file of this size is read in less than one
                    file.write(b".")

        thread = threading.Thread(target=grow)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", CONFINED, str(BIN / "archiver"), *map(str, arguments)],
        capture_output=True, text=True, errors="replace", timeout=WAITS, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode == 99:
        pytest.skip("root cannot give up the right to read everything here")
    return done


@pytest.mark.parametrize("kind", ["folder", "git", pytest.param("git file", marks=pytest.mark.soak)])
def test_everything_at_once(config: Path, note: Path, tmp_path: Path, kind: str) -> None:
    hostile = Hostile(tmp_path, kind)
    hostile.trap.marks.chmod(0o777)
    for mark in hostile.trap.marks.iterdir():
        mark.unlink()
    with hostile.growing():
        done = run("archive", note, "--run-id", "r", "--workspace", hostile.root, "--config", config)
    assert done.returncode == 0, done.stderr
    assert hostile.trap.left() == []
    assert stat.S_IMODE((hostile.root / "closed").stat().st_mode) == 0
    out = tmp_path / "out"
    restored = run("restore", "r", "--into", out, "--config", config)
    assert restored.returncode == 0, restored.stderr
    assert hostile.trap.left() == []
    demand_lines(json.loads((out / "report.json").read_text())["left_out"], done.stderr + done.stdout)
    demand_tree(out / "workspace", hostile.root)
    if kind != "folder":
        hostile.repo.folder = out / "workspace"
        hostile.repo.git("status")
        assert hostile.trap.left() == [], "nothing of the configuration has travelled"
    demand_armed(hostile, kind)


def demand_lines(left_out: list[str], said: str) -> None:
    """One for each of them, in the receipt and in what the command says."""
    for path, reason in {
        "pipe": "pipe|no file, link or folder",
        "socket": "socket|no file, link or folder",
        "sparse": f"it has {SPARSE} bytes",
        "closed": "cannot be read",
        "secret": "cannot be read",
        "grows.txt": "it changed while it was read",
    }.items():
        lines = [line for line in left_out if line.partition(":")[0].strip() == path or f"{path} " in line]
        assert any(word in line for line in lines for word in reason.split("|")), (path, left_out)
        assert path in said, path


def demand_tree(again: Path, root: Path) -> None:
    """What can be carried is there, and nothing else."""
    assert os.readlink(again / "loop") == "loop"  # noqa: PTH115 - a text as it is
    assert os.readlink(again / "ping") == "pong"  # noqa: PTH115 - a text as it is
    assert os.readlink(again / "up") == "."  # noqa: PTH115 - a text as it is
    there = {os.fsencode(path.name) for path in again.iterdir()}
    assert there >= set(ODD)
    assert not there.intersection({b"pipe", b"socket", b"sparse", b"secret", b"grows.txt"})
    assert not (again / "closed" / "inside.txt").exists()
    for folder, _, files in os.walk(os.fsencode(again)):
        for name in files:
            kind = os.lstat(folder + b"/" + name).st_mode
            assert stat.S_ISREG(kind) or stat.S_ISLNK(kind), name


def demand_armed(hostile: Hostile, kind: str) -> None:
    """The silence proves something: the git that everybody has runs what lies there."""
    folder = hostile.root / "repository" if kind == "folder" else hostile.root
    (folder / "file.txt").write_text("owt")
    environ = {"PATH": os.environ["PATH"], "HOME": str(hostile.root.parent), "GIT_TERMINAL_PROMPT": "0"}
    commands: list[Any] = ["status", "add -A", "diff HEAD", "checkout -f HEAD", "commit -m x"]
    for words in commands:
        subprocess.run(
            ["git", *words.split()], cwd=folder, env=environ, capture_output=True, timeout=WAITS,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    assert len(hostile.trap.left()) >= 3, hostile.trap.left()
