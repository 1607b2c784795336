"""`init` for a server and `doctor`, as people and scripts use them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from servers.lying import BUCKET, LyingServer
from servers.seaweed import Seaweed

from archiver import age
from archiver.config import config_home, load

from .conftest import Command


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.fixture
def anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "anything")


def test_a_newcomer_with_a_bucket(command: Command, seaweed: Seaweed, s3_url: str) -> None:
    made = command("init", s3_url, "--endpoint-url", seaweed.endpoint, "--region", "us-east-1", terminal=True)
    assert made.code == 0, made.err
    assert f"New store: {s3_url}" in made.out
    assert "the store works" in made.out
    assert "Back up both key files" in made.out
    assert "protects nothing locally" not in made.out  # the key does not lie beside this store
    assert "Next: archiver doctor" in made.out
    assert "in one way only" in made.err

    looked = command("doctor", terminal=True)
    assert looked.code == 0, looked.err
    lines = plain(looked.out).splitlines()
    (fencing,) = [line for line in lines if "fencing" in line and line.startswith("ok")]
    assert fencing.split(None, 2)[2].startswith("enforced:")
    assert re.fullmatch(r"\d+ ok, \d+ warning, \d+ unknown\.", lines[-1])
    assert all(len(line) <= 100 for line in lines)

    notes = Path("notes.txt")
    notes.write_text("hello\n")
    saved = command("archive", notes, "--run-id", "r", terminal=True)
    assert saved.code == 0, saved.err
    assert "in one way only" in saved.err
    shown = command("show", "r", terminal=True)
    assert (shown.code, "in one way only" in shown.err) == (0, False)
    assert command("verify").code == 0


def test_a_script_gets_json_and_lines(command: Command, seaweed: Seaweed, s3_url: str) -> None:
    other = str(age.generate().recipient)
    made = command("init", s3_url, "--endpoint-url", seaweed.endpoint, "-r", other, "--json")
    assert made.code == 0, made.err
    assert made.json["fencing"] == "enforced"
    assert (made.json["probes_left"], made.json["warnings"]) == ([], [])
    assert load().keys.recipients == (made.json["recipient"], other)

    looked = command("doctor", "--json")
    assert looked.code == 0
    assert (looked.json["ok"], looked.json["exit_code"], looked.json["fencing"]) == (True, 0, "enforced")
    for check in looked.json["checks"]:
        assert set(check) == {"check", "verdict", "text", "remedy", "exit_code"}
        assert check["verdict"] in {"ok", "warning", "failure", "unknown"}
    rows = command("doctor").rows
    assert {len(row) for row in rows} == {4}
    assert [row[1] for row in rows] == [check["check"] for check in looked.json["checks"]]

    elsewhere = command("doctor", "--store", f"{s3_url}/other", "--json")
    assert elsewhere.code == 2  # a fit place, but no store
    assert elsewhere.json["fencing"] == "enforced"
    assert "archiver init" in command("archive", __file__, "--store", f"{s3_url}/other").err


def test_a_server_that_ignores_conditions(command: Command, anybody: None) -> None:
    with LyingServer(conditions="ignored") as server:
        url = f"s3://{BUCKET}/x"
        at = ("--endpoint-url", server.endpoint, "--region", "us-east-1")
        refused = command("init", url, *at)
        assert refused.code == 8
        assert "ignores conditional writes" in refused.err
        assert "--without-fencing" in refused.err
        assert not config_home().exists()
        assert command("init", url, *at, "--json").json["error"]["type"] == "UnfencedStoreError"

        made = command("init", url, *at, "--without-fencing")
        assert made.code == 0, made.err
        assert "two writers of one run can both win" in made.err
        Path("notes.txt").write_text("hello\n")
        for _ in range(2):
            saved = command("archive", "notes.txt", "--run-id", "r")
            assert saved.code == 0, saved.err
            assert "two writers of one run can both win" in saved.err
        looked = command("doctor", "--json")
        assert (looked.code, looked.json["fencing"]) == (0, "not enforced")

        text = (config_home() / "archiver.toml").read_text()
        (config_home() / "archiver.toml").write_text(text.replace("fencing = false", "fencing = true"))
        looked = command("doctor", terminal=True)
        assert looked.code == 8
        assert "NOT enforced: two writers of one run can both win" in plain(looked.out).replace(
            "\n" + " " * 28, " "
        )


def test_a_folder(command: Command) -> None:
    assert command("doctor").code == 8
    assert command("init").code == 0
    looked = command("doctor", "--json")
    assert (looked.code, looked.json["fencing"]) == (0, "enforced")
    looked = command("doctor", terminal=True)
    assert re.search(r"\n\d+ ok, 1 warning\.\n$", plain(looked.out))
    assert "key beside store" in looked.out


def test_a_store_that_is_not_reached(
    command: Command, anybody: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHIVER_STORE__ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("ARCHIVER_STORE__ATTEMPTS", "1")
    looked = command("doctor", "--store", "s3://bucket/x", "--json")
    assert (looked.code, looked.json["fencing"]) == (8, "unknown")
    assert [check["verdict"] for check in looked.json["checks"][:2]] == ["failure", "unknown"]
