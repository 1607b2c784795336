"""What is stored, looked at once more with what is known today; and whose runs held a credential."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from archiver import age
from archiver.archive import Given, Options, Source, archive
from archiver.errors import UsageError
from archiver.find_credential import find, value_of
from archiver.redact import fingerprints, spellings
from archiver.scan import Checked, examine
from archiver.scan.loading import keyed_redactors
from archiver.setup import Setup

from .scanning import line, opaque, run, token

OTHER = age.generate()


def key_file(path: Path) -> Path:
    path.write_text(f"{OTHER.secret_text()}\n", encoding="utf-8")
    path.chmod(0o600)
    return path


@pytest.fixture
def two(setup: Setup) -> Setup:
    """A store whose objects are for two recipients."""
    return replace(setup, recipients=(*setup.recipients, OTHER.recipient))


def save(setup: Setup, tmp_path: Path, run_id: str, *said: str) -> int:
    path = tmp_path / f"{run_id}.jsonl"
    path.write_text("".join(line(n, text) + "\n" for n, text in enumerate(("hi", *said))), encoding="utf-8")
    return archive(Source(paths=(path,)), setup, options=Options(given=Given(run_id=run_id))).record.seq


def looked(setup: Setup, *runs: str, newest: bool = False) -> list[Checked]:
    return list(examine(setup, runs, keyed_redactors(setup), newest=newest))


def bundles(setup: Setup, run_id: str) -> list[Path]:
    root = Path(setup.store.url.removeprefix("file://"))
    return [root / info.name for info in setup.store.list(f"bundles/{run_id}/")]


def test_what_an_older_version_missed_is_found(
    two: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = opaque()
    save(two, tmp_path, "a", f"it is {bare}")
    save(two, tmp_path, "a", "nothing any more")
    save(two, tmp_path, "b", f"replaced: {token()}")
    assert [one.receipt.findings for one in looked(two) if one.receipt] == [(), (), ()]
    monkeypatch.setenv("DEPLOY_PASSWORD", bare)  # what nobody knew when it was saved
    found = {(one.run, one.seq): one.receipt for one in looked(two) if one.receipt}
    assert set(found) == {("a", 1), ("a", 2), ("b", 1)}
    assert [one.rule for one in found["a", 1].findings] == ["known-value"]
    assert found["a", 1].findings[0].places
    assert not found["a", 2].findings
    assert bare not in repr(found)
    assert [(one.run, one.seq) for one in looked(two, newest=True)] == [("a", 2), ("b", 1)]
    assert [(one.run, one.seq) for one in looked(two, "b")] == [("b", 1)]


def test_a_damaged_bundle_does_not_end_the_rest(
    two: Setup, tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = opaque()
    for name in "abc":
        save(two, tmp_path, name, f"it is {bare}")
    monkeypatch.setenv("DEPLOY_PASSWORD", bare)
    broken = bundles(two, "b")[0]
    data = bytearray(broken.read_bytes())
    data[-50] ^= 1
    broken.chmod(0o600)
    broken.write_bytes(data)
    done = run("scan", "--stored", "--config", config)
    assert done.returncode == 4
    assert [row.split(b"\t")[0] for row in done.stdout.splitlines()] == [b"a", b"c"]
    assert b"run b, checkpoint 1" in done.stderr
    assert b"rotate these" in done.stderr
    assert bare.encode() not in done.stdout + done.stderr
    document = json.loads(run("scan", "--stored", "--json", "--config", config).stdout)
    assert [one["run"] for one in document["found"]] == ["a", "c"]
    assert document["errors"][0]["exit_code"] == document["exit_code"] == 4


def test_the_other_recipient_can_look_too(
    two: Setup, tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = opaque()
    save(two, tmp_path, "a", f"it is {bare}")
    monkeypatch.setenv("DEPLOY_PASSWORD", bare)
    done = run("scan", "--stored", "a", "--config", config, "-i", key_file(tmp_path / "other.txt"))
    assert done.returncode == 1, done.stderr
    assert run("scan", "--stored", "none", "--config", config).returncode == 9


def test_what_no_identity_opens_is_counted(setup: Setup, tmp_path: Path, config: Path) -> None:
    save(setup, tmp_path, "mine", f"token {token()}")
    done = run("scan", "--stored", "--config", config, "-i", key_file(tmp_path / "other.txt"))
    assert done.returncode == 6
    assert b"no identity at hand opens 1 checkpoint" in done.stderr
    found = run("find-credential", "--config", config, "-i", tmp_path / "other.txt", given=token().encode())
    assert found.returncode == 6
    assert b"no identity at hand opens 1 checkpoint" in found.stderr


def test_the_runs_that_held_a_credential(two: Setup, tmp_path: Path, config: Path, home: Path) -> None:
    secret, bare = token(), opaque()
    save(two, tmp_path, "a", f"use {secret}")
    save(two, tmp_path, "b", f"DB_PASSWORD={bare}")
    save(two, tmp_path, "b", "nothing any more")
    held = {one.run: one for one in find(two, secret.encode()) if one.findings}
    assert set(held) == {"a"}
    assert held["a"].findings[0].rule == "github-token"
    done = run("find-credential", "--config", config, given=bare.encode() + b"\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"b\t1\tassigned-secret\tsecret\t1\t")
    assert bare.encode() not in done.stdout + done.stderr
    newest = run("find-credential", "--newest", "--json", "--config", config, given=bare.encode())
    assert newest.returncode == 1
    assert json.loads(newest.stdout)["checkpoints"] == 2
    assert not any(bare.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())


PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0B\n-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("stored", "given"),
    [
        ("p@ss w/rd?1", '"p@ss w/rd?1"'),
        ('"p@ss-word"', "p@ss-word"),
        (quote("p@ss w/rd?1", safe=""), "p@ss w/rd?1"),
        ("p@ss w/rd?1", quote("p@ss w/rd?1")),
        (base64.b64encode(b"user:pass word").decode(), "user:pass word"),
        (base64.b64encode(b"longer secret\n").decode(), "longer secret"),
        ("longer secret", base64.b64encode(b"longer secret").decode()),
        (base64.urlsafe_b64encode(b"\xc3\xbf>>?? secret").decode().rstrip("="), "ÿ>>?? secret"),
        ("sesame-open-12", "Bearer sesame-open-12"),
        (PEM, PEM.replace("\n", "\r\n")),
        (PEM, PEM.replace("\n", "\\n")),
        (PEM.replace("\n", "\\n"), PEM + "\n"),
        (json.dumps('quo"te\\d')[1:-1], 'quo"te\\d'),
        ("plain-value", "  plain-value "),
    ],
)
def test_the_usual_spellings(stored: str, given: str) -> None:
    key = b"k" * 32
    kept = fingerprints(key, [stored.encode()])
    assert kept <= fingerprints(key, spellings(value_of(given.encode())))
    assert not kept & fingerprints(b"j" * 32, spellings(given.encode()))
    assert not fingerprints(key, [b"another value"]) & fingerprints(key, spellings(given.encode()))


def test_a_value_is_one_and_not_empty(home: Path) -> None:
    for data in (b"", b"\n", b" \r\n", b"x" * (2 << 20)):
        with pytest.raises(UsageError) as caught:
            value_of(data)
        assert "xxx" not in str(caught.value)
    assert value_of(b"a\r\n") == b"a"
    assert value_of(b"a\n\n") == b"a\n"
    assert run("find-credential", given=b"").returncode == 2


def test_a_look_is_free_of_what_it_opened(two: Setup, tmp_path: Path, reopen: Callable[[], Setup]) -> None:
    """An iteration that is not read to its end leaves no scratch folder behind."""
    for name in "abc":
        save(two, tmp_path, name, "x")
    answers = examine(two, (), keyed_redactors(two))
    next(answers)
    answers.close()  # type: ignore[attr-defined]
    assert len(looked(reopen())) == 3
