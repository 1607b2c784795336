"""`archiver migrate` and `archiver list --schema`, on the golden stores of every version."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from archiver import saved, schemas
from archiver.archive import Source, archive
from archiver.catalog import Catalog
from archiver.config import load
from archiver.errors import AlreadyExistsError, StaleWriterError
from archiver.migrating import of_file, save_run, write_file
from archiver.model import SCHEMA_VERSION
from archiver.setup import open_setup
from archiver.sign import SigningKey
from archiver.writers import entry

from .conftest import Command

GOLDEN = Path(__file__).parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))
import keys  # noqa: E402 - lies beside the golden stores

ROWS = GOLDEN / "v1" / "rows.jsonl"


def configured(home: Path, version: str) -> Path:
    """A copy of a golden store, with its keys, as the configuration of the current folder has them."""
    store = home / f"store-{version}"
    shutil.copytree(GOLDEN / version / "store", store)
    identity, signing, writers = home / "identity.txt", home / "signing.pem", home / "writers.toml"
    key: SigningKey = keys.signing_key()
    if not identity.exists():
        identity.write_text(keys.identity().secret_text() + "\n", encoding="utf-8")
        identity.chmod(0o600)
        key.save(signing)
        writers.write_text(entry("golden", key.public, None), encoding="utf-8")
    (home / "work" / "archiver.toml").write_text(
        f'[store]\nurl = "{store}"\n[keys]\nidentities = "{identity}"\nsigning_key = "{signing}"\n'
        f'writers = "{writers}"\nrecipients = "{keys.identity().recipient}"\n',
        encoding="utf-8",
    )
    return store


def tree(folder: Path) -> dict[str, bytes]:
    """What lies there, but for what the audit adds whenever a bundle is opened."""
    found = (path for path in folder.rglob("*") if path.is_file() and folder / "audit" not in path.parents)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.mark.parametrize(
    ("version", "asked", "found"),
    [
        ("v1", "<2", [("12", "1"), ("run-b", "1"), ("task-7", "1"), ("task-7", "2")]),
        ("v1", "2", []),
        ("v1", ">=1", [("12", "1"), ("run-b", "1"), ("task-7", "1"), ("task-7", "2")]),
        ("v1", "<=1", [("12", "1"), ("run-b", "1"), ("task-7", "1"), ("task-7", "2")]),
        ("v1", ">1", []),
        ("v2", "<2", []),
        ("v2", "= 2", [("by-hand/1", "1"), ("sample", "1"), ("sample", "2"), ("text", "1")]),
    ],
)
def test_checkpoints_are_listed_by_schema(
    command: Command, home: Path, version: str, asked: str, found: list[tuple[str, str]]
) -> None:
    configured(home, version)
    outcome = command("list", "--schema", asked)
    assert outcome.code == 0
    assert sorted((row[0], row[1]) for row in outcome.rows) == found
    listed = command("list", "--schema", asked, "--json").json["runs"]
    assert len(listed) == len(found)
    assert all(record["schema_version"] == int(version[1]) for record in listed)


def test_a_run_that_cannot_be_read_is_no_drained_one(command: Command, home: Path) -> None:
    store = configured(home, "v1")
    record = store / "records" / "task-7" / "00000001.age"
    record.write_bytes(record.read_bytes()[:-1])
    outcome = command("list", "--schema", "<2")
    assert outcome.code == 4
    assert [row[0] for row in outcome.rows if row[3].startswith("error")] == ["task-7"]


@pytest.mark.parametrize("asked", ["", "two", "<", "2.0", "<2,>1", "!2"])
def test_what_means_no_version_is_refused(command: Command, home: Path, asked: str) -> None:
    configured(home, "v1")
    assert command("list", "--schema", asked).code == 2


def test_newest_and_schema_exclude_each_other(command: Command, home: Path) -> None:
    configured(home, "v1")
    assert command("list", "--schema", "<2", "--newest", "1").code == 2


def test_a_dry_run_shows_steps_and_difference_and_changes_nothing(command: Command, home: Path) -> None:
    store = configured(home, "v1")
    before = tree(store)
    outcome = command("migrate", "task-7", "--dry-run", "--json")
    assert outcome.code == 0
    (change,) = outcome.json["changes"]
    assert (change["version"], change["steps"]) == (1, ["v1_to_v2"])
    assert change["before"]["goal"] == change["after"]["objective"]
    text = command("migrate", "task-7", "--dry-run").out
    assert '-  "goal": "Move the nightly report to the new queue"' in text
    assert '+  "objective": "Move the nightly report to the new queue"' in text
    assert tree(store) == before


def test_the_newest_checkpoint_is_saved_anew_and_the_old_one_stays(command: Command, home: Path) -> None:
    store = configured(home, "v1")
    before = tree(store)
    outcome = command("migrate", "task-7", "--json")
    assert outcome.code == 0, outcome.err
    record = outcome.json["archived"]
    assert (record["seq"], record["schema_version"], record["run"]) == (3, SCHEMA_VERSION, "task-7")
    after = tree(store)
    assert {name: after[name] for name in before} == before
    assert command("verify", "--deep").code == 0
    done = command("restore", "task-7", "--into", home / "out", "--accept", "age", "--json")
    assert done.code == 0, done.err
    assert (done.code, done.json["migrations"]) == (0, [])
    assert json.loads((home / "out" / "checkpoint.json").read_bytes())["iteration"] == 4
    again = command("migrate", "task-7", "--json")
    assert (again.code, again.json["archived"]) == (0, None)
    assert [row[1] for row in command("list", "--schema", "<2").rows if row[0] == "task-7"] == ["1", "2"]


def test_what_is_saved_meanwhile_stays_the_newest(
    command: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process saves while the old checkpoint is opened: the old one must not come after it."""
    configured(home, "v1")
    setup = open_setup(load(), "write")
    fetch, others = saved.fetch, []

    def meanwhile(*args: Any) -> saved.Saved:
        found = fetch(*args)
        if not others:
            others.append(archive(Source(checkpoint=found.checkpoint), setup).record)
        return found

    monkeypatch.setattr(saved, "fetch", meanwhile)
    with pytest.raises(StaleWriterError, match="has gone on meanwhile: record 3 came after 2"):
        save_run("task-7", setup)
    head = Catalog(setup).head("task-7")
    assert head is not None
    assert (head.record.seq, head.record.bundle) == (3, others[0].bundle)
    assert save_run("task-7", setup) is None


