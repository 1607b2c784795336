"""`init` on a server: what it refuses with nothing made, what it proves, and what it writes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from servers.lying import BUCKET, LyingServer
from servers.proxy import Fault, FaultProxy
from servers.seaweed import Seaweed

from archiver import age, layout
from archiver.config import config_home, load
from archiver.errors import (
    AlreadyExistsError,
    ArchiverError,
    ConfigError,
    KeyUnavailableError,
    StoreDeniedError,
    StoreMissingError,
    StoreUnreachableError,
    UnsupportedSchemaError,
)
from archiver.setup import Initialised, fencing, initialise, open_setup
from archiver.setup.remote import store_options
from archiver.store import open_store
from archiver.store.s3 import CLASS_TAG

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
Become = Callable[[Seaweed, str], None]


@pytest.fixture(autouse=True)
def small_race(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two writers race once; the whole race is tested with `doctor`, which asks the same."""
    monkeypatch.setattr(fencing, "RACERS", 2)
    monkeypatch.setattr(fencing, "ROUNDS", 1)


def init(url: str, config: Path | None = None, recipients: tuple[str, ...] = (), **store: Any) -> Initialised:
    keys = {"recipients": recipients} if recipients else {}
    settings = load(flags={"store": store, "keys": keys}, without_file=True)
    return initialise(url, config, settings=settings, now=NOW)


def keys(seaweed: Seaweed, url: str) -> list[str]:
    """What lies below the address, without its prefix."""
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    answer = seaweed.client().list_objects_v2(Bucket=bucket, Prefix=prefix)
    return [entry["Key"].removeprefix(f"{prefix}/") for entry in answer.get("Contents", [])]


def test_the_configuration_that_is_written_is_all_that_is_needed(
    seaweed: Seaweed, s3_url: str, tmp_path: Path
) -> None:
    other = age.generate()
    config = tmp_path / "archiver.toml"
    made = init(s3_url, config, (str(other.recipient),), endpoint_url=seaweed.endpoint, region="us-east-1")
    assert (made.new_store, made.remote, made.left, made.warnings) == (True, True, (), ())
    assert keys(seaweed, s3_url) == [layout.STORE]
    settings = load(config)
    assert (settings.store.url, settings.store.id) == (s3_url, made.store_id)
    assert (settings.store.endpoint_url, settings.store.region) == (seaweed.endpoint, "us-east-1")
    assert settings.store.fencing
    assert settings.keys.recipients == (made.keys.recipient, str(other.recipient))
    setup = open_setup(settings, "write")
    assert (setup.store_id, setup.warnings) == (made.store_id, ())
    assert len(setup.recipients) == 2
    assert setup.store.head(layout.STORE).retention == "hold"


