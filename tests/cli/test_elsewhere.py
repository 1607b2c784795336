"""Resources elsewhere and credentials, from `archive --watch` to `restore`: no secret gets out."""

from __future__ import annotations

import base64
import json
import secrets
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from freshness.web import Raw, Resource, Web, hang

from .conftest import Command, Outcome
from .test_commands import RUN, init, session, work

__all__ = ["work"]


def jwt(expires: float) -> str:
    parts = [{"alg": "HS256"}, {"sub": secrets.token_hex(12), "exp": int(expires), "scope": "repo"}]
    coded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*coded, secrets.token_urlsafe(32)])


def setting(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    for name, value in values.items():
        monkeypatch.setenv(f"ARCHIVER_FRESHNESS__{name.upper()}", value)


def verdicts(outcome: Outcome) -> dict[str, Any]:
    return {verdict["probe"]: verdict for verdict in outcome.json["freshness"]}


@pytest.fixture
def web() -> Iterator[Web]:
    with Web({"/doc": Resource(headers={"ETag": '"1"'})}) as server:
        yield server


def test_a_document_that_changed_stops_a_restore_until_it_is_accepted(
    command: Command, work: Path, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    init(command)
    setting(monkeypatch, hosts=web.host)
    saved = command("archive", session(work / "t.jsonl", work), "--watch", web.url(), "--json")
    assert saved.code == 0, saved.err
    asked = web.connections
    offline = command("restore", RUN, "--plan", "--json")
    assert (verdicts(offline)["upstream"]["state"], web.connections) == ("UNKNOWN", asked)
    assert "not contacted" in verdicts(offline)["upstream"]["evidence"]
    fresh = command("restore", RUN, "--plan", "--network", "--json")
    assert (fresh.code, verdicts(fresh)["upstream"]["state"]) == (0, "FRESH")
    web.resources["/doc"].headers["ETag"] = '"2"'
    assert command("restore", RUN, "--plan", "--network").code == 3
    refused = command("restore", RUN, "--into", "out")
    assert (refused.code, Path("out").exists()) == (3, False)
    given = command("restore", RUN, "--into", "out", "--accept", "upstream", "--json")
    assert (given.code, verdicts(given)["upstream"]["accepted"]) == (0, True)
    asked = web.connections
    setting(monkeypatch, hosts="example.com")
    unlisted = command("restore", RUN, "--plan", "--network", "--json")
    assert (verdicts(unlisted)["upstream"]["state"], web.connections) == ("UNKNOWN", asked)


def test_a_save_says_what_will_not_be_compared(command: Command, work: Path) -> None:
    init(command)
    watched = [part for number in range(70) for part in ("--watch", f"file:none-{number}")]
    saved = command("archive", session(work / "t.jsonl", work), "--watch", "https://example.com/", *watched)
    assert saved.code == 0
    assert "https://example.com/ will not be compared at a restore: not contacted" in saved.err
    assert "file:none-0 will not be compared at a restore: there is no such file" in saved.err
    assert "7 resources were too many to remember" in saved.err


def test_a_server_that_hangs_stops_neither_save_nor_plan(
    command: Command, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    init(command)
    with Raw(hang) as server:
        setting(monkeypatch, hosts=server.host, timeout="1s")
        saved = command("archive", session(work / "t.jsonl", work), "--watch", server.url(), "--json")
        assert saved.code == 0, saved.err
        plan = command("restore", RUN, "--plan", "--network", "--json")
        assert (plan.code, verdicts(plan)["upstream"]["state"]) == (0, "UNKNOWN")
        assert server.closed.wait(15)


def test_credentials_are_named_and_never_told(
    command: Command, work: Path, home: Path, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every output, file and error of the way from a save to a restore is searched for every value."""
    values = [secrets.token_hex(20) for _ in range(5)]
    token = jwt(time.time() + 7200)
    values += token.split(".")[1:]
    (home / ".netrc").write_text(f"machine example.com login me password {values[0]}\n")
    (home / "oauth.json").write_text(
        json.dumps({"access_token": values[1], "expires_at": time.time() + 7200})
    )
    monkeypatch.setenv("DEPLOY_TOKEN", token)
    monkeypatch.setenv("PLAIN", values[2])
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA" + values[3][:16].upper())
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", values[3])
    names = "env:DEPLOY_TOKEN,env:PLAIN,file:~/.netrc,file:~/oauth.json,aws:"
    setting(monkeypatch, hosts=web.host, credentials=names)
    remote = f"http://me:{values[4]}@{web.host}/repo.git"
    subprocess.run(["git", "-C", str(work), "remote", "add", "origin", remote], check=True)
    watched = [f"https://u:{values[4]}@example.com/", f"https://example.com/?token={values[4]}"]
    options = [part for address in watched for part in ("--watch", address)]

    init(command)
    outcomes = [command("archive", session(work / "t.jsonl", work), *options, "--json")]
    assert outcomes[0].code == 0, outcomes[0].err
    plan = command("restore", RUN, "--plan", "--json")
    found = verdicts(plan)["credentials"]
    assert found["state"] == "UNKNOWN"  # only because nobody was asked whose the keys of AWS are
    assert "env:DEPLOY_TOKEN: there (JWT), expires at" in found["evidence"]
    monkeypatch.setenv("DEPLOY_TOKEN", jwt(time.time() - 60))
    expired = command("restore", RUN, "--plan", "--json")
    assert (expired.code, "expired at" in verdicts(expired)["credentials"]["evidence"]) == (3, True)
    monkeypatch.delenv("PLAIN")
    (home / ".netrc").unlink()
    outcomes += [plan, expired, command("restore", RUN, "--into", "no"), command("show", RUN, "--json")]
    assert "env:PLAIN: the variable is not set" in outcomes[-2].out + outcomes[-2].err
    accepted = [part for name in ("credentials", "upstream", "remote_head") for part in ("--accept", name)]
    outcomes.append(command("restore", RUN, "--into", "out", *accepted, "--json"))
    assert outcomes[-1].code == 0, outcomes[-1].err
    written = [path.read_bytes() for path in (home / "work" / "out").rglob("*") if path.is_file()]
    written += [path.read_bytes() for path in home.rglob("*.jsonl") if path.is_file()]
    everything = b"\n".join([*written, *((outcome.out + outcome.err).encode() for outcome in outcomes)])
    assert b"env:DEPLOY_TOKEN" in everything
    assert not [value for value in values if value.encode() in everything]
    assert web.requests == [] or not any(values[4] in f"{request}" for request in web.requests)
