"""The commands under the roles' own credentials, with the configurations that the module gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from inside import command

from archiver.config import load
from archiver.lifecycle.rules import Wanted, drift
from archiver.retention import DAYS
from archiver.sign import SigningKey
from terraform.applied import Applied
from terraform.plan import ROLES

Machine = Callable[[str], Path]


@pytest.fixture
def machine(
    applied: Applied,
    sessions: Callable[[str], dict[str, str]],
    become: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Machine:
    """Makes this process a machine with that role: its credentials, its configuration, and no identity.

    All machines of a test sign with one key, and trust it.
    """
    signing = tmp_path / "keys" / "signing.pem"
    signing.parent.mkdir()
    key = SigningKey.generate()
    key.save(signing)
    writers = signing.with_name("writers.toml")
    writers.write_text(
        f'[[writer]]\nname = "test"\nkey = "{key.public}"\n'
        f'[[administrator]]\nname = "test"\nkey = "{key.public}"\n'
    )
    writers.chmod(0o600)

    def be(role: str) -> Path:
        become(sessions(role))
        monkeypatch.setenv("ARCHIVER_KEYS__SIGNING_KEY", str(signing))
        monkeypatch.setenv("ARCHIVER_KEYS__WRITERS", str(writers))
        config = tmp_path / f"{role}.toml"
        config.write_text(applied.outputs["archiver_toml"][role])
        return config

    return be


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path / "note.txt"
    path.write_text("hello\n")
    return path


@pytest.mark.parametrize("role", ROLES)
def test_the_configuration_of_each_role(applied: Applied, machine: Machine, role: str) -> None:
    settings = load(machine(role))
    arn = applied.outputs["archive_key_arn"]
    assert settings.store.url == applied.url
    assert settings.store.region == "eu-central-1"
    assert settings.keys.kms == (arn,)
    assert settings.keys.recipients[0] == arn
    assert settings.keys.break_glass == settings.keys.recipients[1:]
    assert settings.retention.sweeper is (role == "sweeper")
    assert settings.audit.store is (role in ("runner", "administrator"))
    assert settings.retention.days == {**DAYS, "success": 60, "record": 730}


def test_the_archiver_archives_and_the_restorer_restores(
    machine: Machine, note: Path, tmp_path: Path
) -> None:
    config = machine("archiver")
    done = command(
        "archive", note, "--run-id", "by-archiver", "--task", "billing-7", "--config", config, "--json"
    )
    assert done.code == 0, done.err
    assert "break" not in done.err
    # It cannot read back what it has saved, so it cannot go on with it either.
    again = command("archive", note, "--run-id", "by-archiver", "--task", "billing-7", "--config", config)
    assert again.code == 8, again.err
    opened = command("restore", "by-archiver", "--into", tmp_path / "no", "--config", config)
    assert opened.code == 8, opened.err

    config = machine("restorer")
    found = command("restore", "by-archiver", "--into", tmp_path / "out", "--config", config, "--json")
    assert found.code == 0, found.err
    assert (next((tmp_path / "out").rglob("transcript/*"))).read_text() == "hello\n"
    mine = command("archive", note, "--run-id", "by-restorer", "--config", config)
    assert mine.code != 0
    assert "s3:PutObject" in mine.err or "kms:GenerateDataKey" in mine.err


def test_the_runner_goes_on_with_its_own_run(machine: Machine, note: Path, tmp_path: Path) -> None:
    config = machine("runner")
    for _ in range(2):
        done = command("archive", note, "--run-id", "by-runner", "--task", "billing-7", "--config", config)
        assert done.code == 0, done.err
    found = command("restore", "by-runner", "--into", tmp_path / "out", "--config", config)
    assert found.code == 0, found.err
    assert "local only" not in found.err  # it leaves its audit in the store


def test_no_rule_of_the_bucket_differs_from_those_of_the_program(applied: Applied, machine: Machine) -> None:
    """What Terraform has put there is what `archiver lifecycle apply` would."""
    settings = load(machine("administrator"))
    rules = applied.client("s3").get_bucket_lifecycle_configuration(Bucket=applied.bucket)["Rules"]
    wanted = Wanted("team/archive/", True, "archiver-class", settings.retention.days)
    assert drift(rules, wanted) == []
    assert drift(rules, Wanted("team/archive/", True, "archiver-class", DAYS)) != []


def test_a_second_plan_is_empty(applied: Applied) -> None:
    applied.terraform.run("plan", "-input=false", "-lock=false", "-detailed-exitcode", applied.emulated)