def test_what_is_said_in_the_environment_is_written_too(
    seaweed: Seaweed, s3_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHIVER_STORE__ENDPOINT_URL", seaweed.endpoint)
    monkeypatch.setenv("ARCHIVER_STORE__CHECKSUMS", "basic")
    initialise(s3_url, tmp_path / "a.toml", settings=load(), now=NOW)
    monkeypatch.delenv("ARCHIVER_STORE__ENDPOINT_URL")
    monkeypatch.delenv("ARCHIVER_STORE__CHECKSUMS")
    settings = load(tmp_path / "a.toml")
    assert (settings.store.endpoint_url, settings.store.checksums) == (seaweed.endpoint, "basic")


def test_again_on_the_same_store(seaweed: Seaweed, s3_url: str, tmp_path: Path) -> None:
    first = init(s3_url, endpoint_url=seaweed.endpoint)
    second = init(s3_url, tmp_path / "two.toml", endpoint_url=seaweed.endpoint)
    assert (second.new_store, second.store_id) == (False, first.store_id)
    assert keys(seaweed, s3_url) == [layout.STORE]


def test_one_way_in_is_warned_of_at_init_and_at_every_save(
    seaweed: Seaweed, s3_url: str, tmp_path: Path
) -> None:
    made = init(s3_url, tmp_path / "a.toml", endpoint_url=seaweed.endpoint)
    assert len(made.warnings) == 1
    assert "in one way only, by the identity on this machine" in made.warnings[0]
    assert "ARN of a KMS key" in made.warnings[0]
    for _ in range(2):
        assert open_setup(load(tmp_path / "a.toml"), "write").warnings == made.warnings
    assert open_setup(load(tmp_path / "a.toml"), "read").warnings == ()
    # Two keys on one machine are one way.
    more = age.generate()
    age.write_identity(tmp_path / "more.txt", more, created=NOW)
    flags: dict[str, dict[str, object]] = {
        "keys": {
            "identities": (made.keys.identity_file, tmp_path / "more.txt"),
            "recipients": (made.keys.recipient, str(more.recipient)),
        }
    }
    assert "in one way only" in open_setup(load(tmp_path / "a.toml", flags), "write").warnings[0]
    flags["keys"]["identities"] = (made.keys.identity_file,)
    assert open_setup(load(tmp_path / "a.toml", flags), "write").warnings == ()


def test_a_folder_is_not_warned_of(tmp_path: Path) -> None:
    assert init(str(tmp_path / "store"), tmp_path / "a.toml").warnings == ()
    assert open_setup(load(tmp_path / "a.toml"), "write").warnings == ()


def test_a_writer_that_may_not_delete_leaves_its_probes_and_says_so(
    seaweed: Seaweed, s3_url: str, aws_environment: Become
) -> None:
    aws_environment(seaweed, "writer")
    made = init(s3_url, endpoint_url=seaweed.endpoint)
    assert sorted([*made.left, layout.STORE]) == keys(seaweed, s3_url)
    assert all(map(layout.is_probe, made.left))
    settings = load(flags={"store": {"endpoint_url": seaweed.endpoint}})
    store = open_store(s3_url, options=store_options(settings))
    assert {store.head(name).retention for name in made.left} == {"live"}


def test_where_init_was_ended_half_way_it_goes_on(seaweed: Seaweed, s3_url: str) -> None:
    bucket, _, prefix = s3_url.removeprefix("s3://").partition("/")
    probe = layout.effect_name(layout.INIT_PROBES, "ab" * 16)
    seaweed.client().put_object(Bucket=bucket, Key=f"{prefix}/{probe}", Body=b"probe")
    seaweed.client().put_object(Bucket=bucket, Key=f"{prefix}/", Body=b"")  # as consoles show a folder
    assert init(s3_url, endpoint_url=seaweed.endpoint).new_store


def test_another_init_at_the_same_moment_makes_the_same_store(seaweed: Seaweed, s3_url: str) -> None:
    """It names the store after this one has found no name, and before it looks what else is there."""
    others: list[Initialised] = []
    with FaultProxy(seaweed.port) as proxy:
        proxy.script(
            Fault(
                "pass",
                path="/store/&encoding",  # the list of all there is
                do=lambda _: others.append(init(s3_url, endpoint_url=seaweed.endpoint)),
            )
        )
        made = init(s3_url, endpoint_url=proxy.endpoint)
    assert (others[0].new_store, made.new_store) == (True, False)
    assert made.store_id == others[0].store_id


@pytest.mark.parametrize("key", ["notes.txt", "My holiday/1 (2).jpg", "effects/run/x", "records"])
def test_a_prefix_that_holds_something_else_is_refused(
    seaweed: Seaweed, s3_url: str, key: str, tmp_path: Path
) -> None:
    bucket, _, prefix = s3_url.removeprefix("s3://").partition("/")
    seaweed.client().put_object(Bucket=bucket, Key=f"{prefix}/{key}", Body=b"x")
    with pytest.raises(AlreadyExistsError, match="is no store") as caught:
        init(s3_url, tmp_path / "a.toml", endpoint_url=seaweed.endpoint)
    assert key in str(caught.value)
    assert "prefix of its own" in (caught.value.remedy or "")
    assert keys(seaweed, s3_url) == [key]
    assert not (tmp_path / "a.toml").exists()
    assert not config_home().exists()


def test_a_store_of_a_later_format_is_refused(seaweed: Seaweed, s3_url: str) -> None:
    bucket, _, prefix = s3_url.removeprefix("s3://").partition("/")
    later = b'{"format":9,"store":"' + b"ab" * 16 + b'"}\n'
    seaweed.client().put_object(Bucket=bucket, Key=f"{prefix}/store.json", Body=later)
    with pytest.raises(UnsupportedSchemaError, match="format 9"):
        init(s3_url, endpoint_url=seaweed.endpoint)
    assert keys(seaweed, s3_url) == [layout.STORE]
    assert not config_home().exists()


def test_a_full_store_never_gets_a_new_key(seaweed: Seaweed, s3_url: str, tmp_path: Path) -> None:
    init(s3_url, tmp_path / "a.toml", endpoint_url=seaweed.endpoint)
    setup = open_setup(load(tmp_path / "a.toml"), "write")
    setup.store.create(layout.record_name("r", 1), [b"x"], retention="record")
    shutil.rmtree(config_home() / "keys")
    with pytest.raises(KeyUnavailableError, match="already holds objects"):
        init(s3_url, endpoint_url=seaweed.endpoint)
    assert not (config_home() / "keys").exists()


def test_a_store_that_lost_its_name_keeps_its_id(seaweed: Seaweed, s3_url: str, tmp_path: Path) -> None:
    made = init(s3_url, tmp_path / "a.toml", endpoint_url=seaweed.endpoint)
    setup = open_setup(load(tmp_path / "a.toml"), "write")
    setup.store.create(layout.record_name("r", 1), [b"x"], retention="record")
    setup.store.delete(layout.STORE)
    with pytest.raises(AlreadyExistsError, match=made.store_id):
        init(s3_url, tmp_path / "a.toml", endpoint_url=seaweed.endpoint)
    again = init(s3_url, tmp_path / "b.toml", endpoint_url=seaweed.endpoint, id=made.store_id)
    assert again.store_id == made.store_id


def test_a_store_that_was_not_set_up_says_how(seaweed: Seaweed, s3_url: str, tmp_path: Path) -> None:
    init(s3_url, endpoint_url=seaweed.endpoint)
    flags: dict[str, dict[str, object]] = {
        "store": {"url": f"{s3_url}-2", "endpoint_url": seaweed.endpoint, "region": "us-east-1"}
    }
    for need in ("read", "write"):
        with pytest.raises(ConfigError, match="there is no store at") as caught:
            open_setup(load(flags=flags), need)
        remedy = caught.value.remedy or ""
        assert f"archiver init {s3_url}-2 --region us-east-1 --endpoint-url {seaweed.endpoint}" in remedy
    assert keys(seaweed, f"{s3_url}-2") == []


def refused(kind: type[ArchiverError], match: str, url: str, **store: Any) -> None:
    """It is told with a next step, and nothing was made on this machine."""
    with pytest.raises(kind, match=match) as caught:
        init(url, config_home() / "archiver.toml", **store)
    assert caught.value.remedy
    assert not config_home().exists()


def test_every_way_in_which_a_server_can_refuse_is_told_with_a_next_step(
    seaweed: Seaweed, s3_url: str, aws_environment: Become, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = {"endpoint_url": seaweed.endpoint, "attempts": 1}
    refused(StoreMissingError, "does not exist", "s3://no-such-bucket/x", **at)
    refused(ConfigError, "not the address", "s3://Not_A_Bucket/x", **at)
    refused(
        StoreUnreachableError, "cannot be connected", s3_url, endpoint_url="http://127.0.0.1:9", attempts=1
    )
    refused(ConfigError, "profile", s3_url, profile="nobody", **at)
    aws_environment(seaweed, "reader")
    refused(StoreDeniedError, "s3:PutObject", s3_url, **at)
    aws_environment(seaweed, "stranger")
    refused(StoreDeniedError, "s3:GetObject", s3_url, **at)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    refused(StoreDeniedError, "the secret key is wrong", s3_url, **at)
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    refused(StoreDeniedError, "no usable credentials", s3_url, **at)
    assert keys(seaweed, s3_url) == []


def test_the_name_of_a_store_without_fencing_is_never_replaced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "anything")
    with LyingServer(conditions="ignored") as server:
        at = {"endpoint_url": server.endpoint, "region": "us-east-1", "fencing": False}
        first = init(f"s3://{BUCKET}/x", tmp_path / "a.toml", **at)
        second = init(f"s3://{BUCKET}/x", tmp_path / "b.toml", **at)
        assert first.store_id == second.store_id
        assert any("both win" in warning for warning in first.warnings)
        assert load(tmp_path / "a.toml").store.fencing is False
        assert server.objects["x/store.json"].tags == {CLASS_TAG: "hold"}
