"""The probe `credentials` on credentials made here, which are taken away, expire, or change their owner."""

from __future__ import annotations

import base64
import json
import os
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from servers.scripted import Answer, ScriptedServer

from archiver.aws import presigned
from archiver.aws.options import AwsOptions
from archiver.freshness import Verdict, judge_all
from archiver.freshness.credentials import CredentialsProbe
from archiver.freshness.statements import moment, of_file, of_value

from .web import NOW, Raw, Web, context, hang

PROBE = CredentialsProbe()
HOUR = timedelta(hours=1)


def jwt(expires: object = None, **claims: object) -> str:
    """A token as servers make them, with a signature that nobody can check."""
    payload = {"sub": secrets.token_hex(8), **claims} | ({} if expires is None else {"exp": expires})
    parts = [json.dumps(part).encode() for part in ({"alg": "HS256", "typ": "JWT"}, payload)]
    parts.append(secrets.token_bytes(32))
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def at(moment: datetime) -> int:
    return int(moment.timestamp())


def captured(*names: str, **facts: Any) -> Any:
    hosts = facts.pop("hosts", ())
    return json.loads(json.dumps(PROBE.capture(context(*hosts, credentials=names, **facts))))


def judged(then: Any, **facts: Any) -> Verdict:
    return PROBE.judge(then, context(*facts.pop("hosts", ()), **facts))


def changed(before: str | None, after: str | None) -> tuple[Verdict, str]:
    """The verdict on a variable that was one value and is another now, and all that was written."""
    then = captured("env:TOKEN", environ={} if before is None else {"TOKEN": before})
    verdict = judged(then, environ={} if after is None else {"TOKEN": after})
    return verdict, f"{json.dumps(then)} {verdict}"


@pytest.mark.parametrize(
    ("before", "after", "state", "words"),
    [
        ("ghp_", "ghp_", "FRESH", "there (GitHub token), and states no expiry"),
        ("sk-ant-", "sk-ant-", "FRESH", "Anthropic key"),
        ("", "", "FRESH", "there (text)"),
        ("ghp_", None, "STALE", "not set"),
        (None, "ghp_", "UNKNOWN", "not seen at the save (the variable is not set)"),
        (None, None, "UNKNOWN", "not seen at the save"),
        ("ghp_", "github_pat_", "FRESH", "GitHub token"),
        ("ghp_", "glpat-", "UNKNOWN", "another kind than then (GitHub token; now GitLab token)"),
    ],
)
def test_a_variable(before: str | None, after: str | None, state: str, words: str) -> None:
    values = [None if start is None else start + secrets.token_hex(20) for start in (before, after)]
    verdict, written = changed(*values)
    assert (verdict.state, words in verdict.evidence) == (state, True), verdict.evidence
    assert not any(value in written for value in values if value)


@pytest.mark.parametrize(
    ("after", "state", "words"),
    [
        (lambda: jwt(at(NOW + 9 * HOUR)), "FRESH", "expires at 2026-03-01 21:00:00 UTC"),
        (lambda: jwt(at(NOW - HOUR)), "STALE", "expired at 2026-03-01 11:00:00 UTC, 1 hour ago"),
        (lambda: jwt(at(NOW)), "STALE", "expired"),
        (lambda: jwt(at(NOW) + 0.5), "UNKNOWN", "expires in"),
        (lambda: jwt(at(NOW + timedelta(minutes=12))), "UNKNOWN", "expires in 12 minutes"),
        (jwt, "FRESH", "states no expiry"),
        (lambda: jwt("soon"), "UNKNOWN", "cannot be told when it expires"),
        (lambda: jwt(True), "UNKNOWN", "cannot be told when it expires"),
        (lambda: jwt(1e300), "UNKNOWN", "cannot be told when it expires"),
        (lambda: jwt(10**30), "UNKNOWN", "cannot be told when it expires"),
        (lambda: jwt(-(10**17)), "UNKNOWN", "cannot be told when it expires"),
        (lambda: jwt(0), "FRESH", "states no expiry"),
        (lambda: jwt(str(at(NOW - HOUR))), "STALE", "expired"),
        (lambda: f"Bearer {jwt(at(NOW - HOUR))}", "STALE", "expired"),
        (lambda: f'"{jwt(at(NOW - HOUR))}"\n', "STALE", "expired"),
        (lambda: "eyJ" + secrets.token_hex(8) + ".%%%." + secrets.token_hex(8), "UNKNOWN", "another kind"),
        (lambda: "eyJ." + base64.b64encode(b"[" * 9000).decode() + ".x", "UNKNOWN", "another kind"),
    ],
)
def test_a_token_says_when_it_expires(after: Callable[[], str], state: str, words: str) -> None:
    token = after()
    verdict, written = changed(jwt(at(NOW + HOUR)), token)
    assert (verdict.state, words in verdict.evidence) == (state, True), verdict.evidence
    assert not any(part in written for part in token.split(".") if len(part) > 8)
    assert verdict.remedy or state == "FRESH"


