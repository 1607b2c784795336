"""How git is run: input and output of any size, limits, time; and addresses without credentials."""

from __future__ import annotations

import itertools
from pathlib import Path
from time import monotonic

import pytest
from freshness.repos import Repo
from hypothesis import given
from hypothesis import strategies as st

from archiver.git import objects, running
from archiver.git.addresses import stripped
from archiver.git.repository import Repository
from archiver.git.running import GitError, Run, collect
from archiver.git.view import View


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "work tree")
    made.commit("one")
    return made


def view_of(repo: Repo, place: Path) -> View:
    place.mkdir()
    return View(Repository(repo.folder, 20), place, repo.folder)


def test_input_and_output_larger_than_any_pipe(repo: Repo, tmp_path: Path) -> None:
    view = view_of(repo, tmp_path / "view")
    head = repo.git("rev-parse", "HEAD")
    names = (f"{'f' * 40}" if place % 2 else head for place in range(40_000))
    found = objects.sizes(view, names)
    assert found == {head: (head, "commit", found[head][2])}


def test_an_output_is_cut_at_its_limit_and_the_program_ended(repo: Repo) -> None:
    run = Run(("-C", str(repo.folder), "cat-file", "--batch"), {}, monotonic() + 20)
    endless = itertools.repeat(b"HEAD:file.txt\n")
    assert len(collect(run.pieces(endless), 100_000)) == 100_000


def test_pieces_end_the_program_when_nobody_takes_them(repo: Repo) -> None:
    run = Run(("-C", str(repo.folder), "cat-file", "--batch"), {}, monotonic() + 20)
    pieces = run.pieces(itertools.repeat(b"HEAD:file.txt\n"))
    next(pieces)
    pieces.close()
    with pytest.raises(StopIteration):
        next(pieces)


@pytest.mark.parametrize("patient", [True, False])
def test_time_of_the_taker_counts_only_if_asked(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, patient: bool
) -> None:
    now = 0.0
    monkeypatch.setattr(running, "monotonic", lambda: now)
    run = Run(("-C", str(repo.folder), "cat-file", "--batch"), {}, 1000.0)
    pieces = run.pieces(itertools.repeat(b"HEAD:file.txt\n"), patient=patient)
    next(pieces)
    now = 5000.0
    if patient:
        assert next(pieces)
        pieces.close()
    else:
        with pytest.raises(GitError, match="in time"):
            next(pieces)


def test_an_error_of_what_is_fed_is_not_lost(repo: Repo) -> None:
    def feed() -> object:
        yield b"HEAD\n"
        raise GitError("the source broke")

    run = Run(("-C", str(repo.folder), "cat-file", "--batch"), {}, monotonic() + 20)
    with pytest.raises(GitError, match="the source broke"):
        collect(run.pieces(feed()))  # type: ignore[arg-type]  # a generator


def test_an_object_that_is_missing_is_an_error(repo: Repo, tmp_path: Path) -> None:
    view = view_of(repo, tmp_path / "view")
    with pytest.raises(GitError, match="missing"):
        list(objects.contents(view, [repo.git("rev-parse", "HEAD"), "a" * 40]))


def test_objects_of_all_sizes_come_whole(repo: Repo, tmp_path: Path) -> None:
    contents = [b"", b"\n", b"x" * 65_535, b"y" * 65_536, b"z\n" * 200_000]
    ids = []
    for place, content in enumerate(contents):
        (repo.folder / f"{place}").write_bytes(content)
        ids.append(repo.git("hash-object", "-w", f"{place}"))
    view = view_of(repo, tmp_path / "view")
    assert [found for *_, found in objects.contents(view, ids)] == contents


SECRET = "tok" + "en" * 8


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (f"https://user:{SECRET}@host.example/a/b.git", "https://host.example/a/b.git"),
        (f"https://{SECRET}@host.example:8443/a", "https://host.example:8443/a"),
        (f"https://host.example/a.git?private_token={SECRET}", "https://host.example/a.git"),
        (f"https://host.example/a.git#{SECRET}", "https://host.example/a.git"),
        (f"https://user:pa/{SECRET}@host.example/a", None),
        (f"https://user:pa#{SECRET}@host.example/a", None),
        (f"https://user:pa?{SECRET}@host.example/a", None),
        (f"ssh://joe:{SECRET}@host.example:22/a", "ssh://host.example:22/a"),
        ("ssh://git@host.example/a", "ssh://git@host.example/a"),
        ("git@host.example:a/b.git", "git@host.example:a/b.git"),
        (f"{SECRET}@host.example:a/b.git", "host.example:a/b.git"),
        (f"user:{SECRET}@host.example:a/b.git", "host.example:a/b.git"),
        (f"host.example:a/b.git?private_token={SECRET}", "host.example:a/b.git"),
        (f"user:p@{SECRET}@host.example:a", None),
        (f"user:{SECRET}@host.example/a", None),
        ("/srv/git/a.git", "/srv/git/a.git"),
        ("../a.git", "../a.git"),
        ("file:///srv/a.git", "file:///srv/a.git"),
        ("https://[::1]:8080/a", "https://[::1]:8080/a"),
        ("ext::sh -c date", None),
        ("-oProxyCommand=date", None),
        ("ssh://-oProxyCommand=date/a", None),
        ("-oProxyCommand=date:a", None),
        ("git@-oProxyCommand=date:a", None),
        ("odd://host/a", None),
        ("https://host/a\nb", None),
        ("", None),
    ],
)
def test_addresses_lose_what_opens_them(address: str, shown: str | None) -> None:
    assert stripped(address) == shown


@given(
    st.sampled_from(["https://", "ssh://", "ftp://", ""]),
    st.text("aZ0:/#?%-._~@", max_size=8),
    st.text("aZ0:@/#?%-._~", max_size=8),
    st.sampled_from(["/", ":"]),
)
def test_a_password_before_the_host_is_never_in_an_address(
    scheme: str, user: str, password: str, sign: str
) -> None:
    shown = stripped(f"{scheme}{user}:{password}SECRET@host.example{sign}a.git")
    assert shown is None or "SECRET" not in shown or is_path(scheme, user)
    if shown is not None:
        assert stripped(shown) == shown


def is_path(scheme: str, user: str) -> bool:
    """What has a `/` before its first `:` is a path on this machine."""
    return not scheme and "/" in user.partition(":")[0]
