"""Servers that do not do what they say: each lie is told, by init and by doctor, and nothing is promised."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from servers.lying import BUCKET, LyingServer

from archiver.config import load
from archiver.doctor import Check, examine, exit_code, fencing
from archiver.errors import UnfencedStoreError
from archiver.setup import open_setup

from .conftest import Settle

URL = f"s3://{BUCKET}/a/store"
Checked = Callable[..., dict[str, Check]]


@pytest.fixture(autouse=True)
def anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some credentials: these servers believe every signature."""
    for name, value in (
        *(("AWS_ACCESS_KEY_ID", "someone"), ("AWS_SECRET_ACCESS_KEY", "something")),
        *(("AWS_REGION", "us-east-1"), ("AWS_EC2_METADATA_DISABLED", "true")),
        *(("AWS_CONFIG_FILE", "/dev/null"), ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")),
    ):
        monkeypatch.setenv(name, value)


def test_an_honest_server(settle: Settle, checked: Checked) -> None:
    with LyingServer() as server:
        settings = settle(URL, endpoint_url=server.endpoint)
        before = set(server.objects)
        found = checked(settings)
        assert set(server.objects) == before == {"a/store/store.json"}
        assert exit_code(found.values()) == 0
        for name in ("store", "clock", "fencing", "checksums", "round trip", "class tags", "strangers"):
            assert found[name].verdict == "ok", found[name]
        # What it does not answer is unknown, and never ok.
        for name in ("versioning", "object lock", "encryption", "public access", "lifecycle", "multipart"):
            assert found[name].verdict == "unknown", found[name]
        assert "s3:PutBucketPolicy" in [c.text for c in examine(settings) if c.name == "too many rights"][-1]
        assert not [path for method, path in server.requests if method == "PUT" and "?" in path.rstrip("/")
                    and "tagging" not in path and "x-id" not in path]  # fmt: skip


@pytest.mark.parametrize(("conditions", "how"), [("ignored", "one after"), ("racy", "at the same moment")])
def test_conditions_that_are_not_enforced(
    conditions: str, how: str, settle: Settle, checked: Checked
) -> None:
    with LyingServer(conditions=conditions) as server:
        with pytest.raises(UnfencedStoreError, match=how) as caught:
            settle(URL, endpoint_url=server.endpoint)
        assert caught.value.exit_code == 8
        assert "--without-fencing" in (caught.value.remedy or "")
        assert server.objects == {}

        settings = settle(URL, endpoint_url=server.endpoint, bare=True)
        found = checked(settings)["fencing"]
        assert (found.verdict, found.exit_code) == ("failure", 8)
        assert found.text.startswith("NOT enforced: two writers of one run can both win")
        assert how in found.text
        assert fencing([found]) == "not enforced"


def test_conditions_that_are_not_known(settle: Settle, checked: Checked) -> None:
    with LyingServer(conditions="unknown") as server:
        found = checked(settle(URL, endpoint_url=server.endpoint, bare=True))
        assert (found["fencing"].verdict, found["fencing"].exit_code) == ("failure", 8)
        assert fencing(found.values()) == "not enforced"
        assert "nothing can be saved" in found["fencing"].text
        assert found["permissions"].verdict == "ok"
        assert server.objects == {}


def test_going_on_without_fencing_warns_every_time(settle: Settle, checked: Checked) -> None:
    with LyingServer(conditions="ignored") as server:
        settings = settle(URL, endpoint_url=server.endpoint, fencing=False)
        name = server.objects["a/store/store.json"]
        for _ in range(2):
            warnings = open_setup(settings, "write").warnings
            assert any("two writers of one run can both win" in warning for warning in warnings)
        assert not any("both win" in warning for warning in open_setup(settings, "read").warnings)
        found = checked(settings)["fencing"]
        assert found.verdict == "warning"
        assert found.text.startswith("NOT enforced")
        settle(URL, endpoint_url=server.endpoint, fencing=False)
        assert server.objects["a/store/store.json"] is name  # no second init replaces the name


def test_a_store_that_needs_no_such_setting(settle: Settle, checked: Checked) -> None:
    with LyingServer() as server:
        found = checked(settle(URL, endpoint_url=server.endpoint, fencing=False))["fencing"]
        assert found.verdict == "warning"
        assert "remove store.fencing" in (found.remedy or "")
        assert fencing([found]) == "enforced"


def test_checksums_that_nobody_looks_at(settle: Settle, checked: Checked) -> None:
    with LyingServer(checks_digests=False) as server:
        settings = settle(URL, endpoint_url=server.endpoint)
        found = [check for check in examine(settings) if check.name == "checksums"]
        assert [(check.verdict, check.exit_code) for check in found] == [("failure", 8), ("warning", 0)]
        assert "wrong SHA-256 is accepted" in found[0].text
        assert "wrong Content-MD5 is accepted" in found[1].text
        off = settle(URL, endpoint_url=server.endpoint, checksums="off")
        assert checked(off)["checksums"].verdict == "warning"
        assert set(server.objects) == {"a/store/store.json"}


def test_a_server_that_adds_to_what_it_stores(settle: Settle, checked: Checked) -> None:
    with LyingServer(adds=b"\r\nx-amz-checksum-crc32:AAAAAA==\r\n") as server:
        settings = settle(URL, endpoint_url=server.endpoint, bare=True)
        found = checked(settings)["round trip"]
        assert (found.verdict, found.exit_code) == ("failure", 4)
        assert "with something added" in found.text


@pytest.mark.parametrize("lie", ["keeps_tags", "changes_tags"])
def test_tags_that_are_lost(lie: str, settle: Settle, checked: Checked) -> None:
    with LyingServer(**{lie: False}) as server:
        found = checked(settle(URL, endpoint_url=server.endpoint))
        assert found["class tags"].verdict == "failure"
        assert ("when they change" in found["class tags"].text) == (lie == "changes_tags")
        assert found["classes"].verdict == ("warning" if lie == "keeps_tags" else "ok")


@pytest.mark.parametrize(
    ("ahead", "verdict"), [(0, "ok"), (-20, "ok"), (120, "warning"), (-120, "warning"), (7200, "failure")]
)
def test_the_difference_of_the_clocks_is_measured(
    ahead: int, verdict: str, settle: Settle, checked: Checked
) -> None:
    with LyingServer(clock=timedelta(seconds=-ahead)) as server:
        found = checked(settle(URL, endpoint_url=server.endpoint, bare=True))["clock"]
        assert found.verdict == verdict, found
        if ahead:
            assert ("ahead of" if ahead > 0 else "behind") in found.text
            told = int("".join(character for character in found.text.split(" s ")[0] if character.isdigit()))
            assert abs(told - abs(ahead)) <= 2


def test_what_strangers_may_see(settle: Settle, checked: Checked) -> None:
    with LyingServer(open_to_all=True) as server:
        found = checked(settle(URL, endpoint_url=server.endpoint))["strangers"]
        assert found.verdict == "failure"
        assert "list the objects and read them without credentials" in found.text


def test_rights_over_the_bucket_are_asked_only_where_asking_is_safe(settle: Settle) -> None:
    answers = {"PUT lifecycle": (400, "MalformedXML"), "PUT policy": (403, "AccessDenied")}
    with LyingServer(name="MinIO", set_up=answers) as server:
        settings = settle(URL, endpoint_url=server.endpoint)
        found = {c.verdict: c.text for c in examine(settings) if c.name == "too many rights"}
        assert "s3:PutLifecycleConfiguration" in found["warning"]
        assert "s3:PutBucketPolicy" in found["ok"]
        assert "unknown" not in found
        sent = [path for method, path in server.requests if method == "PUT" and "a/store" not in path]
        assert sent == ["/bucket?lifecycle", "/bucket?policy"]


def test_nothing_listens(settle: Settle, checked: Checked) -> None:
    with LyingServer() as server:
        settings = settle(URL, endpoint_url=server.endpoint, attempts=1)
    found = checked(settings)
    assert (found["store"].verdict, found["store"].exit_code) == ("failure", 8)
    assert found["everything else"].verdict == "unknown"
    assert found["identities"].verdict == "ok"  # the keys are looked at all the same
    assert "fencing" not in found
    assert fencing(found.values()) == "unknown"


def test_a_reader_is_not_told_to_write(
    settle: Settle, checked: Checked, home: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LyingServer() as server:
        settle(URL, endpoint_url=server.endpoint)
        server.lies.may = frozenset({"GET", "HEAD"})
        settings = settle(URL, endpoint_url=server.endpoint, bare=True)
        found = checked(settings)
        assert (found["permissions"].verdict, found["permissions"].exit_code) == ("failure", 8)
        assert "s3:PutObject" in found["permissions"].text

        from archiver.config import config_home

        (config_home() / "keys" / "signing.pem").unlink()
        writers = config_home() / "keys" / "writers.toml"
        reader = load(
            flags={
                "store": {"url": URL, "endpoint_url": server.endpoint},
                "keys": {"writers": writers},
            },
            without_file=True,
        )
        found = checked(reader)
        assert found["permissions"].text == "all that a reader needs: s3:ListBucket, s3:GetObject"
        assert found["fencing"].verdict == "unknown"
        assert exit_code(found.values()) == 0
