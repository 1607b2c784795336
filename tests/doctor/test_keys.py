"""Keys: who opens what is saved, what cannot be read, and whether a key in KMS is of use."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from servers.ministack import Ministack

from archiver import age
from archiver.config import Settings, config_home, load
from archiver.doctor import Check, exit_code, keys
from archiver.setup import initialise

Checked = Callable[..., dict[str, Check]]
NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store in a folder, with keys in their usual place."""
    path = tmp_path / "store"
    initialise(str(path), None, settings=load(without_file=True), now=NOW)
    return path


def settings(folder: Path, **keys: Any) -> Settings:
    return load(flags={"store": {"url": str(folder)}, "keys": keys}, without_file=True)


def test_keys_that_are_there(folder: Path, checked: Checked) -> None:
    found = checked(settings(folder))
    for name in ("recipients", "identities", "signing key", "writers"):
        assert found[name].verdict == "ok"
    assert "the identity on this machine" in found["recipients"].text
    assert "kms" not in found


def test_an_identity_that_others_can_read(folder: Path, checked: Checked) -> None:
    (config_home() / "keys" / "identity.txt").chmod(0o644)
    found = checked(settings(folder))
    assert (found["identities"].verdict, found["identities"].exit_code) == ("failure", 6)
    assert "chmod 600" in (found["identities"].remedy or "")
    assert found["fencing"].verdict == "ok"  # the rest is looked at all the same


def test_a_signing_key_that_is_gone(folder: Path, checked: Checked) -> None:
    missing = config_home() / "keys" / "other.pem"
    found = checked(settings(folder, signing_key=missing))
    assert (found["signing key"].verdict, found["signing key"].exit_code) == ("failure", 6)
    (config_home() / "keys" / "signing.pem").unlink()
    found = checked(settings(folder))
    assert found["signing key"].verdict == "ok"
    assert (found["writers"].verdict, found["writers"].exit_code) == ("failure", 6)
    listed = checked(settings(folder, writers=config_home() / "keys" / "writers.toml"))
    assert listed["writers"].verdict == "ok"
    assert exit_code(listed.values()) == 0


def test_a_list_of_writers_without_the_own_key(folder: Path, tmp_path: Path, checked: Checked) -> None:
    key = "ed25519:" + "A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="
    (tmp_path / "writers.toml").write_text(f'[[writer]]\nname = "others"\nkey = "{key}"\n')
    found = checked(settings(folder, writers=tmp_path / "writers.toml"))["writers"]
    assert found.verdict == "warning"
    assert "is refused here" in found.text
    (tmp_path / "writers.toml").write_text("[[writer]\n")
    assert checked(settings(folder, writers=tmp_path / "writers.toml"))["writers"].verdict == "failure"


def test_recipients_that_nobody_here_opens(folder: Path, checked: Checked) -> None:
    found = checked(settings(folder, recipients=(str(age.generate().recipient),)))["identities"]
    assert found.verdict == "warning"
    assert "does not open here" in found.text
    found = checked(settings(folder, recipients=("age1nonsense",)))["recipients"]
    assert (found.verdict, found.exit_code) == ("failure", 2)


def test_kinds_of_keys_that_do_not_share_a_file(folder: Path, checked: Checked) -> None:
    (own,) = age.read_identities(config_home() / "keys" / "identity.txt")
    assert isinstance(own, age.SecretIdentity)
    hybrid = age.HybridIdentity.generate()
    both = (str(own.recipient), str(hybrid.recipient))
    found = checked(settings(folder, recipients=both))["recipients"]
    assert found.verdict == "failure"
    assert exit_code([found]) == found.exit_code != 0


@pytest.fixture
def kms(folder: Path, ministack: Ministack, kms_caller: Callable[..., None]) -> Callable[..., Settings]:
    """Settings that seal to a key of KMS and to the own identity."""
    (own,) = age.read_identities(config_home() / "keys" / "identity.txt")
    assert isinstance(own, age.SecretIdentity)
    recipient = str(own.recipient)

    def make(arn: str) -> Settings:
        return settings(folder, recipients=(recipient, arn), kms_endpoint_url=ministack.endpoint)

    return make


def test_a_kms_key_that_seals_and_opens(
    kms: Callable[..., Settings], ministack: Ministack, checked: Checked
) -> None:
    arn = ministack.make_key()
    found = checked(kms(arn))
    assert (found["kms"].verdict, found["kms"].text) == ("ok", f"{arn} seals and opens")
    assert found["recipients"].text == "what is saved can be opened by the identity on this machine or KMS"
    alone = load(
        flags={
            "store": {"url": kms(arn).store.url},
            "keys": {"recipients": (arn,), "kms_endpoint_url": ministack.endpoint},
        },
        without_file=True,
    )
    assert checked(alone)["kms"].verdict == "ok"


