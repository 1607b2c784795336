"""A user at work in a repository, at random: every state is saved and made again as it was."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from freshness.repos import Repo
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from .git_saving import git, inside_of, saved_and_made_again

NAMES = st.sampled_from(
    ["a", "b", "d/a", "d/e/b", "d", "ünï", "sp ace", "li\nne", "inv\udcff", "x.log", ".gitignore"]
)
TEXTS = st.sampled_from(["", "one\n", "two\n", "one\ntwo\nthree\n", "x.log\n", "binary\0\n"])
BRANCHES = st.sampled_from(["main", "side", "feature/x"])


class Working(RuleBasedStateMachine):
    """Every rule is one command that may fail, as it does for users."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="archiver-test-"))
        self.remote = self.place / "remote.git"
        self.saves = 0
        self.pushed = False

    @initialize(born=st.booleans(), remote=st.booleans(), sha256=st.booleans())
    def begin(self, born: bool, remote: bool, sha256: bool) -> None:
        kind = ("--object-format=sha256",) if sha256 else ()
        self.repo = Repo(self.place / "work", *kind)
        self.has_remote = remote
        if remote:
            subprocess.run(["git", "init", "-q", "--bare", *kind, str(self.remote)], check=True)
            self.repo.git("remote", "add", "origin", str(self.remote))
        if born:
            (self.repo.folder / "a").write_text("first\n")
            self.git("add", "-A")
            self.git("commit", "-q", "-m", "first")

    def git(self, *arguments: str) -> None:
        git(self.repo.folder, *arguments, check=False)

    def free(self, name: str) -> Path:
        """Room for a file: what is a folder in its place, or a file where a folder must be, is taken away."""
        path = self.repo.folder / name
        for above in reversed(path.relative_to(self.repo.folder).parents):
            place = self.repo.folder / above
            if place.is_symlink() or place.is_file():
                place.unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif os.path.lexists(path):
            path.unlink()
        return path

    @rule(name=NAMES, text=TEXTS)
    def write(self, name: str, text: str) -> None:
        self.free(name).write_text(text)

    @rule(name=NAMES, to=st.sampled_from(["a", "../out", "/nowhere", "d", "inv\udcff"]))
    def link(self, name: str, to: str) -> None:
        self.free(name).symlink_to(to)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        self.free(name)

    @rule(name=NAMES, mode=st.sampled_from([0o755, 0o644, 0o700, 0o600]))
    def chmod(self, name: str, mode: int) -> None:
        path = self.repo.folder / name
        if path.is_file() and not path.is_symlink():
            path.write_bytes(path.read_bytes() + b"+")  # until it is committed, its mode travels
            path.chmod(mode)

    @rule(name=NAMES)
    def stage(self, name: str) -> None:
        self.git("add", "-f", "--", name)

    @rule()
    def stage_all(self) -> None:
        self.git("add", "-A")

    @rule(name=NAMES)
    def announce(self, name: str) -> None:
        self.git("add", "-N", "--", name)

    @rule(name=NAMES)
    def unstage(self, name: str) -> None:
        self.git("reset", "-q", "--", name)

    @rule(name=NAMES)
    def forget(self, name: str) -> None:
        self.git("rm", "-q", "-r", "--cached", "--", name)

    @rule(name=NAMES, to=NAMES)
    def rename(self, name: str, to: str) -> None:
        self.git("mv", "--", name, to)

    @rule(everything=st.booleans())
    def commit(self, everything: bool) -> None:
        self.git("commit", "-q", "-m", "work", *(("-a",) if everything else ()))

    @rule(branch=BRANCHES, new=st.booleans())
    def switch(self, branch: str, new: bool) -> None:
        self.git("checkout", "-q", *(("-b",) if new else ()), branch)

    @rule()
    def detach(self) -> None:
        self.git("checkout", "-q", "--detach")

    @rule()
    def orphan(self) -> None:
        self.git("checkout", "-q", "--orphan", "orphan")

    @rule(branch=BRANCHES, how=st.sampled_from(["merge", "rebase", "cherry-pick"]))
    def join(self, branch: str, how: str) -> None:
        self.git(how, branch)

    @rule()
    def undo(self) -> None:
        self.git("revert", "--no-edit", "HEAD")

    @rule(how=st.sampled_from(["merge", "rebase", "cherry-pick", "revert"]), end=st.booleans())
    def go_on(self, how: str, end: bool) -> None:
        self.git(how, "--abort" if end else "--continue")

    @rule()
    def stash(self) -> None:
        self.git("stash", "-q", "-u")

    @rule()
    def unstash(self) -> None:
        self.git("stash", "pop", "-q")

    @rule()
    def pack(self) -> None:
        self.git("gc", "-q")

    @rule()
    def add_module(self) -> None:
        other = self.place / "module"
        if not other.exists():
            kind = git(self.repo.folder, "rev-parse", "--show-object-format").decode().strip()
            Repo(other, f"--object-format={kind}").commit("inside")
        self.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "module")

    @precondition(lambda self: self.has_remote)
    @rule()
    def push(self) -> None:
        self.git("push", "-q", "-f", "-u", "origin", "HEAD")

    @rule()
    def save(self) -> None:
        self.saves += 1
        place = self.place / f"saved-{self.saves}"
        before = inside_of(self.remote) if self.has_remote else {}
        saved_and_made_again(self.repo, place, repository=self.remote if self.has_remote else None)
        assert not self.has_remote or inside_of(self.remote) == before

    def teardown(self) -> None:
        try:
            if hasattr(self, "repo"):
                self.save()
        finally:
            shutil.rmtree(self.place, ignore_errors=True)


QUIET = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "print_blob": True,
}


def test_every_state_is_made_again() -> None:
    run_state_machine_as_test(
        Working, settings=settings(max_examples=6, stateful_step_count=14, derandomize=True, **QUIET)
    )


@pytest.mark.soak
def test_hundreds_of_states_are_made_again() -> None:
    run_state_machine_as_test(Working, settings=settings(max_examples=400, stateful_step_count=30, **QUIET))
