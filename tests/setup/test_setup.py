"""First use, `init`, and every way in which something that is needed may be missing."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from archiver import age, layout, sign
from archiver.config import config_home, data_home, load
from archiver.errors import (
    AlreadyExistsError,
    ArchiverError,
    ConfigError,
    ContextMismatchError,
    DigestMismatchError,
    InvalidKeyError,
    KeyUnavailableError,
    RedactionUnavailableError,
    StoreUnreachableError,
)
from archiver.model.record import RetentionClass
from archiver.setup import Initialised, Setup, initialise, make_keys, open_setup
from archiver.setup.initialise import prove_round_trip
from archiver.setup.probes import Probes, remover
from archiver.store import ObjectInfo, open_store
from archiver.store.local import LocalStore

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PROBE = layout.effect_name(layout.INIT_PROBES, "ab" * 16)


def first_use() -> Setup:
    return open_setup(load(), "write", interactive=True, now=NOW)


def init(url: Path | str, config: Path | None = None, **flags: dict[str, object]) -> Initialised:
    return initialise(str(url), config, settings=load(flags=flags), now=NOW)


def put(setup: Setup, name: str = "") -> None:
    setup.store.create(name or layout.record_name("r", 1), [b"x"], retention="record")


def test_first_use_at_a_terminal_makes_a_store_and_keys_once() -> None:
    setup = first_use()
    assert setup.made is not None
    assert (setup.made.new_store, setup.made.new_identity, setup.made.new_signing_key) == (True, True, True)
    assert setup.made.config == config_home() / "archiver.toml"
    assert stat.S_IMODE((data_home() / "store").stat().st_mode) == 0o700
    assert setup.store_id == setup.made.store_id
    assert [r.fingerprint for r in setup.recipients] == [setup.made.keys.fingerprint]
    assert setup.signing_key is not None
    assert setup.writers.judge(setup.signing_key.public, "any", NOW)

    again = first_use()
    assert again.made is None
    assert again.settings.file == config_home() / "archiver.toml"
    assert again.settings.store.id == again.store_id == setup.store_id
    assert again.identities[0].fingerprint == setup.made.keys.fingerprint
    assert open_setup(load(), "read").store_id == setup.store_id


def test_the_round_trip_leaves_only_the_name_of_the_store() -> None:
    assert [info.name for info in first_use().store.list()] == [layout.STORE]


def test_unattended_first_use_makes_nothing(home: Path) -> None:
    with pytest.raises(KeyUnavailableError) as caught:
        open_setup(load(), "write", interactive=False)
    assert "archiver init" in str(caught.value.remedy)
    assert [path.name for path in home.iterdir()] == ["work"]


def test_unattended_with_keys_makes_the_default_store(tmp_path: Path) -> None:
    made = make_keys(tmp_path / "keys", now=NOW)
    flags = {"keys": {"identities": (made.identity_file,), "signing_key": made.signing_file}}
    setup = open_setup(load(flags=flags), "write", now=NOW)
    assert setup.made is not None
    assert (setup.made.new_store, setup.made.new_identity, setup.made.config) == (True, False, None)
    assert open_setup(load(flags=flags), "write", now=NOW).made is None


@pytest.mark.parametrize("lost", ["identity.txt", "signing.pem"])
@pytest.mark.parametrize("configured", [True, False])
def test_a_store_that_holds_objects_never_gets_a_new_key(lost: str, configured: bool) -> None:
    put(first_use())
    (config_home() / "keys" / lost).unlink()
    if not configured:
        (config_home() / "archiver.toml").unlink()
    with pytest.raises(KeyUnavailableError):
        first_use()
    assert not (config_home() / "keys" / lost).exists()


def test_the_missing_key_of_a_full_store_is_told_with_the_way_back() -> None:
    put(first_use())
    shutil.rmtree(config_home())
    for need in ("read", "write"):
        with pytest.raises(KeyUnavailableError) as caught:
            open_setup(load(), need, interactive=True)
        assert "restore your backup" in str(caught.value.remedy)
        assert str(config_home() / "keys" / "identity.txt") in str(caught.value.remedy)
    with pytest.raises(KeyUnavailableError, match="already holds objects"):
        init(data_home() / "store")


def test_reading_before_anything_was_archived() -> None:
    with pytest.raises(ConfigError, match="nothing was archived") as caught:
        open_setup(load(), "read", interactive=True)
    assert "archiver init" in str(caught.value.remedy)


def test_init_writes_a_configuration_that_is_then_used(tmp_path: Path) -> None:
    url = tmp_path / 'a "quoted" store'
    config = tmp_path / "etc" / "archiver.toml"
    made = init(url, config)
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    settings = load(config)
    assert (settings.store.url, settings.store.id) == (str(url), made.store_id)
    assert settings.keys.identities == (made.keys.identity_file,)
    assert settings.keys.recipients == (made.keys.recipient,)
    setup = open_setup(settings, "write")
    assert setup.store_id == made.store_id
    assert setup.require_signing_key().public == made.keys.public


def test_the_list_of_writers_that_init_offers_is_the_one_it_wrote(tmp_path: Path) -> None:
    config = tmp_path / "etc" / "archiver.toml"
    made = init(tmp_path / "store", config)
    text = config.read_text()
    config.write_text(text.replace("# writers = ", "writers = "))
    assert config.read_text() != text
    settings = load(config)
    assert settings.keys.writers == made.keys.writers_file
    setup = open_setup(settings, "write")
    assert setup.writers.judge(made.keys.public, "any", NOW)
    listed = made.keys.writers_file.read_text()
    assert "of rekey, hold, release, merged runs, rm and erase" in listed


def test_init_never_overwrites(tmp_path: Path) -> None:
    config = tmp_path / "archiver.toml"
    config.write_text("# mine\n")
    with pytest.raises(AlreadyExistsError, match="exists already"):
        init(tmp_path / "store", config)
    assert config.read_text() == "# mine\n"
    assert not (tmp_path / "store").exists()


def test_init_uses_the_keys_that_are_there(tmp_path: Path) -> None:
    first = init(tmp_path / "one", tmp_path / "one.toml")
    identity = first.keys.identity_file.read_bytes()
    second = init(tmp_path / "two", tmp_path / "two.toml")
    assert first.keys == second.keys
    assert (second.new_store, second.new_identity, second.new_signing_key) == (True, False, False)
    assert first.store_id != second.store_id
    assert first.keys.identity_file.read_bytes() == identity


def test_init_again_keeps_the_store(tmp_path: Path) -> None:
    first = init(tmp_path / "store", tmp_path / "one.toml")
    put(open_setup(load(tmp_path / "one.toml"), "write"))
    second = init(tmp_path / "store", tmp_path / "two.toml")
    assert (second.new_store, second.store_id) == (False, first.store_id)


@pytest.mark.parametrize("name", ["notes.txt", ".bashrc", "records"])
def test_init_refuses_a_folder_that_holds_something_else(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / name).write_text("x")
    with pytest.raises(AlreadyExistsError, match="not empty"):
        init(folder, tmp_path / "a.toml")
    assert [path.name for path in folder.iterdir()] == [name]
    assert not (tmp_path / "a.toml").exists()
    assert not config_home().exists()


def test_init_takes_an_empty_folder_and_a_fresh_disk(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    (folder / "lost+found").mkdir(parents=True)
    assert init(folder).new_store


def test_init_refuses_what_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ArchiverError):
        init(tmp_path / "file")
    with pytest.raises(ConfigError):
        init("gopher://host/x")


def test_another_store_in_the_place_of_the_configured_one_is_refused(tmp_path: Path) -> None:
    init(tmp_path / "store", tmp_path / "archiver.toml")
    shutil.rmtree(tmp_path / "store")
    init(tmp_path / "store")
    with pytest.raises(ContextMismatchError, match="has the id"):
        open_setup(load(tmp_path / "archiver.toml"), "read")


def test_a_configured_store_that_is_not_there(tmp_path: Path) -> None:
    init(tmp_path / "store", tmp_path / "archiver.toml")
    (tmp_path / "store" / layout.STORE).unlink()
    with pytest.raises(ConfigError, match="there is no store at") as caught:
        open_setup(load(tmp_path / "archiver.toml"), "write")
    assert "init" not in str(caught.value.remedy), "what an unmounted disk looks like gets no second store"
    shutil.rmtree(tmp_path / "store")
    for need in ("read", "write"):
        with pytest.raises(StoreUnreachableError):
            open_setup(load(tmp_path / "archiver.toml"), need)
    assert not (tmp_path / "store").exists()


def test_configured_keys_that_are_not_there_or_open_to_others(tmp_path: Path) -> None:
    made = init(tmp_path / "store", tmp_path / "archiver.toml")
    made.keys.identity_file.chmod(0o644)
    with pytest.raises(InvalidKeyError, match="other users"):
        open_setup(load(tmp_path / "archiver.toml"), "read")
    made.keys.identity_file.unlink()
    with pytest.raises(KeyUnavailableError, match=r"identity\.txt"):
        open_setup(load(tmp_path / "archiver.toml"), "read")


def test_a_writer_may_have_recipients_only(tmp_path: Path) -> None:
    made = init(tmp_path / "store")
    made.keys.identity_file.unlink()
    flags: dict[str, dict[str, object]] = {
        "store": {"url": str(tmp_path / "store")},
        "keys": {"recipients": (made.keys.recipient,)},
    }
    setup = open_setup(load(flags=flags), "write")
    assert (setup.identities, [str(r) for r in setup.recipients]) == ((), [made.keys.recipient])
    with pytest.raises(KeyUnavailableError):
        open_setup(load(flags={"store": {"url": str(tmp_path / "store")}}), "read")


def test_a_reader_needs_no_signing_key(tmp_path: Path) -> None:
    made = init(tmp_path / "store", tmp_path / "archiver.toml")
    text = (tmp_path / "archiver.toml").read_text()
    (tmp_path / "archiver.toml").write_text(
        "\n".join(line for line in text.splitlines() if not line.startswith("signing_key"))
    )
    made.keys.signing_file.unlink()
    setup = open_setup(load(tmp_path / "archiver.toml"), "read")
    with pytest.raises(KeyUnavailableError, match="no signing key"):
        setup.require_signing_key()
    with pytest.raises(KeyUnavailableError, match="no signing key"):
        open_setup(load(tmp_path / "archiver.toml"), "write")


class Liar(LocalStore):
    """A store that gives back something else than was put there."""

    def __init__(self, root: Path, other: bytes) -> None:
        super().__init__(root)
        self._other = other

    def create(self, name: str, body: Iterable[bytes], *, retention: RetentionClass) -> ObjectInfo:
        return super().create(name, [self._other], retention=retention)


def test_the_round_trip_finds_a_store_that_changes_objects(tmp_path: Path) -> None:
    setup = first_use()
    key = setup.require_signing_key()
    root = Path(str(data_home() / "store"))
    another: list[bytes] = []
    sealer = age.seal(setup.recipients, another.append)
    sealer.write(sign.sign(key, "application/vnd.checkpoint-archiver.probe", b"another body"))
    sealer.close()
    for wrong in (b"".join(another), b"garbage", b""):
        store = Liar(root, wrong)
        with (
            Probes(layout.INIT_PROBES, remover(store, setup.settings)) as probes,
            pytest.raises(ArchiverError) as caught,
        ):
            prove_round_trip(store, probes.name(), setup.recipients, setup.identities, key, setup.settings)
        assert caught.value.exit_code == DigestMismatchError.exit_code
        assert [info.name for info in store.list()] == [layout.STORE]


def test_a_stranger_to_the_recipients_fails_the_round_trip(tmp_path: Path) -> None:
    setup = first_use()
    with pytest.raises(KeyUnavailableError):
        prove_round_trip(
            open_store(str(data_home() / "store")),
            PROBE,
            (age.generate().recipient,),
            setup.identities,
            setup.require_signing_key(),
            setup.settings,
        )


def test_own_identities_and_named_variables_are_known_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    setup = first_use()
    assert setup.made is not None
    secret = setup.made.keys.identity_file.read_text().splitlines()[-1]
    monkeypatch.setenv("HARMLESS_NAME", "an-unguessable-value")
    assert secret in {exact.value for exact in setup.exact_values()}
    assert "an-unguessable-value" not in {exact.value for exact in setup.exact_values()}
    monkeypatch.setenv("ARCHIVER_ARCHIVE__SECRET_ENVIRONMENT", "HARMLESS_NAME")
    named = open_setup(load(), "read").exact_values()
    assert {exact.name: exact.value for exact in named}["HARMLESS_NAME"] == "an-unguessable-value"


def test_values_of_files_are_known_secrets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first_use()
    mine = tmp_path / "mine.env"
    mine.write_text("DB_PASSWORD=an-unguessable-value-1\n")
    known = Path.home() / ".pgpass"
    known.write_text("h:1:d:u:an-unguessable-value-2\n")
    monkeypatch.setenv("ARCHIVER_REDACTION__SECRET_FILES", f"{tmp_path}/*.env")
    values = {exact.value for exact in open_setup(load(), "read").exact_values()}
    assert {"an-unguessable-value-1", "an-unguessable-value-2"} <= values
    monkeypatch.setenv("ARCHIVER_REDACTION__WELL_KNOWN_FILES", "false")
    assert "an-unguessable-value-2" not in {one.value for one in open_setup(load(), "read").exact_values()}
    mine.unlink()
    with pytest.raises(RedactionUnavailableError, match="no file fits"):
        open_setup(load(), "read").exact_values()


def test_every_kind_of_identity_in_a_file_is_a_known_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    made = first_use().made
    assert made is not None
    quantum = age.HybridIdentity.generate()
    with made.keys.identity_file.open("a") as file:
        file.write(quantum.secret_text() + "\n")
    setup = open_setup(load(), "read")
    assert len(setup.identities) == 2
    own = {exact.value for exact in setup.exact_values() if exact.name == "archiver identity"}
    assert own == {identity.secret_text() for identity in setup.identities}
    assert quantum.secret_text() in own


def absent_signing_key(tmp_path: Path) -> Initialised:
    made = init(tmp_path / "store", tmp_path / "archiver.toml")
    made.keys.signing_file.unlink()
    return made


def test_a_reader_with_a_list_needs_no_signing_key_though_one_is_configured(tmp_path: Path) -> None:
    made = absent_signing_key(tmp_path)
    config = tmp_path / "archiver.toml"
    with pytest.raises(KeyUnavailableError, match="whose signatures to believe is not known") as caught:
        open_setup(load(config), "read")
    assert f"--writers {made.keys.writers_file}" in (caught.value.remedy or "")
    settings = load(config, {"keys": {"writers": made.keys.writers_file}})
    setup = open_setup(settings, "read")
    assert [writer.key for writer in setup.writers.trusted] == [made.keys.public]
    with pytest.raises(KeyUnavailableError, match=r"signing\.pem"):
        open_setup(settings, "write")


def nameless(tmp_path: Path) -> tuple[Initialised, Path]:
    """A configured store that holds a record and has lost its name."""
    config = tmp_path / "archiver.toml"
    made = init(tmp_path / "store", config)
    put(open_setup(load(config), "write"), layout.record_name("run", 1))
    (tmp_path / "store" / layout.STORE).unlink()
    return made, config


def test_the_configured_id_goes_on_where_the_name_is_lost(tmp_path: Path) -> None:
    made, config = nameless(tmp_path)
    setup = open_setup(load(config), "read")
    assert setup.store_id == made.store_id
    assert "had lost its store.json" in setup.warnings[0]
    assert not (tmp_path / "store" / layout.STORE).exists()
    with pytest.raises(ConfigError, match=r"no store\.id says"):
        open_setup(load(config, {"store": {"url": str(tmp_path / "store"), "id": None}}), "read")
    assert open_setup(load(config), "write").warnings
    assert open_setup(load(config), "read").warnings == ()


def test_init_on_a_store_that_lost_its_name_says_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, config = nameless(tmp_path)
    with pytest.raises(AlreadyExistsError, match=made.store_id) as caught:
        init(tmp_path / "store", config)
    assert str(config) in (caught.value.remedy or "")
    with pytest.raises(AlreadyExistsError, match="is gone") as caught:
        init(tmp_path / "store", tmp_path / "two.toml")
    assert "ARCHIVER_STORE__ID" in (caught.value.remedy or "")
    monkeypatch.setenv("ARCHIVER_STORE__ID", made.store_id)
    again = init(tmp_path / "store", tmp_path / "two.toml")
    assert (again.store_id, again.new_store) == (made.store_id, False)


def test_a_lost_name_of_the_default_store_is_not_called_nothing_archived() -> None:
    setup = first_use()
    put(setup, layout.record_name("run", 1))
    (data_home() / "store" / layout.STORE).unlink()
    (config_home() / "archiver.toml").unlink()
    with pytest.raises(ConfigError, match="holds objects, but"):
        open_setup(load(), "read")


def test_init_goes_on_where_it_was_ended(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    (folder / ".tmp").mkdir(parents=True)
    (folder / ".store.json.class").write_text("hold\n")
    made = init(folder)
    made.keys.signing_file.unlink()
    again = init(folder)
    assert (again.new_identity, again.new_signing_key) == (False, True)


def test_a_half_pair_is_named_by_keygen(tmp_path: Path) -> None:
    made = make_keys(tmp_path / "keys", now=datetime.now(UTC))
    made.signing_file.unlink()
    with pytest.raises(AlreadyExistsError, match=r"identity\.txt exists.*signing\.pem does not") as caught:
        make_keys(tmp_path / "keys", now=datetime.now(UTC))
    assert "archiver init" in (caught.value.remedy or "")


def test_a_configuration_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "archiver.toml"
    seen: list[bool] = []
    real = os.fsync

    def look(handle: int) -> None:
        if ".archiver.toml" in str(Path(f"/proc/self/fd/{handle}").readlink()):
            seen.append(config.exists())
        real(handle)

    monkeypatch.setattr(os, "fsync", look)
    init(tmp_path / "store", config)
    assert seen == [False]
    assert config.read_text()


def test_the_hint_for_a_missing_store_works_beside_a_configuration(tmp_path: Path) -> None:
    init(tmp_path / "store", tmp_path / "archiver.toml")
    (tmp_path / "empty").mkdir()
    flags: dict[str, dict[str, object]] = {"store": {"url": str(tmp_path / "empty"), "id": None}}
    with pytest.raises(ConfigError, match="there is no store") as caught:
        open_setup(load(tmp_path / "archiver.toml", flags), "read")
    assert "--config FILE" in (caught.value.remedy or "")
