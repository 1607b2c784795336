"""What `archiver doctor` says of roles of the module, under their own credentials, on an emulator."""

from __future__ import annotations

import json

import pytest
from inside import command

from terraform.test_commands import Machine, machine  # noqa: F401


@pytest.mark.soak
@pytest.mark.parametrize(
    ("role", "work", "excess"),
    [
        ("archiver", "a create-only writer", False),
        ("runner", "a writer", False),
        ("administrator", "a writer", True),
        ("sweeper", "a sweeper", False),
        ("restorer", "a reader", False),
    ],
)
def test_a_role_has_what_it_needs_and_no_more(
    machine: Machine,  # noqa: F811
    role: str,
    work: str,
    excess: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = machine(role)
    if role == "restorer":  # who restores has no signing key
        monkeypatch.delenv("ARCHIVER_KEYS__SIGNING_KEY")
    done = command("doctor", "--config", config, "--json")
    assert done.code == 0, done.out
    found = json.loads(done.out)["checks"]
    (needed,) = [one for one in found if one["check"] == "permissions"]
    assert needed["verdict"] == "ok"
    assert needed["text"].startswith(f"all that {work} needs")
    verdicts = {one["verdict"] for one in found if one["check"] == "too many rights"}
    assert ("warning" in verdicts) == excess
    assert {one["verdict"] for one in found if one["check"] in ("lifecycle", "encryption")} == {"ok"}
