"""Settings from four places, and errors that name the place."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from archiver.compact import CompactOptions
from archiver.config import Settings, cache_home, config_home, data_home, load, state_home
from archiver.config.explaining import variable
from archiver.config.settings import PATHS, PatternSettings, leaves
from archiver.config.sweeping import SourceSettings
from archiver.config.values import duration_text, parse_duration, parse_size, size_text
from archiver.errors import ConfigError, LimitExceededError, UsageError
from archiver.model.limits import Limits


@pytest.fixture(autouse=True)
def empty_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("ARCHIVER_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o644)
    return path


def test_defaults_need_no_file() -> None:
    settings = load()
    assert settings.file is None
    assert settings.store.url is None
    assert settings.limits.model_dump() == {
        "member": 64 << 20, "bundle": 2 << 30, "run": 20 << 30, "members": 100_000, "item": 16 << 20,
        "artifact": 16 << 20,
        "artifact_policy": "head-and-tail", "bundle_policy": "head-and-tail", "run_policy": "reference",
    }  # fmt: skip
    assert settings.freshness.max_age == timedelta(days=7)
    assert (settings.freshness.policy.stale, settings.freshness.policy.unknown) == ("block", "warn")


def test_each_place_beats_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "c.toml", '[archive]\nuser = "file"\nkeep_turns = 3\n[limits]\nmembers = 5\n')
    assert load(path).archive.user == "file"
    monkeypatch.setenv("ARCHIVER_ARCHIVE__USER", "variable")
    assert load(path).archive.user == "variable"
    settings = load(path, {"archive": {"user": "flag"}, "store": {}})
    assert settings.archive.user == "flag"
    # The other keys of a section stay as the lower places have them.
    assert (settings.archive.keep_turns, settings.limits.members, settings.limits.member) == (3, 5, 64 << 20)


def test_where_the_file_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = write(config_home() / "archiver.toml", '[archive]\nuser = "home"\n')
    assert (load().archive.user, load().file) == ("home", home)
    here = write(Path("archiver.toml").absolute(), '[archive]\nuser = "here"\n')
    assert (load().archive.user, load().file) == ("here", here)
    named = write(tmp_path / "named.toml", '[archive]\nuser = "named"\n')
    monkeypatch.setenv("ARCHIVER_CONFIG", str(named))
    assert (load().archive.user, load().file) == ("named", named)
    flag = write(tmp_path / "flag.toml", "")
    assert load(flag).file == flag


def test_relative_paths_of_the_file_are_relative_to_the_file(tmp_path: Path) -> None:
    path = write(
        tmp_path / "etc" / "a.toml",
        '[store]\nurl = "store"\n[keys]\nidentities = ["k/one.txt", "/abs/two.txt", "~/three.txt"]\n'
        'signing_key = "../sign.pem"\n[redaction]\nrule_files = ["rules.toml"]\n',
    )
    settings = load(path)
    assert settings.store.url == str(tmp_path / "etc/store")
    assert settings.keys.identities == (
        tmp_path / "etc/k/one.txt",
        Path("/abs/two.txt"),
        tmp_path / "home/three.txt",
    )
    assert settings.keys.signing_key == tmp_path / "etc/../sign.pem"
    assert settings.redaction.rule_files == (tmp_path / "etc/rules.toml",)


def test_relative_paths_elsewhere_are_relative_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHIVER_KEYS__IDENTITIES", "a.txt, b.txt,")
    settings = load(flags={"store": {"url": "store"}})
    assert settings.keys.identities == (tmp_path / "work/a.txt", tmp_path / "work/b.txt")
    assert settings.store.url == str(tmp_path / "work/store")


@pytest.mark.parametrize("url", ["file:///srv/a", "s3://bucket/prefix"])
def test_addresses_with_a_scheme_stay(url: str, tmp_path: Path) -> None:
    assert load(write(tmp_path / "a.toml", f'[store]\nurl = "{url}"\n')).store.url == url


def test_every_path_is_known_as_one() -> None:
    named = {key for key, field in leaves() if "Path" in str(field.annotation)}
    assert named | {("store", "url")} == PATHS


def test_every_key_can_be_set_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {
        "store.url": "file:///x", "store.id": "ab" * 16, "keys.identities": "/i", "keys.recipients": "x,y",
        "keys.signing_key": "/s", "keys.writers": "/w", "archive.user": "u", "archive.keep_turns": "4",
        "archive.keep_full": "true", "archive.secret_environment": "A,B", "limits.member": "1KiB",
        "limits.bundle": "2MB", "limits.run": "3", "limits.members": "9", "limits.artifact": "1MiB",
        "limits.item": "1MiB",
        "limits.artifact_policy": "refuse", "limits.bundle_policy": "reference",
        "limits.run_policy": "refuse", "freshness.max_age": "36h",
        "freshness.policy.stale": "warn", "freshness.policy.unknown": "block", "redaction.rule_files": "/r",
        "store.region": "eu-central-1", "store.endpoint_url": "http://127.0.0.1:1", "store.profile": "p",
        "store.checksums": "basic", "store.part_size": "5MiB", "store.parallel": "2", "store.attempts": "3",
        "store.timeout": "5s", "store.fencing": "false", "keys.kms": "arn:aws:kms:a,arn:aws:kms:b",
        "keys.kms_endpoint_url": "http://127.0.0.1:2", "keys.application": "billing",
        "redaction.secret_files": "/f", "redaction.well_known_files": "false",
        "redaction.packs": "emails,hosts", "redaction.disabled_rules": "jwt",
        "redaction.patterns": '[{"id": "staff", "pattern": "S[0-9]{6}"}]', "redaction.reuse": "false",
        "keys.break_glass": "ab" * 16, "trust.witness": "/t", "trust.use_witness": "false",
        "audit.file": "/a", "audit.store": "false", "audit.who": "me", "freshness.timeout": "3s",
        "freshness.hosts": "example.com", "freshness.watch": "https://example.com/x",
        "freshness.policy.probes": '{"git_commit": "warn"}', "freshness.harness": "h 1",
        "freshness.credentials": "env:A,aws:", "freshness.model": "m", "freshness.prompt_file": "/p",
        "freshness.tools_file": "/t", "run.profile": "async", "run.floor": "1s", "run.floor_calls": "3",
        "run.ring": "9", "run.patience": "2s", "run.queue": "4", "run.spool": "/s",
        "run.spool_limit": "1MiB", "run.full_every": "9", "retention.sweeper": "true",
        "retention.intermediate": "9d",
        "retention.success": "31d", "retention.failure": "181d", "retention.live": "181d",
        "retention.record": "401d", "sweep.sources": '[{"kind": "codex"}]', "sweep.idle": "1h",
        "sweep.every": "1m", "sweep.parallel": "4", "sweep.state": "/s", "sweep.log": "/l",
        "workspace.capture": "true", "workspace.ignore": "*.log,tmp/", "workspace.include": "!keep/",
        "workspace.defaults": "false", "workspace.credential_files": "redact", "workspace.file": "1MiB",
        "workspace.entries": "10", "workspace.total": "2MiB", "workspace.git_timeout": "5s",
    }  # fmt: skip
    assert {".".join(key) for key, _ in leaves()} == values.keys()
    plain = Settings().model_dump()
    for key, value in values.items():
        monkeypatch.setenv(variable(tuple(key.split("."))), value)
    for (section, *rest), _ in leaves():
        before, after = plain[section], load().model_dump()[section]
        for name in rest:
            before, after = before[name], after[name]
        assert before != after, (section, rest)


CODEX = "[[sweep.sources]]\nkind = 'codex'\n"


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("[store]\nulr = 'x'\n", "there is no key 'store.ulr'", "store.url"),
        ("[stores]\nurl = 'x'\n", "there is no key 'stores'", "store"),
        ("[freshness.policy]\nstael = 'warn'\n", "there is no key 'freshness.policy.stael'", "policy.stale"),
        (
            "[freshness.policy]\nstale = 'ignore'\n",
            "freshness.policy.stale: must be 'block', 'warn' or 'ask', not 'ignore'",
            "CONFIGURATION.md in the documentation",
        ),
        (
            "[limits]\nmember = 'huge'\n",
            "limits.member: 'huge' is not a size",
            "CONFIGURATION.md in the documentation",
        ),
        (
            "[limits]\nmember = 0\n",
            "limits.member: must be at least 1",
            "CONFIGURATION.md in the documentation",
        ),
        (
            "[freshness]\nmax_age = 7\n",
            "freshness.max_age: '7' is not a length of time",
            "CONFIGURATION.md in the documentation",
        ),
        (
            "[freshness]\nhosts = ['https://a.org']\n",
            "freshness.hosts: 'https://a.org' is not a host",
            "CONFIGURATION.md in the documentation",
        ),
        (
            "[freshness]\nhosts = ['*']\n",
            "freshness.hosts: '*' is not a host",
            "CONFIGURATION.md in the documentation",
        ),
        (
            "[keys]\nidentities = [1]\n",
            "keys.identities[1]: must be a path, not 1",
            "CONFIGURATION.md in the documentation",
        ),
        ("store = 'x'\n", "store: must be a table, not 'x'", "CONFIGURATION.md in the documentation"),
        (
            "[store]\nid = 'ABC'\n",
            "store.id: 'ABC' does not fit the pattern",
            "CONFIGURATION.md in the documentation",
        ),
        (
            "[redaction]\npacks = ['mails']\n",
            "redaction.packs[1]: must be 'emails'",
            "CONFIGURATION.md in the documentation",
        ),
        (
            "[[redaction.patterns]]\nid = 'x'\n",
            "redaction.patterns[1]: pattern 'x' needs either",
            "CONFIGURATION.md in the documentation",
        ),
        (
            "[[redaction.patterns]]\nid = 'x'\npatern = 'y'\n",
            "redaction.patterns[1] has no key 'patern'",
            "did you mean 'pattern'?",
        ),
        (
            "[[redaction.patterns]]\nid = 'X'\nform = 'y'\n",
            "redaction.patterns[1].id: 'X' does not fit",
            "CONFIGURATION.md in the documentation",
        ),
        ("[sweep]\nevery = '0s'\n", "sweep.every: must be at least 1s", "documentation"),
        ("[sweep]\nidle = '0s'\n", "sweep.idle: must be longer than 0s", "documentation"),
        ("[store]\npart_size = 1\n", "store.part_size: must be at least 5MiB", "documentation"),
        ("[sweep]\nparallel = 65\n", "sweep.parallel: must be at most 64", "documentation"),
        ("[keys]\nkms = 1\n", "keys.kms: must be a list, not 1", "documentation"),
        ("[store]\ntimeout = true\n", "store.timeout: 'true' is not a length", "documentation"),
        ("[run]\nzzz = 1\n", "there is no key 'run.zzz'", "[run] has floor, floor_calls, full_every,"),
        (
            CODEX + "[[sweep.sources]]\n",
            "sweep.sources[2].kind: is missing, and must be given",
            "documentation",
        ),
        (
            CODEX + "[[sweep.sources]]\nkind = 'claude'\n",
            "sweep.sources[2].kind: must be 'claude-code', 'codex', 'messages' or 'folder', not 'claude'",
            "documentation",
        ),
        (CODEX + "idle = []\n", "sweep.sources[1].idle: must be a length of time", "documentation"),
        ("[sweep]\nsources = ['codex']\n", "sweep.sources[1]: must be a table, not 'codex'", "documentation"),
        (CODEX + "pth = 'x'\n", "sweep.sources[1] has no key 'pth'", "did you mean 'path'?"),
        (
            CODEX + "[[sweep.sources]]\nkind = 'folder'\n",
            "sweep.sources[2]: a source of kind",
            "documentation",
        ),
    ],
)
def test_errors_of_the_file_name_file_and_key(tmp_path: Path, text: str, message: str, remedy: str) -> None:
    path = write(tmp_path / "a.toml", text)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert remedy in str(caught.value.remedy)


WRONG = (
    "-1", "1.5", "inf", "true", '""', '"0s"', "[]", "[1]", '["x"]', "{a = 1}", "2026-01-01T00:00:00Z",
    "99999999999999999999",
)  # fmt: skip
PYTHON = re.compile(
    r"tuple|dict|datetime|timedelta|bool|\bint\b|integer|\bstr|string|float|None|True|False|class '|instance|"
    r"pathlib|pydantic|Input|Settings|Policy\b|unable to|valid "
)


def messages(path: Path) -> Iterator[tuple[str, str]]:
    """What is said of wrong values of every key, section and key in a table of a list."""
    sections = [(name,) for name in Settings.model_fields] + [("freshness", "policy")]
    texts = [f"{'.'.join(key)} = {value}\n" for key in [*dict(leaves()), *sections] for value in WRONG]
    for table, model, least in (
        ("sweep.sources", SourceSettings, {"kind": "'codex'"}),
        ("redaction.patterns", PatternSettings, {"id": "'a'", "form": "'b'"}),
    ):
        texts += [
            f"[[{table}]]\n" + "".join(f"{key} = {text}\n" for key, text in {**least, name: value}.items())
            for name in model.model_fields
            for value in WRONG
        ]
    for text in texts:
        try:
            load(write(path, text))
        except ConfigError as error:
            yield text, f"{error} {error.remedy}".replace(str(path), "")


def test_no_error_speaks_python(tmp_path: Path) -> None:
    said = dict(messages(tmp_path / "a.toml"))
    assert len(said) > 700
    assert [pair for pair in said.items() if PYTHON.search(pair[1])] == []
    for text, message in said.items():
        if not text.startswith("["):
            key = text.split(" = ")[0]
            assert f": {key}" in message or f"there is no key '{key}.a'" in message, message


def test_an_error_of_a_whole_section_in_a_variable_says_how_to_set_its_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ARCHIVER_STORE", "{}")
    with pytest.raises(ConfigError) as caught:
        load()
    assert "ARCHIVER_STORE__URL" in str(caught.value.remedy)


def test_a_wrong_value_is_shown_cut_and_a_secret_key_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, shown in (("x" * 500, "'" + "x" * 80 + "…'"), ("AGE-SECRET-KEY-1QQ", "a secret key")):
        with pytest.raises(ConfigError) as caught:
            load(flags={"run": {"profile": value}})
        assert str(caught.value).endswith(f"not {shown}")
    monkeypatch.setenv("ARCHIVER_SWEEP__SOURCES", '[{"kind": "codex"}, {"kind": null}]')
    with pytest.raises(ConfigError, match=r"sweep\.sources\[2\]\.kind: must be .*, not null"):
        load()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("ARCHIVER_LIMITS__MEMBER", "x", "environment variable ARCHIVER_LIMITS__MEMBER: limits.member: 'x'"),
        ("ARCHIVER_STORE", "x", "environment variable ARCHIVER_STORE: store: must be a table"),
        ("ARCHIVER_STORE__ULR", "x", "environment variable ARCHIVER_STORE__ULR: there is no such setting"),
        ("ARCHIVER_STOER__URL", "x", "environment variable ARCHIVER_STOER__URL: there is no such setting"),
    ],
)  # fmt: skip
def test_errors_of_variables_name_them(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError) as caught:
        load()
    assert str(caught.value).startswith(message)


def test_a_variable_that_is_wrong_is_named_even_when_the_file_has_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.toml", "[limits]\nmembers = 3\n")
    monkeypatch.setenv("ARCHIVER_LIMITS__MEMBERS", "none")
    with pytest.raises(ConfigError, match="environment variable ARCHIVER_LIMITS__MEMBERS"):
        load(path)
    with pytest.raises(ConfigError, match=r"^flags: limits\.members"):
        load(path, {"limits": {"members": "none"}})


def test_variables_that_only_look_like_ours_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHIVER_PORT", "tcp://10.0.0.1:80")
    monkeypatch.setenv("ARCHIVER_DEBUG", "1")
    load()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[store\n", "is not TOML: .*line 1"),
        (b"\xff\xfe", "is not TOML"),
        (b"# " + b"x" * (1 << 20), "more than"),
    ],
)
def test_files_that_are_no_toml(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=message) as caught:
        load(path)
    assert "--config" in str(caught.value.remedy)


@pytest.mark.parametrize(
    "content",
    [
        '[sweep]\nidle = "{}"',
        "[{}]\nx = 1",
        "[store]\n{} = 1",
        '[store]\nid = "{}"',
        '[[sweep.sources]]\nkind = "codex"\n{} = 1',
    ],
)
def test_a_credential_in_the_wrong_place_is_not_said(tmp_path: Path, content: str) -> None:
    secret = "ghp_" + "aB3dE6gH9j" * 3 + "kL2mN5"
    path = write(tmp_path / "a.toml", content.format(secret))
    with pytest.raises(ConfigError, match=str(path)) as caught:
        load(path)
    assert secret not in f"{caught.value} {caught.value.remedy}"
    assert "…" in str(caught.value)


def test_a_file_that_was_asked_for_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="no configuration file") as caught:
        load(tmp_path / "none.toml")
    assert "archiver init" in str(caught.value.remedy)
    monkeypatch.setenv("ARCHIVER_CONFIG", str(tmp_path))
    with pytest.raises(ConfigError, match="no configuration file"):
        load()


def test_a_file_of_the_current_folder_that_others_can_write_is_refused() -> None:
    path = write(Path("archiver.toml").absolute(), "")
    path.chmod(0o666)
    with pytest.raises(ConfigError, match="other users"):
        load()
    assert load(path).file == path
    path.chmod(0o644)
    assert load().file == path


def test_settings_are_frozen() -> None:
    settings = load()
    with pytest.raises(ValidationError):
        setattr(settings, "store", settings.store)  # noqa: B010 - mypy knows that it is read-only
    with pytest.raises(ValidationError):
        setattr(settings.store, "url", "x")  # noqa: B010 - as above


def test_homes_follow_xdg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    places = {
        "XDG_CONFIG_HOME": (config_home, home / ".config"),
        "XDG_DATA_HOME": (data_home, home / ".local/share"),
        "XDG_CACHE_HOME": (cache_home, home / ".cache"),
        "XDG_STATE_HOME": (state_home, home / ".local/state"),
    }
    for variable_name, (place, default) in places.items():
        assert place() == default / "checkpoint-archiver"
        monkeypatch.setenv(variable_name, "/elsewhere")
        assert place() == Path("/elsewhere/checkpoint-archiver")
        monkeypatch.setenv(variable_name, "relative/is/ignored")
        assert place() == default / "checkpoint-archiver"


@given(st.integers(1, 1 << 50))
def test_sizes_round_trip(size: int) -> None:
    assert parse_size(size_text(size)) == size


@given(st.integers(1, 3 * 10**9))
def test_durations_round_trip(seconds: int) -> None:
    assert parse_duration(duration_text(timedelta(seconds=seconds))) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "size"),
    [("64MiB", 64 << 20), ("64 MiB", 64 << 20), ("1kB", 1000), (" 7 ", 7), ("2TiB", 2 << 40), (5, 5)],
)
def test_size(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MiB", "-1", "1.5GiB", "1mib", "1 PB", "9" * 19, "١"])
def test_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)


@pytest.mark.parametrize("text", ["", "7", "d", "-7d", "1.5h", "7y", "999999999w", 7, True])
def test_no_duration(text: object) -> None:
    with pytest.raises(ValueError, match="is not a length of time"):
        parse_duration(text)


def test_limits_of_the_configuration_are_checked(tmp_path: Path) -> None:
    limits = load(write(tmp_path / "a.toml", '[limits]\nrun = "1KiB"\n')).limits
    limits.check_run("r", 1024)
    with pytest.raises(LimitExceededError, match="run r would have 1025 bytes"):
        limits.check_run("r", 1025)


def test_defaults_agree_with_the_stages_that_take_them() -> None:
    settings = load()
    assert settings.limits.model_dump() == Limits().model_dump()
    assert settings.archive.keep_turns == CompactOptions().keep_turns
    assert settings.archive.keep_full == CompactOptions().keep_full


@pytest.mark.parametrize(
    "text",
    [
        'keys.identities = [""]',
        'keys.signing_key = ""',
        'keys.writers = "~no-such-user-here/w"',
        'store.url = "~no-such-user-here/s"',
        "limits.member = true",
        "limits.members = true",
        "archive.keep_turns = true",
        "archive.secret_environment = " + "[" * 5000 + "]" * 5000,
    ],
)
def test_values_that_only_look_like_paths_and_numbers(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        load(write(tmp_path / "archiver.toml", text))


def test_homes_and_folders_that_cannot_be_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="home folder"):
        load(Path("~no-such-user-here/archiver.toml"))
    with pytest.raises(UsageError, match="cannot be looked at"):
        load(tmp_path / ("x" * 5000))
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert load().file is None
    with pytest.raises(UsageError, match="current folder"):
        load(Path("archiver.toml"))

    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", unknown)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    with pytest.raises(ConfigError, match="home folder"):
        load()


def test_a_closed_folder_is_an_error_and_no_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(path: Path, **_: object) -> os.stat_result:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", closed)
    with pytest.raises(UsageError, match="cannot be looked at: Permission denied"):
        load()
    with pytest.raises(UsageError, match="cannot be looked at: Permission denied"):
        load(tmp_path / "archiver.toml")


def test_a_secret_key_among_emergency_keys_is_not_shown(tmp_path: Path) -> None:
    secret = "AGE-SECRET-KEY-1" + "Q" * 58
    with pytest.raises(ConfigError, match="a secret key is no recipient") as caught:
        load(write(tmp_path / "a.toml", f"[keys]\nbreak_glass = ['{secret}']\n"))
    assert secret not in f"{caught.value} {caught.value.remedy}"
