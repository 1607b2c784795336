"""Branches of real repositories: served as files, by git's own server program, and on this machine."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from archiver.freshness import Verdict
from archiver.freshness.remote_head import RemoteHeadProbe
from archiver.freshness.upstream import UpstreamProbe
from archiver.model import JsonValue

from .test_git_commit import Repo
from .web import Files, Resource, Web, context

HEAD = RemoteHeadProbe()
UPSTREAM = UpstreamProbe()


class Smart(Web):
    """Git's own program for web servers, in front of a folder of repositories."""

    def __init__(self, folder: Path, newest: str) -> None:
        super().__init__()
        self.folder = folder
        self.newest = newest
        self.asked_with = "POST" if newest == "2" else "GET"
        self._http.RequestHandlerClass = type("Git", (_Backend,), {"owner": self})


class _Backend(BaseHTTPRequestHandler):
    owner: Smart

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the base class
        """Nothing: nobody reads it."""

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        parts = urlsplit(self.path)
        self.owner.requests.append((self.command, self.path, dict(self.headers.items())))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        environ = {
            "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(self.owner.folder),
            "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": parts.path, "QUERY_STRING": parts.query,
            "REQUEST_METHOD": self.command, "CONTENT_LENGTH": str(len(body)),
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
            "GIT_CONFIG_KEY_1": "protocol.version", "GIT_CONFIG_VALUE_1": self.owner.newest,
            "REMOTE_ADDR": "127.0.0.1",
        }  # fmt: skip
        if self.owner.newest == "0":
            del environ["GIT_PROTOCOL"]
        out = subprocess.run(["git", "http-backend"], env=environ, input=body, capture_output=True).stdout
        head, _, content = out.partition(b"\r\n\r\n")
        lines = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        status = dict(lines).get("Status", "200 OK")
        self.send_response_only(int(status.split()[0]))
        for name, value in lines:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository whose branches are `main` and `other`, in a folder that is served."""
    made = Repo(tmp_path / "served" / "repo")
    made.commit("one")
    made.git("branch", "other")
    made.git("tag", "-m", "a tag", "v1")
    made.git("update-server-info")
    return made


@pytest.fixture(params=["files", "version 0", "version 2", "sha256"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Web]:
    if request.param == "sha256":
        made = Repo(tmp_path / "served" / "repo", "--object-format=sha256")
        made.commit("one")
        made.git("branch", "other")
        made.git("tag", "-m", "a tag", "v1")
    else:
        request.getfixturevalue("repo")
    folder = tmp_path / "served"
    newest = "0" if request.param == "version 0" else "2"
    with Files(folder) if request.param == "files" else Smart(folder, newest) as running:
        yield running


def served(tmp_path: Path) -> Repo:
    """The repository of `server`, as it lies on disk."""
    made = Repo.__new__(Repo)
    made.folder = tmp_path / "served" / "repo"
    return made


def watched(address: str, *hosts: str, **facts: Any) -> JsonValue:
    return json.loads(json.dumps(UPSTREAM.capture(context(*hosts, watch=(address,), **facts))))


@pytest.mark.parametrize("branch", ["", "#main", "#refs/heads/main"])
def test_a_branch_elsewhere_that_moved_is_stale(server: Web, branch: str, tmp_path: Path) -> None:
    repo = served(tmp_path)
    address = f"git+{server.url('/repo/.git')}{branch}"
    then = watched(address, server.host)
    assert then["resources"][0]["token"] == {"head": repo.git("rev-parse", "HEAD")}  # type: ignore[index, call-overload]
    assert UPSTREAM.judge(then, context(server.host)).state == "FRESH"
    if isinstance(server, Smart):
        assert {method for method, _, _ in server.requests} == {"GET", server.asked_with}
    repo.git("checkout", "-q", "other")
    repo.git("commit", "-q", "--allow-empty", "-m", "on the other branch")
    repo.git("checkout", "-q", "main")
    repo.git("update-server-info")
    assert UPSTREAM.judge(then, context(server.host)).state == "FRESH"
    now = repo.commit("two")
    repo.git("update-server-info")
    verdict = UPSTREAM.judge(then, context(server.host))
    assert (verdict.state, now[:12] in verdict.evidence) == ("STALE", True), verdict.evidence


def test_a_branch_elsewhere_that_is_gone_is_stale(server: Web, tmp_path: Path) -> None:
    repo = served(tmp_path)
    address = f"git+{server.url('/repo/.git')}#other"
    then = watched(address, server.host)
    repo.git("branch", "-m", "other", "otherwise")
    repo.git("update-server-info")
    verdict = UPSTREAM.judge(then, context(server.host))
    assert (verdict.state, "has no refs/heads/other" in verdict.evidence) == ("STALE", True)
    shutil.rmtree(repo.folder)
    assert UPSTREAM.judge(then, context(server.host)).state == "STALE"
    assert "not_seen" in watched(address, server.host)["resources"][0]  # type: ignore[index, call-overload]


def test_a_tag_is_known_by_its_whole_name(server: Web, tmp_path: Path) -> None:
    then = watched(f"git+{server.url('/repo/.git')}#refs/tags/v1", server.host)
    assert then["resources"][0]["token"] == {"head": served(tmp_path).git("rev-parse", "v1")}  # type: ignore[index, call-overload]


@pytest.mark.parametrize(
    "body",
    [
        b"<html>log in</html>", b"0000", b"zzzz", b"0003", b"ffffx", b"0009ERR no", b"\xff" * 100, b"",
        b"001e# service=git-upload-pack\n0000000eversion 2\n", b"0032" + b"a" * 40 + b" HEAD\n",
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["application/x-git-upload-pack-advertisement", "text/plain"])
def test_what_no_git_server_says_is_never_fresh(body: bytes, kind: str) -> None:
    path = "/r/info/refs?service=git-upload-pack"
    with Web({path: Resource(headers={"Content-Type": kind}, body=body)}) as web:
        then: JsonValue = {"resources": [{"at": f"git+{web.url('/r')}#main", "token": {"head": "a" * 40}}]}
        verdict = UPSTREAM.judge(then, context(web.host))
    assert verdict.state != "FRESH"
    assert "log in" not in verdict.evidence


def test_a_redirect_of_a_git_server_is_not_followed(tmp_path: Path, repo: Repo) -> None:
    path = "/r/info/refs?service=git-upload-pack"
    with Files(tmp_path / "served") as other:
        target = other.url("/repo/.git/info/refs")
        with Web({path: Resource(301, {"Location": target})}) as web:
            row: JsonValue = {"at": f"git+{web.url('/r')}", "token": {"head": "a" * 40}}
            verdict = UPSTREAM.judge({"resources": [row]}, context(web.host, other.host))
        assert (verdict.state, other.connections) == ("UNKNOWN", 0)


@pytest.mark.parametrize("bare", [True, False])
def test_a_repository_on_this_machine(bare: bool, repo: Repo, tmp_path: Path) -> None:
    place = repo.folder
    if bare:
        place = tmp_path / "bare repo.git"
        repo.git("clone", "-q", "--bare", str(repo.folder), str(place))
        repo.git("remote", "add", "copy", str(place))
    for branch in ("", "#main"):
        then = watched(f"git+{place.as_uri()}{branch}", network=False)
        assert UPSTREAM.judge(then, context(network=False)).state == "FRESH"
        repo.commit(f"two {branch}")
        if bare:
            repo.git("push", "-q", "copy", "main")
        assert UPSTREAM.judge(then, context(network=False)).state == "STALE"
    shutil.rmtree(place)
    assert UPSTREAM.judge(then, context(network=False)).state == "STALE"


def test_a_repository_that_makes_git_wait_is_given_up_and_git_is_ended(repo: Repo) -> None:
    address = f"git+{repo.folder.as_uri()}#main"
    then = watched(address, network=False)
    pipe = repo.folder / ".git" / "HEAD"
    pipe.unlink()
    os.mkfifo(pipe)
    verdict = UPSTREAM.judge(then, context(network=False, timeout=1.0))
    assert (verdict.state, "did not answer in time" in verdict.evidence) == ("UNKNOWN", True)
    with pytest.raises(OSError) as caught:  # nobody waits at its other end
        os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    assert caught.value.errno == errno.ENXIO


def test_the_repository_around_a_folder_is_not_meant(repo: Repo) -> None:
    (repo.folder / "inner").mkdir()
    row: JsonValue = {"at": f"git+{(repo.folder / 'inner').as_uri()}", "token": {"head": "a" * 40}}
    assert UPSTREAM.judge({"resources": [row]}, context()).state == "UNKNOWN"


# --- the workspace's own upstream ---------------------------------------------------------------------------


@pytest.fixture
def clone(server: Web, tmp_path: Path) -> Repo:
    """A clone that follows `main` of the repository that is served."""
    made = Repo(tmp_path / "clone")
    repo = served(tmp_path)
    if len(repo.git("rev-parse", "HEAD")) == 64:
        shutil.rmtree(made.folder)
        made = Repo(made.folder, "--object-format=sha256")
    made.git("remote", "add", "origin", str(repo.folder))
    made.git("fetch", "-q", "origin")
    made.git("checkout", "-q", "-b", "work", "--track", "origin/main")
    made.git("remote", "set-url", "origin", server.url("/repo/.git"))
    return made


def seen(clone: Repo, *hosts: str, **facts: Any) -> Any:
    return json.loads(json.dumps(HEAD.capture(context(*hosts, workspace=clone.folder, **facts))))


def judged(then: JsonValue, *hosts: str, **facts: Any) -> Verdict:
    return HEAD.judge(then, context(*hosts, **facts))


def test_the_branch_that_the_workspace_follows(server: Web, clone: Repo, tmp_path: Path) -> None:
    then = seen(clone, server.host)
    head = served(tmp_path).git("rev-parse", "main")
    assert then == {"remote": server.url("/repo/.git"), "ref": "refs/heads/main", "head": head}
    assert judged(then, server.host).state == "FRESH"
    offline = judged(then, server.host, network=False)
    assert (offline.state, "not contacted" in offline.evidence) == ("UNKNOWN", True)
    before = server.connections
    assert judged(then, "example.com").state == "UNKNOWN"
    assert server.connections == before
    served(tmp_path).commit("two")
    served(tmp_path).git("update-server-info")
    assert judged(then, server.host).state == "STALE"
    unseen = seen(clone, "example.com")
    assert "not contacted" in unseen["not_seen"]
    assert judged(unseen, server.host).state == "UNKNOWN"


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("https://me:{0}@example.com/a.git", "https://example.com/a.git"),
        ("https://{0}@example.com:8443/a.git?x={0}#{0}", "https://example.com:8443/a.git"),
        ("ssh://git:{0}@example.com/a.git", "ssh://example.com/a.git"),
        ("git@example.com:a/b.git", "ssh://example.com/a/b.git"),
        ("https://[{0}@x", "https://…"),
        ("ext::sh -c touch% x", "ssh://ext/:sh -c touch% x"),
    ],
)
def test_the_address_is_stored_without_user_and_password(
    written: str, stored: str, repo: Repo, tmp_path: Path
) -> None:
    secret = f"x{os.urandom(12).hex()}"
    repo.git("remote", "add", "origin", written.format(secret))
    then = seen(repo)
    assert (then["remote"], secret in json.dumps(then)) == (stored, False)
    verdict = judged(then)
    assert (verdict.state, secret in verdict.evidence) == ("UNKNOWN", False)


def test_a_remote_in_a_folder_needs_no_network(repo: Repo, tmp_path: Path) -> None:
    clone = Repo(tmp_path / "clone")
    clone.git("pull", "-q", str(repo.folder), "main")
    clone.git("remote", "add", "origin", "../served/repo")
    then = seen(clone, network=False)
    assert judged(then, network=False).state == "FRESH"
    repo.commit("two")
    assert judged(then, network=False).state == "STALE"


def test_no_upstream_is_nothing_to_remember(repo: Repo, tmp_path: Path) -> None:
    assert seen(repo) is None
    repo.git("checkout", "-q", "--detach")
    assert seen(repo) is None
    assert HEAD.capture(context()) is None
    assert HEAD.capture(context(workspace=tmp_path)) is None


def test_what_the_repository_configures_is_never_run(repo: Repo, tmp_path: Path) -> None:
    """Neither a command in its configuration nor one that an address names."""
    witness = tmp_path / "ran"
    for key, value in {
        "core.sshCommand": f"touch {witness};",
        "core.fsmonitor": f"touch {witness}",
        "credential.helper": f"!touch {witness}",
        "remote.origin.uploadpack": f"touch {witness};",
        "remote.origin.vcs": "ext",
        "include.path": "../included",
    }.items():
        repo.git("config", key, value)
    (repo.folder / "included").write_text('[remote "origin"]\n\turl = https://included.example/\n')
    for url in (
        f"ext::touch {witness}",
        f"ssh://-oProxyCommand=touch {witness}/x",
        f"file://{tmp_path}/none",
    ):
        repo.git("config", "remote.origin.url", url)
        then = seen(repo)
        assert "included" not in then["remote"]
        assert judged(then).state == "UNKNOWN"
    assert not witness.exists()


@pytest.mark.parametrize(
    "record",
    [None, {}, {"remote": 1, "ref": "refs/heads/a"}, {"remote": "https://a", "ref": "r", "head": "x"}],
)
def test_a_record_of_another_shape_is_not_believed(record: JsonValue) -> None:
    with pytest.raises((TypeError, ValueError)):
        judged(record)


def test_what_redaction_took_out_is_unknown(tmp_path: Path) -> None:
    """The folder that is left is not there, and that says nothing."""
    record: JsonValue = {
        "remote": "file:///srv/[REDACTED:key:1a]",
        "ref": "refs/heads/main",
        "head": "a" * 40,
    }
    assert judged(record).state == "UNKNOWN"


@pytest.mark.parametrize("ref", ["main", "HEAD", "refs/heads/a b", "refs/heads/../x", "refs/heads/\n", "-x"])
def test_a_ref_that_is_none_is_not_asked(ref: str) -> None:
    record: JsonValue = {"remote": "https://example.com/r", "ref": ref, "head": "a" * 40}
    assert judged(record, "example.com").evidence.count("not contacted") == 1
