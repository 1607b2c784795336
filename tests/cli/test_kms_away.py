"""What commands say of a checkpoint that was saved while KMS was away: at once, and when it is looked at."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from servers.seaweed import free_ports

from archiver import age
from archiver.config import config_home

from .conftest import Command
from .test_commands import init, plain, session, work

__all__ = ["work"]

ARN = "arn:aws:kms:eu-central-1:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
KMS = age.parse_arn(ARN).fingerprint
RUN = "nightly-7"


@pytest.fixture
def transcript(command: Command, work: Path, no_aws: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A session to be saved into a store that is sealed to the own identity and to a KMS that is away."""
    init(command)
    path = config_home() / "archiver.toml"
    settings = re.sub(r"^recipients = \[", f'recipients = [\n"{ARN}",', path.read_text(), flags=re.MULTILINE)
    assert ARN in settings
    path.write_text(settings)
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIA" + "X" * 16,
        "AWS_SECRET_ACCESS_KEY": "x" * 40,
        "ARCHIVER_KEYS__KMS_ENDPOINT_URL": f"http://127.0.0.1:{free_ports(1)[0]}",
        "ARCHIVER_STORE__ATTEMPTS": "1",
    }.items():
        monkeypatch.setenv(name, value)
    return session(work / "t.jsonl", work)


def test_a_save_fails_unless_it_may_do_without(command: Command, transcript: Path) -> None:
    refused = command("archive", transcript, "--run-id", RUN)
    assert refused.code == 6
    assert "--without-kms" in refused.err
    assert command("list").out == ""
    saved = command("archive", transcript, "--run-id", RUN, "--without-kms", terminal=True)
    assert saved.code == 0, saved.err
    assert f"sealed while KMS was away, and not to {KMS}: `archiver rekey {RUN}`" in plain(saved.err)


def test_what_is_said_of_it_afterwards(command: Command, transcript: Path) -> None:
    for run in (RUN, "other"):
        assert command("archive", transcript, "--run-id", run, "--without-kms").code == 0
    listed = command("list", terminal=True)
    assert listed.code == 0
    assert "the newest record of 2 runs was sealed while KMS was away" in plain(listed.err)
    assert "archiver rekey --all --dry-run" in plain(listed.err)
    assert [run["missing_recipients"] for run in command("list", "--json").json["runs"]] == [[KMS]] * 2

    shown = command("show", RUN, terminal=True, columns=200)
    assert f"{KMS}: KMS was away; next: archiver rekey {RUN} --dry-run" in plain(shown.out)

    verified = command("verify", terminal=True, columns=200)
    assert verified.code == 0, verified.err
    assert plain(verified.err).count(f"2 of them were sealed while KMS was away, and not to {ARN}") == 2
    assert f"archiver rekey {RUN} --dry-run" in plain(verified.err)
    rows = [row for row in command("verify", RUN).rows if row[0] == "warning"]
    assert [row[1] for row in rows] == [f"records/{RUN}/"]

    checked = [row for row in command("doctor").rows if "saved without kms" in row]
    assert len(checked) == 1
    assert "warning" in checked[0]
    assert "of the 2 runs saved last, 2 were sealed while KMS was away" in "\t".join(checked[0])
