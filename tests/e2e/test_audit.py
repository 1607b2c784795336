"""Whoever opens, restores or rekeys is written down first, with the key that opened it."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from archiver import age, audit, bundles, layout
from archiver.audit import entries
from archiver.audit.writing import RETRY
from archiver.catalog import Catalog
from archiver.config import load
from archiver.errors import (
    AuditError,
    ContainerError,
    ContextMismatchError,
    NotSerialisableError,
    RecordError,
    SignatureError,
    StoreDeniedError,
    StoreError,
    StoreUnreachableError,
)
from archiver.model.audit import AuditEntry
from archiver.model.record import RetentionClass
from archiver.progress import Silent
from archiver.redact import ExactValue
from archiver.restore import plan, restore
from archiver.scratch import PREFIX
from archiver.setup import Setup, open_setup
from archiver.sign import SigningKey
from archiver.store import ObjectInfo
from archiver.verify import verify
from e2e.auditing import RUN, actions, command, file, keep, lines, names, objects, path_of, save
from e2e.rekeying import done, only, to
from e2e.scanning import opaque, token

EMERGENCY = age.generate()


@pytest.fixture
def saved(setup: Setup, note: Path) -> Setup:
    save(setup, note)
    save(setup, note)
    return setup


@pytest.fixture(autouse=True)
def configured(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands find the configuration of the store."""
    monkeypatch.setenv("ARCHIVER_CONFIG", str(config))
    monkeypatch.setattr("signal.signal", lambda *_: None)


def loud(setup: Setup, identity: age.Identity, *named: str) -> Setup:
    """The same as whoever keeps the emergency key sees it."""
    keys = setup.settings.keys.model_copy(update={"break_glass": named})
    settings = setup.settings.model_copy(update={"keys": keys})
    return replace(only(setup, identity), settings=settings)


def put(setup: Setup, entry: AuditEntry, key: SigningKey, name: str | None = None) -> str:
    """Sign and put an audit object as whoever has the key can."""
    name = name or layout.audit_name(entry.at, entry.run or layout.SEVERAL_RUNS, "0" * 16)
    sealed = entries.encode(entry.model_copy(update={"by": key.public}), key, setup.recipients)
    setup.store.create(name, [sealed], retention="record")
    return name


class Refusing:
    """A store that takes no audit objects; everything else is as it was."""

    def __init__(self, store: Any, error: StoreError) -> None:
        self._store = store
        self._error = error
        self.tries = 0

    def create(self, name: str, body: Iterable[bytes], *, retention: RetentionClass) -> ObjectInfo:
        if name.startswith(layout.AUDIT):
            self.tries += 1
            raise self._error
        made: ObjectInfo = self._store.create(name, body, retention=retention)
        return made

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._store, verb)