def test_a_kms_key_that_may_not_open(
    kms: Callable[..., Settings],
    ministack: Ministack,
    kms_caller: Callable[..., None],
    checked: Checked,
) -> None:
    arn = ministack.make_key()
    kms_caller(ministack.make_user("kms:GenerateDataKey", arn=arn))
    found = checked(kms(arn))["kms"]
    assert found.verdict == "warning"
    assert "seals, and does not open here" in found.text


def test_whether_kms_opens(
    kms: Callable[..., Settings], ministack: Ministack, kms_caller: Callable[..., None], folder: Path
) -> None:
    arn = ministack.make_key()

    def opens(made: Settings) -> bool | None:
        return keys.opens_by_kms(keys.hold(made), made)

    assert opens(kms(arn)) is True
    assert opens(settings(folder)) is None
    kms_caller(ministack.make_user("kms:GenerateDataKey", arn=arn))
    assert opens(kms(arn)) is False
    kms_caller(ministack.make_user())
    assert opens(kms(arn)) is None  # it seals nothing, so whether it would open is not seen


def test_kms_keys_that_are_of_no_use(
    kms: Callable[..., Settings],
    ministack: Ministack,
    kms_caller: Callable[..., None],
    checked: Checked,
) -> None:
    arn = ministack.make_key()
    ministack.client().disable_key(KeyId=arn)
    found = checked(kms(arn))["kms"]
    assert (found.verdict, found.exit_code) == ("failure", 6)
    assert "disabled" in found.text
    other = ministack.make_key()
    kms_caller(ministack.make_user("kms:Decrypt", arn=other))
    found = checked(kms(other))["kms"]
    assert (found.verdict, found.exit_code) == ("failure", 6)
    # A sweeper without sources signs and saves nothing, so it need not seal; one with sources has to.
    identity, made = config_home() / "keys" / "identity.txt", kms(other)
    named = {"recipients": made.keys.recipients, "kms_endpoint_url": ministack.endpoint}
    asked = {"store": {"url": made.store.url}, "keys": named}

    def sweeper(*sources: dict[str, str]) -> Check:
        more = {"retention": {"sweeper": True}, "sweep": {"sources": sources}}
        made = load(flags={**asked, **more}, without_file=True)
        (found,) = [one for one in keys.examine(made, keys.hold(made), remote=True) if one.name == "kms"]
        return found

    assert sweeper().verdict == "failure"  # it has an identity, so it is a writer
    identity.rename(identity.with_name("elsewhere"))
    assert sweeper().verdict == "unknown"
    assert sweeper({"kind": "codex"}).verdict == "failure"
    # Who has no signing key saves nothing either: as who restores.
    (config_home() / "keys" / "signing.pem").unlink()
    identity.with_name("elsewhere").rename(identity)
    found = checked(made)["kms"]
    assert (found.verdict, found.exit_code) == ("unknown", 0)


def test_init_writes_how_kms_is_reached(
    ministack: Ministack,
    kms_caller: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arn = ministack.make_key()
    monkeypatch.setenv("ARCHIVER_KEYS__KMS_ENDPOINT_URL", ministack.endpoint)
    asked = load(flags={"keys": {"recipients": (arn,)}}, without_file=True)
    made = initialise(str(tmp_path / "other"), tmp_path / "a.toml", settings=asked, now=NOW)
    monkeypatch.delenv("ARCHIVER_KEYS__KMS_ENDPOINT_URL")
    written = load(tmp_path / "a.toml")
    assert written.keys.recipients == (made.keys.recipient, arn)
    assert written.keys.kms_endpoint_url == ministack.endpoint
    assert json.loads((tmp_path / "other" / "store.json").read_text())["store"] == made.store_id


def test_a_key_for_emergencies_that_nothing_is_sealed_to(folder: Path, checked: Checked) -> None:
    emergency, own = age.generate().recipient, age.read_identities(config_home() / "keys" / "identity.txt")
    both = (str(own[0].recipient), str(emergency))
    found = checked(settings(folder, recipients=both, break_glass=(str(emergency),)))
    assert found["break-glass"].verdict == "ok"
    found = checked(settings(folder, recipients=both[:1], break_glass=(emergency.fingerprint,)))
    assert found["break-glass"].verdict == "warning"
    assert emergency.fingerprint in found["break-glass"].text
    slip = both[1][:-1] + ("q" if both[1][-1] != "q" else "p")
    found = checked(settings(folder, recipients=both, break_glass=(slip,)))
    assert (found["break-glass"].verdict, found["break-glass"].exit_code) == ("failure", 2)
    assert slip in found["break-glass"].text