def test_a_current_checkpoint_has_nothing_to_migrate(command: Command, home: Path) -> None:
    store = configured(home, "v2")
    before = tree(store)
    assert command("migrate", "sample", "--dry-run").out.startswith(
        "Checkpoint 2 of run sample has the current"
    )
    assert command("migrate", "sample").code == 0
    assert tree(store) == before


def test_documents_of_a_file_are_shown_and_written(command: Command, home: Path) -> None:
    import jsonschema

    shown = command("migrate", "--file", ROWS, "--dry-run", "--json").json["changes"]
    assert [change["steps"] for change in shown] == [["v1_to_v2"]] * 3
    into = home / "new.jsonl"
    assert command("migrate", "--file", ROWS, "--into", into).code == 0
    documents: list[Any] = [json.loads(line) for line in into.read_text().splitlines()]
    assert documents == [change["after"] for change in shown]
    for document in documents:
        jsonschema.validate(document, json.loads(schemas.text("v2/checkpoint")))
    assert [change.steps for change in of_file(into)] == [()] * 3


def test_a_file_with_one_bad_document_gives_none(command: Command, home: Path) -> None:
    path, into = home / "rows.jsonl", home / "new.jsonl"
    path.write_text(ROWS.read_text() + '{"task_id": "x"}\n', encoding="utf-8")
    assert command("migrate", "--file", path, "--into", into).code == 2
    path.write_text('{"schema_version": 9, "task_id": "x"}\n', encoding="utf-8")
    assert command("migrate", "--file", path, "--into", into).code == 5
    assert not into.exists()
    assert sorted(entry.name for entry in home.iterdir()) == ["rows.jsonl", "work"]


def test_nothing_is_written_over(command: Command, home: Path) -> None:
    into = home / "new.jsonl"
    into.write_text("mine", encoding="utf-8")
    assert command("migrate", "--file", ROWS, "--into", into).code == AlreadyExistsError.exit_code
    assert command("migrate", "--file", ROWS, "--into", ROWS).code == AlreadyExistsError.exit_code
    with pytest.raises(AlreadyExistsError):
        write_file(ROWS, into)
    assert into.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("run", "--file", "x", "--dry-run"),
        ("--file", "x"),
        ("--file", "x", "--into", "y", "--dry-run"),
        ("run", "--into", "y"),
        ("run", "--at", "1"),
        ("--file", "x", "--dry-run", "--at", "1"),
    ],
)
def test_contradictions_are_refused(command: Command, home: Path, words: tuple[str, ...]) -> None:
    configured(home, "v1")
    assert command("migrate", *words).code == 2