def test_a_scope_that_was_lost_is_stale() -> None:
    assert changed(jwt(scope="read write"), jwt(scope="write read extra"))[0].state == "FRESH"
    verdict, _ = changed(jwt(scope="read write"), jwt(scp=["read"]))
    assert (verdict.state, "not good for write any more" in verdict.evidence) == ("STALE", True)


@pytest.fixture
def place(tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """Writes the file that `file:~/token` names, and gives the facts with which it is found."""

    def write(text: str) -> dict[str, Any]:
        (tmp_path / "token").write_text(text)
        return {"environ": {"HOME": str(tmp_path)}}

    return write


@pytest.mark.parametrize(
    ("form", "state", "words"),
    [
        (
            '{{"expiresAt": "2026-03-01T11:00:00Z", "accessToken": "{0}"}}',
            "STALE",
            "expired at 2026-03-01 11",
        ),
        ('{{"oauth": {{"expiresAt": 1772362800000, "accessToken": "{0}"}}}}', "STALE", "expired"),
        ('[{{"token": "{0}", "expires_at": 1772362800}}]', "STALE", "expired"),
        ('{{"expiry": "2026-03-01T13:30:00+01:00", "token": "{0}"}}', "UNKNOWN", "expires in 30 minutes"),
        ('{{"expiry": "2027-01-01", "token": "{0}"}}', "FRESH", "expires at 2027-01-01"),
        ('{{"expires": 1772362800, "refresh_token": "{0}"}}', "UNKNOWN", "a refresh token lies beside it"),
        ('{{"a": "{0}", "exp": 1772362800, "expires": 1999999999}}', "STALE", "expired"),
        ('{{"a": "{0}", "expires": null}}', "FRESH", "states no expiry"),
        ('{{"expires": "Sun, 01 Mar 2026 11:00:00 GMT", "a": "{0}"}}', "STALE", "expired at 2026-03-01 11"),
        (
            '{{"expires": "Sun, 01 Mar 2026 12:30:00 +0100", "a": "{0}"}}',
            "STALE",
            "expired at 2026-03-01 11:30",
        ),
        ("expires: Sun, 01 Mar 2026 11:00:00 GMT\ntoken: {0}\n", "STALE", "expired"),
        ("token_expires_at: 1772362800\ntoken: {0}\n", "STALE", "expired"),
        ('{{"notAfter": "2026-03-01T11:00:00Z", "a": "{0}"}}', "STALE", "expired"),
        ('{{"a": "{0}", "expires": "in spring"}}', "UNKNOWN", "cannot be told when it expires"),
        ('{{"a": "{0}", "expires_in": 3600}}', "UNKNOWN", "cannot be told when it expires"),
        ("token = {0}\nexpires_in = 3600\n", "UNKNOWN", "cannot be told when it expires"),
        ('{{"a": "{0}", "expiry": "0001-01-01T00:00:00Z"}}', "FRESH", "states no expiry"),
        ('{{"a": "{0}", "expires_at": 0}}', "FRESH", "states no expiry"),
        ('{{"a": "{0}", "expires_at": "never"}}', "FRESH", "states no expiry"),
        ('{{"a": "{0}", "refresh_token_expires_at": 1}}', "FRESH", "states no expiry"),
        ("machine example.com login me password {0}\n", "UNKNOWN", "another kind"),
        (
            "[default]\naws_secret_access_key = {0}\nx_security_token_expires = 2026-03-01T11:00:00Z\n",
            "STALE",
            "exp",
        ),
        ("[" * 20000 + "{0}", "UNKNOWN", "another kind"),
    ],
)
def test_a_file(form: str, state: str, words: str, place: Callable[[str], dict[str, Any]]) -> None:
    secret = secrets.token_hex(20)
    then = captured("file:~/token", **place(json.dumps({"token": secret})))
    verdict = judged(then, **place(form.format(secret)))
    assert words in verdict.evidence
    assert verdict.state == state
    assert secret not in f"{then}{verdict}"


def test_a_token_in_a_file_says_when_it_expires(place: Callable[[str], dict[str, Any]]) -> None:
    facts = place(json.dumps({"access_token": jwt(at(NOW + 9 * HOUR), scope="a b")}))
    then = captured("file:~/token", **facts)
    assert then["credentials"][0]["scope"] == ["a", "b"]
    assert judged(then, **facts).state == "FRESH"
    assert (
        judged(then, **place(json.dumps({"access_token": jwt(at(NOW - HOUR), scope="a b")}))).state == "STALE"
    )


def test_a_token_among_other_lines_says_when_it_expires(place: Callable[[str], dict[str, Any]]) -> None:
    lines = "users:\n- name: me\n  user:\n    token: {}\n"
    then = captured("file:~/token", **place(lines.format(jwt(at(NOW + 9 * HOUR)))))
    assert judged(then, **place(lines.format(jwt(at(NOW + 8 * HOUR))))).state == "FRESH"
    assert judged(then, **place(lines.format(jwt(at(NOW - HOUR))))).state == "STALE"
    assert judged(then, **place(lines.format(jwt("soon")))).state == "UNKNOWN"
    then = captured("file:~/token", **place(json.dumps({"access_token": jwt()})))
    assert judged(then, **place(json.dumps({"access_token": jwt()}))).state == "FRESH"
    assert judged(then, **place(json.dumps({"access_token": jwt("soon")}))).state == "UNKNOWN"


def test_a_file_that_is_gone_or_empty_or_none(place: Callable[[str], dict[str, Any]], tmp_path: Path) -> None:
    facts = place(secrets.token_hex(20))
    then = captured("file:~/token", **facts)
    (tmp_path / "real").write_text(secrets.token_hex(20))
    token = tmp_path / "token"
    token.unlink()
    assert judged(then, **facts).state == "STALE"
    token.symlink_to("real")
    assert judged(then, **facts).state == "FRESH"
    token.unlink()
    token.write_text(" \n")
    assert judged(then, **facts).state == "STALE"
    token.write_bytes(b"x" * (1 << 21))
    assert judged(then, **facts).state == "UNKNOWN"
    token.unlink()
    os.mkfifo(token)
    assert (judged(then, **facts).state, captured("file:~/token", **facts)["credentials"][0].keys()) == (
        "UNKNOWN", {"at", "not_seen"}
    )  # fmt: skip


# --- AWS ----------------------------------------------------------------------------------------------------


def identity(account: str, arn: str) -> Answer:
    body = (
        '<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>'
        f"<Arn>{arn}</Arn><UserId>AROAX:me</UserId><Account>{account}</Account></GetCallerIdentityResult>"
        "<ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></GetCallerIdentityResponse>"
    )
    return Answer(200, body=body.encode())


ROLE = identity("111122223333", "arn:aws:sts::111122223333:assumed-role/Deploy/session-1")


@pytest.fixture
def keys(no_aws: None, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment with keys of a session, and nothing else of AWS."""
    made = {
        "AWS_ACCESS_KEY_ID": "ASIA" + secrets.token_hex(8).upper(),
        "AWS_SECRET_ACCESS_KEY": secrets.token_hex(20),
        "AWS_SESSION_TOKEN": secrets.token_hex(200),
    }
    for name, value in made.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        (ROLE, "FRESH", "of arn:aws:sts::111122223333:assumed-role/Deploy as then"),
        (
            identity("111122223333", "arn:aws:sts::111122223333:assumed-role/Deploy/session-2"),
            "FRESH",
            "Deploy as then",
        ),
        (
            identity("111122223333", "arn:aws:sts::111122223333:assumed-role/Admin/session-1"),
            "STALE",
            "now of arn:aws:sts::111122223333:assumed-role/Admin",
        ),
        (identity("999900001111", "arn:aws:sts::999900001111:assumed-role/Deploy/s"), "STALE", "now of"),
        (Answer(403, code="ExpiredToken"), "STALE", "does not accept"),
        (
            Answer(403, headers={"Date": "Sun, 01 Mar 2020 10:00:00 GMT"}),
            "UNKNOWN",
            "STS refuses requests of this machine, whose clock is",
        ),
        (Answer(403, headers={"Date": "soon"}), "STALE", "does not accept"),
        (Answer(500), "UNKNOWN", "gives no identity (status 500)"),
        (Answer(200, body=b"<html>"), "UNKNOWN", "gives no identity"),
        (Answer(302, headers={"Location": "http://127.0.0.1:1/"}), "UNKNOWN", "gives no identity"),
    ],
)
def test_whose_aws_credentials_they_are(
    answer: Answer, state: str, words: str, keys: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedServer(ROLE) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", server.endpoint)
        facts: dict[str, Any] = {
            "environ": dict(os.environ),
            "hosts": (server.endpoint.removeprefix("http://"),),
        }
        then = captured("aws:", **facts)
        row = then["credentials"][0]
        assert row["account"] == "111122223333"
        assert row["key"] == f"ASIA…{keys['AWS_ACCESS_KEY_ID'][-4:]}"
        server.script(answer)
        verdict = judged(then, **facts)
        asked = f"{server.requests}"
    assert (verdict.state, words in verdict.evidence) == (state, True), verdict.evidence
    assert not any(value in f"{then}{verdict}" for value in keys.values())
    assert keys["AWS_SECRET_ACCESS_KEY"] not in asked


def test_the_machine_is_not_asked_how_to_ask(keys: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The AWS setting `auto` asks the service of a machine of EC2 where it stands."""
    with Web() as machine, ScriptedServer(ROLE) as server:
        monkeypatch.setenv("AWS_DEFAULTS_MODE", "auto")
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", machine.url(""))
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", server.endpoint)
        hosts = (server.endpoint.removeprefix("http://"),)
        then = captured("aws:", environ=dict(os.environ), hosts=hosts)
        assert then["credentials"][0]["account"] == "111122223333"
        assert machine.connections == 0


def test_without_network_the_owner_is_unknown_and_nobody_is_asked(
    keys: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Web() as sts:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts.url(""))
        environ = dict(os.environ)
        then = captured("aws:", environ=environ, hosts=("example.com",))
        assert "not contacted" in then["credentials"][0]["identity_not_seen"]
        row = {"at": "aws:", "present": True, "kind": "environment", "account": "1", "arn": "arn:x"}
        for facts in ({"hosts": (sts.host,), "network": False}, {"hosts": ("example.com",)}):
            verdict = judged({"credentials": [row]}, environ=environ, **facts)
            assert (verdict.state, "not contacted" in verdict.evidence) == ("UNKNOWN", True)
        assert sts.connections == 0


def test_the_machine_is_not_asked_for_its_role_unless_sts_may_be(
    no_aws: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Web() as machine:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", machine.url("/role"))
        row = captured("aws:", environ=dict(os.environ), hosts=("example.com",))["credentials"][0]
        assert row["kind"] == "role of the machine"
        assert machine.connections == 0


def test_a_server_of_identities_that_hangs_is_given_up(
    keys: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    presigned.caller_identity(AwsOptions(region="us-east-1"))  # boto3 is loaded
    with Raw(hang) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://{server.host}")
        row = {"at": "aws:", "present": True, "kind": "environment", "account": "1", "arn": "arn:x"}
        facts: dict[str, Any] = {"environ": dict(os.environ), "hosts": (server.host,), "timeout": 3.0}
        assert judged({"credentials": [row]}, **facts).state == "UNKNOWN"
        assert server.closed.wait(15), "the connection is still open"


def test_aws_credentials_that_are_not_there_any_more(
    keys: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    then = captured("aws:", "aws:work", environ=dict(os.environ))
    assert "not_seen" in then["credentials"][1]
    for name in keys:
        monkeypatch.delenv(name)
    verdict = judged({"credentials": then["credentials"][:1]}, environ=dict(os.environ), network=False)
    assert (verdict.state, "aws: there are no AWS credentials" in verdict.evidence) == ("STALE", True)
    role = {"at": "aws:", "present": True, "kind": "role of the machine"}
    assert judged({"credentials": [role]}, environ=dict(os.environ), network=False).state == "UNKNOWN"


def test_a_session_that_has_expired_is_stale_without_asking(keys: dict[str, str]) -> None:
    facts = {"environ": {**os.environ, "AWS_CREDENTIAL_EXPIRATION": "2026-03-01T20:00:00Z"}}
    then = captured("aws:", **facts)
    assert then["credentials"][0]["expires"].startswith("2026-03-01T20:00:00")
    facts["environ"]["AWS_CREDENTIAL_EXPIRATION"] = "2026-03-01T11:00:00Z"
    assert judged(then, **facts).state == "STALE"


def test_a_profile_of_the_configuration(
    no_aws: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key, secret = "AKIA" + secrets.token_hex(8).upper(), secrets.token_hex(20)
    (tmp_path / "credentials").write_text(
        f"[work]\naws_access_key_id={key}\naws_secret_access_key={secret}\naws_expiration=2026-03-01T11:00:00Z\n"
    )
    (tmp_path / "config").write_text(
        "[profile login]\nsso_start_url=https://sso.example\n[profile other]\n"
        "role_arn=arn:aws:iam::1:role/R\nsource_profile=work\n[profile tool]\ncredential_process=false\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    then = captured("aws:work", "aws:login", "aws:other", "aws:tool", "aws:none")["credentials"]
    assert [row.get("kind") for row in then] == ["profile", "SSO", "role", "program", None]
    assert not any(value in json.dumps(then) for value in (key, secret))
    verdict = judged({"credentials": then[:1]})
    assert (verdict.state, "expired" in verdict.evidence) == ("STALE", True)
    stored = captured("aws:", aws=AwsOptions(profile="work"))["credentials"][0]
    assert stored["kind"] == "profile"
    (tmp_path / "config").write_text("not a configuration [[[")
    assert judged({"credentials": [{"at": "aws:login", "present": True, "kind": "SSO"}]}).state == "STALE"


# --- the rest -----------------------------------------------------------------------------------------------


def test_what_is_no_reference_is_not_stored() -> None:
    """Somebody may have put the value where its name belongs."""
    value = "ghp_" + secrets.token_hex(20)
    for name in (value, f"env:{value}!", f"aws:{value} x", f"token={value}"):
        then = captured(name)
        assert value not in json.dumps(then)
        assert judged(then).state == "UNKNOWN"


def test_what_redaction_took_out_is_unknown() -> None:
    row = {"at": "env:TOKEN", "present": True, "kind": "JWT", "scope": ["[REDACTED:key:abc]"]}
    assert judged({"credentials": [row]}, environ={"TOKEN": jwt()}).state == "UNKNOWN"


def test_nothing_named_is_nothing_remembered() -> None:
    assert PROBE.capture(context()) is None


def test_more_than_a_record_holds_is_said() -> None:
    then = captured(*(f"env:NAME_{number}" for number in range(100)))
    assert then["left_out"] == 68
    assert "68 credentials were not remembered" in judged(then).evidence


@pytest.mark.parametrize(
    "record",
    [None, 1, {}, {"credentials": 1}, {"credentials": [None]}, {"credentials": [{}]},
     {"credentials": [{"at": 1, "present": True}]}, {"credentials": [{"at": "env:A", "present": "yes"}]},
     {"credentials": [{"at": "file:\0", "present": True}]},
     {"credentials": [{"at": "env:", "present": True}]},
     {"credentials": [{"at": "file:/dev/zero", "present": True}]}],
)  # fmt: skip
def test_a_record_of_another_shape_is_unknown(record: Any) -> None:
    report = judge_all({"credentials": record}, context(), probes=[PROBE])
    assert report.state == "UNKNOWN"


@pytest.mark.parametrize(
    ("text", "hour"),
    [("2026-03-01T11:00:00Z", 11), ("2026-03-01T11:00:00UTC", 11), ("2026-03-01T12:00:00+01:00", 11),
     ("2026-03-01 11:00:00", 11), (1772362800, 11), (1772362800000, 11), ("1772362800", 11)],
)  # fmt: skip
def test_times_as_they_are_written(text: object, hour: int) -> None:
    found = moment(text)
    assert found is not None
    assert found.isoformat() == f"2026-03-01T{hour}:00:00+00:00"
    assert moment("tomorrow") is None


def test_a_file_of_many_values_is_looked_through_within_bounds() -> None:
    deep: Any = {"expires_at": 1}
    for _ in range(200):
        deep = {"a": [deep]}
    assert of_file(json.dumps(deep)).expires is not None
    assert of_file(json.dumps([{"a": 1}] * 20_000 + [{"expires_at": 1}])).kind == "JSON file"
    assert of_value("x").kind == "text"
