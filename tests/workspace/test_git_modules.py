"""What is told of submodules comes from the work tree and from nowhere that it leads to."""

from __future__ import annotations

from pathlib import Path

import pytest
from freshness.repos import Repo

from archiver.model.git_document import Submodule

from .git_saving import save


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with one submodule, which is checked out."""
    inner = Repo(tmp_path / "inner")
    inner.commit("inside")
    made = Repo(tmp_path / "work tree")
    made.commit("one")
    made.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.folder), "module")
    made.git("config", "--file", ".gitmodules", "submodule.module.url", "https://host.example/m.git")
    return made


def told(repo: Repo, place: Path) -> Submodule:
    (module,) = save(repo.folder, place).document.submodules
    return module


def test_address_and_commit_are_told(repo: Repo, tmp_path: Path) -> None:
    module = told(repo, tmp_path / "saved")
    assert (module.url, module.checked_out) == ("https://host.example/m.git", module.commit)


def test_addresses_are_not_read_through_a_link(repo: Repo, tmp_path: Path) -> None:
    (repo.folder / ".gitmodules").rename(tmp_path / "outside")
    (repo.folder / ".gitmodules").symlink_to(tmp_path / "outside")
    assert told(repo, tmp_path / "saved").url is None


def test_addresses_are_not_read_from_a_file_without_end(repo: Repo, tmp_path: Path) -> None:
    with (repo.folder / ".gitmodules").open("a") as file:
        file.write(f"# {'x' * (1 << 20)}\n")
    assert told(repo, tmp_path / "saved").url is None


def test_a_repository_that_belongs_to_another_folder_is_none_that_is_checked_out(
    repo: Repo, tmp_path: Path
) -> None:
    elsewhere = Repo(tmp_path / "elsewhere")
    elsewhere.commit("elsewhere")
    place = repo.folder / "module" / ".git"
    place.unlink()
    place.symlink_to(elsewhere.folder / ".git")
    elsewhere.git("config", "core.worktree", str(elsewhere.folder))
    module = told(repo, tmp_path / "saved")
    assert (module.checked_out, module.dirty) == (None, None)