def test_a_restore_is_written_down_with_who_what_why_and_which_key(
    saved: Setup, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_USER", "anna")
    before = datetime.now(UTC)
    report = restore(RUN, replace(saved, why="the host died"), into=tmp_path / "out").report
    mine = saved.identities[0].fingerprint
    opened, restored = lines(home)
    assert (opened.action, restored.action) == ("open", "restore")
    for line in (opened, restored):
        assert (line.run, line.seq, line.store) == (RUN, 2, saved.store_id)
        assert (line.why, line.uid, line.sudo_user) == ("the host died", os.getuid(), "anna")
        assert "@" in line.who
        assert (line.opened_by, line.break_glass) == (mine, False)
        assert line.software.startswith("checkpoint-archiver ")
        assert before.timestamp() - 1 < line.at.timestamp() <= datetime.now(UTC).timestamp()
    assert report.opened_by == mine
    (entry,) = objects(saved)
    assert (entry.action, entry.seq, entry.opened, entry.why) == ("restore", 2, {RUN: 1}, "the host died")
    assert saved.store.head(names(saved)[0]).retention == "record"


def test_a_plan_opens_no_bundle_and_leaves_no_line(saved: Setup, home: Path) -> None:
    plan(RUN, saved)
    assert command("list").code == 0
    assert command("show", RUN).code == 0
    assert not file(home).exists()
    assert names(saved) == []


def test_without_the_line_nothing_is_handed_out(
    saved: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHIVER_AUDIT__FILE", str(tmp_path))  # a folder
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    setup = open_setup(load(), need="read")
    record = Catalog(setup).chain(RUN).head.record
    with pytest.raises(AuditError):
        bundles.fetch(record, setup, tmp_path / "bundle", Silent(), ())
    assert list((tmp_path / "bundle").iterdir()) == []
    with pytest.raises(AuditError):
        restore(RUN, setup, into=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    refused = command("restore", RUN, "--into", tmp_path / "out")
    assert refused.code == 3
    assert "audit.file" in refused.err
    assert not (tmp_path / "out").exists()
    assert command("verify", "--deep").code == 3
    assert command("drill").code == 3
    assert command("export", RUN, "--into", tmp_path / "copy").code == 3
    assert not (tmp_path / "copy").exists()
    assert names(saved) == []
    assert not list(tmp_path.rglob(f"{PREFIX}*"))


def test_a_look_at_many_is_a_line_each_and_one_object(saved: Setup, note: Path, home: Path) -> None:
    for run in ("a", "b"):
        save(saved, note, run)
    assert command("verify", "--deep").code == 0
    found = lines(home)
    assert [line.action for line in found] == ["open"] * 4
    assert sorted((line.run, line.seq) for line in found) == [("a", 1), ("b", 1), ("r", 1), ("r", 2)]
    assert {line.command for line in found} == {"archiver verify --deep"}
    (entry,) = objects(saved, layout.SEVERAL_RUNS)
    assert entry.opened == {"a": 1, "b": 1, "r": 2}
    assert names(saved) == names(saved, layout.audit_prefix(layout.SEVERAL_RUNS))
    shown = command("audit", "a").rows
    assert [(row[1], row[7]) for row in shown] == [("open", "local"), ("open", "store")]
    assert command("audit", "nothing").out == ""


def test_a_look_at_one_run_lies_under_it(saved: Setup, home: Path) -> None:
    assert command("verify", RUN, "--deep").code == 0
    (entry,) = objects(saved)
    assert (entry.action, entry.run, entry.opened) == ("open", RUN, {RUN: 2})
    assert actions(home) == ["open", "open"]


@pytest.mark.parametrize(
    "words", [("show", RUN, "--tail", "1"), ("scan", "--stored"), ("find-credential", "--newest")]
)
def test_every_command_that_opens_bundles_is_written_down(
    saved: Setup, home: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Given(io.StringIO):
        buffer = io.BytesIO(opaque().encode())

    monkeypatch.setattr("sys.stdin", Given(opaque()))
    command(*words)
    found = lines(home)
    assert found
    assert found[0].action == "open"
    assert found[0].command.startswith(f"archiver {words[0]} --")
    assert len(names(saved)) == 1


def test_a_look_at_the_tail_is_no_restore(saved: Setup, home: Path) -> None:
    assert command("show", RUN, "--tail", "1").code == 0
    assert {line.within for line in lines(home)} == {"show"}
    assert set(actions(home)) == {"open"}
    (entry,) = objects(saved)
    assert entry.action == "open"


def test_the_command_is_told_without_the_values_of_its_options(
    saved: Setup, home: Path, tmp_path: Path
) -> None:
    secret = token()
    assert command("restore", RUN, "--into", tmp_path / secret, "--at=1").code == 0
    assert {line.command for line in lines(home)} == {"archiver restore --into --at"}
    assert secret not in file(home).read_text()
    assert {entry.command for entry in objects(saved)} == {"archiver restore --into --at"}


def test_credentials_in_reasons_are_taken_out_everywhere(
    saved: Setup, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, formed, assigned = opaque(3), token(4), opaque(5)
    monkeypatch.setenv("DEPLOY_TOKEN", known)
    setup = open_setup(load(), need="write").registering(ExactValue("given", assigned))
    why = f"with {known} and {formed}, then {assigned}"
    said = audit.note(
        replace(setup, why=why), "accept", run=RUN, detail={"probe": f"x {formed}", known: [assigned]}
    )
    assert said == ()
    restore(RUN, replace(setup, why=why), into=tmp_path / "out")
    shown = command("audit", RUN).out + command("audit", RUN, "--json").out
    stored = "".join(entry.model_dump_json() for entry in objects(setup))
    for text in (file(home).read_text(), shown, stored, (tmp_path / "out" / "report.json").read_text()):
        for secret in (known, formed, assigned):
            assert secret not in text
    assert "[REDACTED:" in shown


def test_credentials_of_the_surroundings_are_taken_out(
    setup: Setup, note: Path, home: Path, tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user of `sudo`, the name of the program and the path of the store are nobody's reasons."""
    secret = token(6)
    store = tmp_path / f"at {secret}"
    (tmp_path / "store").rename(store)
    monkeypatch.setenv("ARCHIVER_STORE__URL", str(store))
    monkeypatch.setenv("SUDO_USER", secret)
    monkeypatch.setattr("sys.argv", [f"/opt/{secret}.py"])
    opened = open_setup(load(), need="write")
    save(opened, note)
    restore(RUN, opened, into=tmp_path / "out")
    assert secret not in file(home).read_text()
    (entry,) = objects(opened)
    assert secret not in entry.model_dump_json()
    assert "[REDACTED:" in (entry.sudo_user or "")
    assert "[REDACTED:" in entry.command


@pytest.mark.parametrize("folder", ["plain", "with a space", "100%"])
def test_an_address_without_credentials_is_told_as_it_is(
    setup: Setup, note: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    (tmp_path / "store").rename(tmp_path / folder)
    monkeypatch.setenv("ARCHIVER_STORE__URL", str(tmp_path / folder))
    opened = open_setup(load(), need="write")
    audit.note(opened, "accept", run=RUN)
    assert [line.url for line in lines(home)] == [opened.store.url]


@pytest.mark.parametrize("user", ["root", "nobody"])
def test_the_user_who_called_sudo_is_told(
    saved: Setup, home: Path, monkeypatch: pytest.MonkeyPatch, user: str
) -> None:
    monkeypatch.setenv("SUDO_USER", user)
    audit.note(saved, "accept", run=RUN)
    assert [line.sudo_user for line in lines(home)] == [user]


@pytest.mark.parametrize(
    "word", ['["age1abc"]', "the emergency key", "age1", "keys/break-glass.txt", "0" * 31]
)
def test_a_break_glass_key_that_names_none_is_refused(
    saved: Setup, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    """It would be loud for nobody, and nobody would know."""
    monkeypatch.setenv("ARCHIVER_KEYS__BREAK_GLASS", word)
    refused = command("audit", RUN)
    assert refused.code == 2
    assert "break_glass" in refused.err.lower()


def test_a_fingerprint_in_capitals_is_one(
    saved: Setup, note: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(to(saved, EMERGENCY), note, "e")
    monkeypatch.setenv("ARCHIVER_KEYS__BREAK_GLASS", EMERGENCY.fingerprint.upper())
    key = keep(tmp_path / "emergency.txt", EMERGENCY)
    done = command("restore", "e", "--identity", key, "--into", tmp_path / "out", "--json")
    assert (done.code, done.json["break_glass"]) == (0, True)
    assert "BREAK-GLASS" in done.err


def test_texts_that_would_steer_a_terminal(saved: Setup, home: Path) -> None:
    evil = '\x1b[2J\u202e\x07\r\n{"action":"x"}\udcff'
    audit.note(replace(saved, why=evil), "accept", run=RUN, seq=1, detail={"probe": evil})
    data = file(home).read_bytes()
    assert data.count(b"\n") == 1
    assert all(32 <= byte < 127 for byte in data[:-1])
    for shown in (command("audit").out, command("audit", RUN).out, command("audit", RUN, "--json").out):
        assert not set(shown) & set("\x1b\u202e\x07\r")
    (entry,) = objects(saved)
    assert entry.run == RUN


@pytest.mark.parametrize("by", ["recipient", "fingerprint"])
def test_break_glass_is_loud_everywhere(
    saved: Setup, note: Path, home: Path, tmp_path: Path, by: str
) -> None:
    setup = to(saved, EMERGENCY)
    save(setup, note, "e")
    named = str(EMERGENCY.recipient) if by == "recipient" else EMERGENCY.fingerprint
    found = restore("e", loud(setup, EMERGENCY, named), into=tmp_path / "out").report
    assert found.break_glass
    assert found.opened_by == EMERGENCY.fingerprint
    assert len([text for text in found.warnings if "BREAK-GLASS" in text]) == 1
    assert [line.break_glass for line in lines(home)] == [True, True]
    (entry,) = objects(setup, "e")
    assert (entry.break_glass, entry.opened_by) == (True, EMERGENCY.fingerprint)


def test_break_glass_is_loud_on_standard_error(
    saved: Setup, note: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(to(saved, EMERGENCY), note, "e")
    monkeypatch.setenv("ARCHIVER_KEYS__BREAK_GLASS", str(EMERGENCY.recipient))
    path = keep(tmp_path / "emergency.txt", EMERGENCY)
    restored = command("restore", "e", "-i", path, "--into", tmp_path / "out")
    assert restored.code == 0
    assert restored.err.count("BREAK-GLASS") == 1
    looked = command("show", "e", "-i", path, "--tail", "1")
    assert looked.err.count("BREAK-GLASS") == 1
    opened = command("verify", "e", "-i", path, "--deep")
    assert opened.err.count("BREAK-GLASS") == 1
    assert EMERGENCY.fingerprint in opened.err
    assert all(line.break_glass for line in lines(home))
    shown = command("audit", "e").rows
    assert {row[6] for row in shown} == {"BREAK-GLASS"}
    ordinary = command("restore", RUN, "--into", tmp_path / "other")
    assert "BREAK-GLASS" not in ordinary.err


def test_without_a_signing_key_it_is_local_only_and_said_once(
    saved: Setup, home: Path, tmp_path: Path
) -> None:
    reader = replace(saved, signing_key=None)
    report = restore(RUN, reader, into=tmp_path / "one").report
    assert [text for text in report.warnings if text.startswith("audit: local only")]
    again = restore(RUN, reader, into=tmp_path / "two").report
    assert not [text for text in again.warnings if text.startswith("audit:")]
    assert actions(home) == ["open", "restore"] * 2
    assert names(saved) == []


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (StoreDeniedError("the store refuses access"), "this role may not write"),
        (StoreUnreachableError("the store cannot be reached"), "cannot be reached"),
    ],
)
def test_a_store_that_takes_nothing_fails_no_action(
    saved: Setup, home: Path, tmp_path: Path, error: StoreError, said: str
) -> None:
    store = Refusing(saved.store, error)
    setup = replace(saved, store=store)  # type: ignore[arg-type]  # it passes the rest on
    report = restore(RUN, setup, into=tmp_path / "one").report
    (warning,) = [text for text in report.warnings if text.startswith("audit: local only")]
    assert said in warning
    restore(RUN, setup, into=tmp_path / "two")
    assert store.tries == 1  # each try may take as long as the store is given
    setup.session.local_since -= RETRY
    assert audit.note(setup, "accept", run=RUN) == ()  # tried again, and what was said is not said again
    assert store.tries == 2
    assert audit.note(replace(setup, store=saved.store), "accept", run=RUN) == ()
    assert names(saved) == []
    setup.session.local_since -= RETRY
    assert audit.note(replace(setup, store=saved.store), "accept", run=RUN) == ()
    assert len(names(saved)) == 1
    assert actions(home)[:4] == ["open", "restore"] * 2


def test_a_store_that_hangs_keeps_nobody_waiting(
    saved: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The restore goes on; what hangs may come to its end later."""
    let_go = threading.Event()

    class Hanging(Refusing):
        def create(self, name: str, body: Iterable[bytes], *, retention: RetentionClass) -> ObjectInfo:
            if name.startswith(layout.AUDIT):
                self.tries += 1
                let_go.wait()
            made: ObjectInfo = self._store.create(name, body, retention=retention)
            return made

    monkeypatch.setattr("archiver.audit.writing.WAIT", 0.05)
    hanging = Hanging(saved.store, StoreError("never"))
    report = restore(RUN, replace(saved, store=hanging), into=tmp_path / "out").report
    assert (tmp_path / "out" / "report.json").is_file()
    (warning,) = [text for text in report.warnings if text.startswith("audit: local only")]
    assert "has not answered" in warning
    assert hanging.tries == 1
    let_go.set()
    (thread,) = [one for one in threading.enumerate() if one.name == "audit"]
    thread.join()
    assert [entry.action for entry in objects(saved)] == ["restore"]


def test_a_fault_of_its_own_is_no_matter_of_the_store(saved: Setup) -> None:
    class Broken(Refusing):
        def create(self, name: str, body: Iterable[bytes], *, retention: RetentionClass) -> ObjectInfo:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        audit.note(replace(saved, store=Broken(saved.store, StoreError("never"))), "accept", run=RUN)


def test_the_store_can_be_left_out(saved: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHIVER_AUDIT__STORE", "false")
    assert command("restore", RUN, "--into", tmp_path / "out").code == 0
    assert names(saved) == []


def test_who_is_what_the_configuration_says(
    saved: Setup, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHIVER_AUDIT__WHO", "pager duty")
    command("verify", "--deep")
    assert {line.who for line in lines(home)} == {"pager duty"}


def test_a_rekey_is_written_down_before_it_is_done(saved: Setup, home: Path) -> None:
    new = age.generate()
    done(to(saved, new), reason="anna left")
    (line,) = lines(home)
    assert (line.action, line.run, line.why) == ("rekey", RUN, "anna left")
    assert line.opened_by == saved.identities[0].fingerprint
    assert line.detail["objects"] == 4
    assert line.detail["recipients"] == [new.fingerprint]
    (entry,) = [one.entry for one in entries.of(to(saved, new), RUN)]
    assert entry is not None
    assert entry.action == "rekey"
    done(to(saved, new))  # nothing is left to do
    assert len(lines(home)) == 1


def test_a_rekey_that_cannot_be_written_down_changes_nothing(
    saved: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {name: path_of(saved, name).read_bytes() for name in names(saved, "")}
    monkeypatch.setenv("ARCHIVER_AUDIT__FILE", str(tmp_path))
    with pytest.raises(AuditError):
        done(to(open_setup(load(), need="write"), age.generate()))
    assert {name: path_of(saved, name).read_bytes() for name in names(saved, "")} == before


def test_audit_objects_of_keys_that_are_gone_are_passed_over(saved: Setup, tmp_path: Path) -> None:
    """A rekey leaves them to the keys that they were sealed to, as it does with notes."""
    restore(RUN, saved, into=tmp_path / "out")
    new = age.generate()
    setup = to(saved, new)
    done(setup)
    (kept,) = [one for one in verify(only(setup, new), RUN) if "not here" in one.note]
    assert kept.object.startswith(layout.AUDIT)
    assert all(one.ok for one in verify(only(setup, new), RUN, deep=True))


def entry_of(setup: Setup) -> AuditEntry:
    (entry,) = objects(setup)
    return entry


@pytest.fixture
def entry(saved: Setup, tmp_path: Path) -> AuditEntry:
    """What a restore has left in the store; its object is taken away."""
    restore(RUN, saved, into=tmp_path / "restored")
    found = entry_of(saved)
    saved.store.delete(names(saved)[0])
    return found


def garbage(setup: Setup, entry: AuditEntry) -> str:
    name = layout.audit_name(entry.at, RUN, "1" * 16)
    setup.store.create(name, [b"garbage"], retention="record")
    return name


def of_another_run(setup: Setup, entry: AuditEntry) -> str:
    other = entry.model_copy(update={"run": "other"})
    return put(setup, other, setup.require_signing_key(), layout.audit_name(entry.at, RUN, "1" * 16))


def of_another_time(setup: Setup, entry: AuditEntry) -> str:
    name = layout.audit_name(datetime(2026, 1, 1, tzinfo=UTC), RUN, "1" * 16)
    return put(setup, entry, setup.require_signing_key(), name)


def of_another_store(setup: Setup, entry: AuditEntry) -> str:
    return put(setup, entry.model_copy(update={"store": "ab" * 16}), setup.require_signing_key())


def signed_as_a_note(setup: Setup, entry: AuditEntry) -> str:
    from archiver import jsonio, sign

    key = setup.require_signing_key()
    frame = sign.sign(
        key, "application/vnd.checkpoint-archiver.note.v1+json", jsonio.canonical(entry.document())
    )
    return sealed(setup, entry, frame)


def signed_for_somebody_else(setup: Setup, entry: AuditEntry) -> str:
    from archiver import jsonio, sign

    frame = sign.sign(SigningKey.generate(), entries.PAYLOAD_TYPE, jsonio.canonical(entry.document()))
    return sealed(setup, entry, frame)


def sealed(setup: Setup, entry: AuditEntry, frame: bytes) -> str:
    pieces: list[bytes] = []
    sealer = age.seal(setup.recipients, pieces.append)
    sealer.write(frame)
    sealer.close()
    name = layout.audit_name(entry.at, RUN, "1" * 16)
    setup.store.create(name, pieces, retention="record")
    return name


@pytest.mark.parametrize(
    ("forge", "kind"),
    [
        (garbage, ContainerError),
        (of_another_run, ContextMismatchError),
        (of_another_time, ContextMismatchError),
        (of_another_store, ContextMismatchError),
        (signed_as_a_note, SignatureError),
        (signed_for_somebody_else, RecordError),
    ],
)
def test_what_only_looks_like_an_audit_object(
    saved: Setup, entry: AuditEntry, forge: Callable[[Setup, AuditEntry], str], kind: type[Exception]
) -> None:
    name = forge(saved, entry)
    (found,) = [one for one in verify(saved, RUN) if not one.ok]
    assert found.object == name
    assert isinstance(found.error, kind)
    assert [one.object for one in verify(saved) if not one.ok] == [name]
    shown = command("audit", RUN)
    assert shown.code == 4
    assert name in shown.err
    assert [row[7] for row in shown.rows] == ["local", "local"]  # the rest is shown


def test_a_signer_whom_nobody_knows_is_shown_as_such(saved: Setup, entry: AuditEntry) -> None:
    put(saved, entry, SigningKey.generate())
    shown = command("audit", RUN)
    assert shown.code == 0
    assert [row[8] for row in shown.rows] == ["-", "unknown"]
    assert "somebody who is not in the list" in next(
        one.note for one in verify(saved, RUN) if one.object.startswith(layout.AUDIT)
    )
    document = command("audit", RUN, "--json").json
    assert [one["signer"] for one in document["entries"]] == [None, None]


def test_newest_shows_so_many(saved: Setup, tmp_path: Path) -> None:
    for number in range(3):
        restore(RUN, saved, into=tmp_path / f"out-{number}")
    every = command("audit", RUN).rows
    assert len(every) == 6
    assert command("audit", RUN, "--newest", "2").rows == every[-2:]
    assert command("audit", "--newest", "1").rows == [[*every[-1][:7], "local", "-", every[-1][9]]]


def test_lines_of_a_run_are_shown_although_the_store_is_gone(saved: Setup, tmp_path: Path) -> None:
    restore(RUN, saved, into=tmp_path / "out")
    (tmp_path / "store").rename(tmp_path / "elsewhere")
    shown = command("audit", RUN)
    assert shown.code == 8
    assert [row[1] for row in shown.rows] == ["open", "restore"]


def test_the_command_finds_a_changed_line(saved: Setup, home: Path, tmp_path: Path) -> None:
    restore(RUN, saved, into=tmp_path / "out")
    restore(RUN, saved, into=tmp_path / "more")
    assert command("audit", "verify").code == 0
    text = file(home).read_text()
    file(home).write_text(text.replace('"seq":2', '"seq":1', 1))
    found = command("audit", "verify")
    assert found.code == 4
    assert [row[:1] + row[2:3] for row in found.rows] == [["broken", "2"]]
    document = command("audit", "verify", "--json")
    assert (document.code, document.json["ok"], document.json["lines"]) == (4, False, 4)
    copy = tmp_path / "copy.jsonl"
    copy.write_text(text)
    assert command("audit", "verify", copy).code == 0
    assert command("audit", "verify", tmp_path / "none").code == 2
    assert command("audit", RUN, copy).code == 2


@pytest.mark.parametrize("name", ["verify", "list", "-h"])
def test_a_run_that_is_called_as_a_command_is(saved: Setup, note: Path, tmp_path: Path, name: str) -> None:
    save(saved, note, name)
    restore(name, saved, into=tmp_path / "out")
    assert [row[2] for row in command("audit", "list", "--", name).rows] == [name, name]


def test_plain_audit_is_the_list(saved: Setup, note: Path, tmp_path: Path) -> None:
    save(saved, note, "b")
    for run in (RUN, "b"):
        restore(run, saved, into=tmp_path / run)
    rows = command("audit", "list").rows
    assert [row[2] for row in rows] == [RUN, RUN, "b", "b"]
    assert command("audit").rows == command("audit", "--newest", "9").rows == rows
    assert command("audit", "b").rows == command("audit", "list", "b").rows
    assert command("--config", tmp_path / "none.toml", "audit").code == 2
    assert "verify" in command("audit", "--help").out


def test_details_without_end_are_told_by_their_size(saved: Setup, home: Path) -> None:
    effects = {f"effect-{number}": "done" for number in range(20_000)}
    assert audit.note(saved, "resolve", run=RUN, detail={"effects": effects}) == ()
    (line,) = lines(home)
    assert set(line.detail) == {"left_out"}
    assert objects(saved)[0].detail == line.detail
    with pytest.raises(NotSerialisableError):
        audit.note(saved, "resolve", run=RUN, detail={"x": float("nan")})
    assert len(lines(home)) == 1


def test_nothing_was_written_down_yet(saved: Setup) -> None:
    assert (command("audit").code, command("audit").out) == (0, "")
    found = command("audit", "verify")
    assert (found.code, found.out) == (0, "")
    assert "not there" in found.err


def test_strangers_and_the_audit_of_no_run(saved: Setup, tmp_path: Path) -> None:
    restore(RUN, saved, into=tmp_path / "out")
    saved.store.create(f"{layout.audit_prefix(RUN)}junk", [b""], retention="record")
    assert [one.object for one in verify(saved) if not one.ok] == [f"{layout.audit_prefix(RUN)}junk"]
    assert command("audit", RUN).code == 0
    assert [row[0] for row in command("list").rows] == [RUN]
