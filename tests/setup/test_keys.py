"""Key files: made once, for their owner alone, readable by other tools."""

from __future__ import annotations

import re
import stat
from datetime import UTC, datetime
from pathlib import Path

import pyrage  # type: ignore[import-untyped]  # it ships no types
import pytest

from archiver import age, sign
from archiver.config import load
from archiver.errors import AlreadyExistsError, ConfigError
from archiver.setup import keys, make_keys
from archiver.writers import Writers

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_keys_are_made_for_their_owner_alone_and_other_tools_read_them(tmp_path: Path) -> None:
    made = make_keys(tmp_path / "a" / "keys", now=NOW)
    for path in (made.identity_file, made.signing_file):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    lines = made.identity_file.read_text().splitlines()
    assert lines[0] == "# created: 2026-03-01T12:00:00+00:00"
    assert lines[1] == f"# public key: {made.recipient}"
    assert str(pyrage.x25519.Identity.from_str(lines[2]).to_public()) == made.recipient
    assert age.read_identities(made.identity_file)[0].fingerprint == made.fingerprint
    assert sign.SigningKey.load(made.signing_file).public == made.public


def test_keys_that_one_machine_makes_on_one_day_have_names_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: 'büro"\x1b]0;x')
    names = set()
    for folder in ("1", "2"):
        made = make_keys(tmp_path / folder, now=NOW)
        (writer,) = Writers.load(made.writers_file).trusted
        assert re.fullmatch(r"[A-Za-z0-9._-]+@b-ro---0-x/2026-03-01/[0-9a-f]{8}", writer.name)
        names.add(writer.name)
    assert len(names) == 2


def test_a_post_quantum_identity(tmp_path: Path) -> None:
    made = make_keys(tmp_path, now=NOW, post_quantum=True)
    assert made.recipient.startswith("age1pq1")
    assert made.identity_file.read_text().splitlines()[1] == f"# public key: {made.recipient}"
    settings = load(flags={"keys": {"identities": (str(made.identity_file),)}})
    identities = keys.load_identities(settings)
    assert [str(r) for r in keys.recipients(settings, identities)] == [made.recipient]


@pytest.mark.parametrize("taken", ["identity.txt", "signing.pem"])
def test_nothing_is_written_when_either_name_is_taken(tmp_path: Path, taken: str) -> None:
    (tmp_path / taken).write_text("precious")
    with pytest.raises(AlreadyExistsError, match=taken):
        make_keys(tmp_path, now=NOW)
    assert [path.name for path in tmp_path.iterdir() if path.name != "home"] == [taken]
    assert (tmp_path / taken).read_text() == "precious"


def test_a_dangling_link_is_a_taken_name(tmp_path: Path) -> None:
    (tmp_path / "identity.txt").symlink_to(tmp_path / "nowhere")
    with pytest.raises(AlreadyExistsError):
        make_keys(tmp_path, now=NOW)
    assert not (tmp_path / "nowhere").exists()


def test_recipients_are_those_of_the_identities_unless_named(tmp_path: Path) -> None:
    one, two = make_keys(tmp_path / "1", now=NOW), make_keys(tmp_path / "2", now=NOW)
    files = f"{one.identity_file},{two.identity_file}"
    settings = load(flags={"keys": {"identities": files}})
    identities = keys.load_identities(settings)
    assert [str(r) for r in keys.recipients(settings, identities)] == [one.recipient, two.recipient]
    settings = load(flags={"keys": {"identities": files, "recipients": (two.recipient, two.recipient)}})
    assert [str(r) for r in keys.recipients(settings, identities)] == [two.recipient]
    for wrong in ("age1nonsense", one.identity_file.read_text().splitlines()[2]):
        settings = load(flags={"keys": {"recipients": (wrong,)}})
        with pytest.raises(ConfigError, match=r"keys\.recipients") as caught:
            keys.recipients(settings, identities)
        assert "AGE-SECRET-KEY-1" not in f"{caught.value} {caught.value.remedy}".replace(
            "AGE-SECRET-KEY-1…", ""
        )
