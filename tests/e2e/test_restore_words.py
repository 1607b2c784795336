"""What a plan, a restore and its report say: who signed, who can go on, what is sure and since when."""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from archiver.archive import Source, archive
from archiver.catalog import Catalog
from archiver.cli.show import _replaced_before
from archiver.errors import (
    DamagedError,
    InputNotFoundError,
    KeyUnavailableError,
    NeedsDecisionError,
    RolledBackError,
    StaleWriterError,
    UntrustedWriterError,
    UsageError,
)
from archiver.model import Checkpoint, Plan
from archiver.model.checkpoint import Approval
from archiver.restore import plan, restore
from archiver.setup import Setup
from archiver.writers import Writer, Writers

from .test_restore_edges import shell
from .test_resume import NOW, RUN, effect, other, saved  # noqa: F401 - a fixture


def first_words(folder: Path) -> str:
    """The headline of the report that was handed over."""
    return (folder / "REPORT.md").read_text().splitlines()[2]


def test_the_signer_of_the_checkpoint_is_named_and_not_who_took_the_run_over(
    other: tuple[Setup, Setup],  # noqa: F811 - the fixture
    tmp_path: Path,
) -> None:
    first, second = other
    saved(first, effect("a", "confirmed"))
    before = plan(RUN, second)
    assert (before.writer, before.newest_writer) == ("first machine", "")
    restore(RUN, second, into=tmp_path / "over").resume()
    for reader in (first, second):
        for at in (None, 1):
            report = plan(RUN, reader, at=at)
            assert (report.writer, report.newest_writer) == ("first machine", "second machine")
    restore(RUN, second, into=tmp_path / "out")
    document = json.loads((tmp_path / "out" / "report.json").read_bytes())
    assert (document["writer"], document["newest_writer"]) == ("first machine", "second machine")
    text = (tmp_path / "out" / "REPORT.md").read_text()
    assert "| Signed by | first machine |" in text
    assert "| Newest record signed by | second machine |" in text


def test_the_headline_says_who_can_go_on(
    other: tuple[Setup, Setup],  # noqa: F811 - the fixture
    tmp_path: Path,
) -> None:
    first, second = other
    saved(first, effect("a", "confirmed"))
    restore(RUN, first, into=tmp_path / "own")
    assert "the own key wrote its newest record, and can still write" in first_words(tmp_path / "own")
    restore(RUN, second, into=tmp_path / "others")
    assert "not taken over: whoever wrote it before can still go on" in first_words(tmp_path / "others")
    restore(RUN, second, into=tmp_path / "over").resume()
    restore(RUN, second, into=tmp_path / "again")
    again = first_words(tmp_path / "again")
    assert "was taken over with record 2 on " in again
    assert "by second machine, with the own key: the own key can go on with it" in again
    report = restore(RUN, first, into=tmp_path / "fenced").report
    assert "by second machine: only that writer can go on with it, until" in first_words(tmp_path / "fenced")
    assert (report.may_go_on, [one.own for one in report.taken_over]) == (False, [False])
    reader = replace(first, signing_key=None)
    assert plan(RUN, reader).may_go_on is False


def test_a_chain_that_ends_broken_is_verified_up_to_where_it_holds(setup: Setup, tmp_path: Path) -> None:
    for _ in range(3):
        saved(setup, effect("a", "confirmed"))
    assert plan(RUN, setup).chain == "verified"
    assert plan(RUN, setup, at=1).chain == "verified"
    path = tmp_path / "store" / "records" / RUN / "00000003.age"
    path.unlink()
    path.write_bytes(b"")
    report = restore(RUN, setup, into=tmp_path / "out", previous=True).report
    assert (report.seq, report.chain, report.may_go_on) == (2, "verified up to 2", None)
    text = (tmp_path / "out" / "REPORT.md").read_text()
    assert "| Chain | verified up to 2, newest is number 3 |" in text
    assert "whether somebody took the run over since is not known" in first_words(tmp_path / "out")


def test_the_headline_names_what_is_not_sure_and_who_waits(setup: Setup, tmp_path: Path) -> None:
    waits = Plan(pending_approvals=(Approval(id="1", question="May I?"),))
    saved(setup, plan=waits)
    restore(RUN, setup, into=tmp_path / "out")
    said = first_words(tmp_path / "out")
    assert "approvals (UNKNOWN)" in said
    assert "One question waits for a person" in said
    assert "nothing stands against going on." not in said


def test_a_memory_of_a_moment_ago_says_so(setup: Setup) -> None:
    record = saved(setup)
    assert setup.witness is not None
    setup.witness.forget(setup.require_store_id(), RUN)
    now = datetime.now(UTC)
    plan(RUN, setup, now=now)
    for after, said in (
        (timedelta(0), "first seen here less than a second ago: "),
        (timedelta(seconds=12), "first seen here 12 seconds ago: "),
        (timedelta(minutes=1), "first seen here 1 minute ago: "),
        (timedelta(hours=23), "first seen here 23 hours ago: "),
        (timedelta(days=2), ""),
        (timedelta(days=-2), ""),  # a clock that went back says nothing of an age
    ):
        report = plan(RUN, setup, now=now + after)
        assert report.rollback == "verified"
        assert report.witness.startswith(f"{said}record {record.seq} was seen on")


def test_credentials_that_were_replaced_earlier_stay_to_be_rotated(setup: Setup, tmp_path: Path) -> None:
    token = "ghp_" + secrets.token_hex(18)
    for number in range(2):
        saved(setup, effect("a", "confirmed", arguments={"number": number, "token": token}))
    restored = restore(RUN, setup, into=tmp_path / "first")
    assert restored.report.replaced_before == ()
    saved(setup)
    report = restore(RUN, setup, into=tmp_path / "out").report
    (said,) = report.replaced_before
    assert said.endswith(" in checkpoint 2")
    rule = said.partition(" ")[0]
    assert restored.report.findings[rule]
    text = (tmp_path / "out" / "REPORT.md").read_text()
    assert "## Credentials replaced: rotate these" in text
    assert f"replaced earlier in this run: {rule}" in text.replace("\\", "")
    assert _replaced_before(Catalog(setup).chain(RUN)) == (said,)
    assert os.fsencode(token) not in (tmp_path / "out" / "report.json").read_bytes()


# --- commands that are advised ------------------------------------------------------------------------------

NAMES = (("my identity.txt", "identity"), ("signing.pem", "signing"), ("writers.toml", "writers"))


@pytest.fixture
def flags(setup: Setup, config: Path, tmp_path: Path) -> str:
    """Flags for a store and keys that no configuration names, as somebody in `tmp_path` types them."""
    files = {
        "identity": setup.settings.keys.identities[0],
        "signing": Path(str(setup.settings.keys.signing_key)),
        "writers": Path(str(setup.settings.keys.signing_key)).parent / "writers.toml",
    }
    for name, kind in NAMES:
        files[kind].rename(tmp_path / name)
    config.unlink()
    return (
        "--store store --identity 'my identity.txt' --writers ./writers.toml --signing-key signing.pem "
        f"--config {(tmp_path / 'none.toml').name}"
    )


def advised(folder: Path) -> list[str]:
    """The commands of a report that decide on effects."""
    lines = (folder / "REPORT.md").read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.startswith("      archiver restore")]


@pytest.mark.parametrize("run", ["billing-1", "-rf", "a b'c"])
@pytest.mark.parametrize("keys", [("pay",), ("pay", "mail", "-x=y z")])
def test_the_command_of_the_report_decides_on_everything_from_any_folder(
    setup: Setup, flags: str, tmp_path: Path, run: str, keys: tuple[str, ...]
) -> None:
    state = Checkpoint(
        run_id=run, task_id="t", created_at=NOW, checkpoint_at=NOW, effects=tuple(map(effect, keys))
    )
    archive(Source(checkpoint=state), setup)
    (tmp_path / "none.toml").write_text("")
    (tmp_path / "none.toml").chmod(0o600)
    word = shlex.quote(run)
    done = shell(f"archiver restore --accept effects --into out {flags} -- {word}", tmp_path)
    assert done.code == 0, done.err
    commands = advised(tmp_path / "out")
    assert len(commands) == (2 if len(keys) == 1 else 1)
    command = commands[-1]
    if len(keys) > 1:
        unedited = shell(command, tmp_path)
        assert unedited.code == 2, unedited.err
        command = command.replace("=OUTCOME", "=not-done")
    if not run.startswith("-"):
        assert command.startswith(f"archiver restore {word} --")
    other_folder = tmp_path / "other"
    other_folder.mkdir()
    went = shell(command, other_folder)
    assert went.code == 0, went.err
    assert (tmp_path / "out-decided" / "REPORT.md").is_file()
    claim = Catalog(setup).read(run, 2).record
    assert {one.effect: one.outcome for one in claim.decisions} == dict.fromkeys(keys, "not-done")


def test_the_commands_of_errors_have_the_flags_of_the_call(setup: Setup, flags: str, tmp_path: Path) -> None:
    for _ in range(2):
        saved(setup, effect("a"))
    (tmp_path / "none.toml").write_text("")
    (tmp_path / "none.toml").chmod(0o600)
    refused = shell(f"archiver restore {RUN} --into out {flags}", tmp_path)
    assert refused.code == 7
    (plan_,) = re.findall(f"see `(archiver restore {RUN} --plan [^`]+)`", refused.err)
    planned = shell(plan_, tmp_path / "home")
    assert (planned.code, planned.out.splitlines()[0]) == (7, f"run\t{RUN}")
    record = tmp_path / "store" / "records" / RUN / "00000002.age"
    kept = record.read_bytes()
    record.unlink()
    behind = shell(f"archiver restore {RUN} --into out {flags}", tmp_path)
    assert behind.code == 4
    older, forget = re.findall(r"`(archiver [^`]+)`", behind.err)
    went = shell(f"{older} --plan --accept effects", tmp_path / "home")
    assert went.code == 0, went.err
    assert shell(f"{forget} --yes", tmp_path / "home").code == 0
    record.write_bytes(kept[:-1])
    damaged = shell(f"archiver restore {RUN} --into out {flags}", tmp_path)
    assert damaged.code == 4
    (older,) = re.findall(r"`(archiver restore --at 1 [^`]+)`", damaged.err)
    assert shell(f"{older} --plan --accept effects", tmp_path / "home").code == 0


def test_more_effects_than_a_command_holds_are_for_a_program(setup: Setup, tmp_path: Path) -> None:
    saved(setup, *(effect(f"{number:0200}") for number in range(600)))
    restore(RUN, setup, into=tmp_path / "out", accept=["effects"])
    assert advised(tmp_path / "out") == []
    assert "too many of them for one command" in (tmp_path / "out" / "REPORT.md").read_text()


# --- what a plan knows --------------------------------------------------------------------------------------


def test_an_effect_whose_credential_was_taken_out_is_undecided_in_the_plan_too(
    setup: Setup, tmp_path: Path
) -> None:
    token = {"token": "ghp_" + secrets.token_hex(18)}
    saved(setup, effect("a"), effect("b", replayable=True, arguments=token), effect("c", replayable=True))
    decided = replace(setup, why="looked")
    planned = plan(RUN, decided, resolve={"a": "done"})
    assert planned.exit_code == 7
    assert planned.record.effects.undecided == ("a", "b")
    with pytest.raises(NeedsDecisionError, match="happened: b"):
        restore(RUN, decided, into=tmp_path / "no", resolve={"a": "done"})
    assert plan(RUN, decided, resolve={"a": "done", "b": "not-done"}).exit_code == 0
    done = restore(RUN, decided, into=tmp_path / "out", resolve={"a": "done", "b": "not-done"})
    assert done.effects.undecided == ()


def test_of_records_that_do_not_list_them_a_plan_warns_and_a_restore_does_not(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archiver.record_of.contains_placeholder", lambda _: False)  # as releases before
    token = {"token": "ghp_" + secrets.token_hex(18)}
    saved(setup, effect("a"), effect("b", replayable=True, arguments=token))
    decided = replace(setup, why="looked")
    planned = plan(RUN, decided, resolve={"a": "done", "b": "done"})
    assert any("unless their arguments held credentials" in one for one in planned.warnings)
    assert any("is known once the bundle is open" in one for one in planned.warnings)
    done = restore(RUN, decided, into=tmp_path / "out", resolve={"a": "done", "b": "done"})
    assert not [one for one in done.report.warnings if "bundle is open" in one]


def test_to_accept_effects_is_never_called_a_way_to_go_on(setup: Setup, tmp_path: Path) -> None:
    saved(setup, effect("a"))
    with pytest.raises(NeedsDecisionError) as caught:
        restore(RUN, setup, into=tmp_path / "out")
    assert "lets nothing go on" in (caught.value.remedy or "")
    assert "to go on all the same" not in (caught.value.remedy or "")
    with pytest.raises(UsageError) as unknown:
        plan(RUN, setup, accept=["efects"])
    words = re.findall("[a-z_]+", unknown.value.remedy or "")
    assert {"effects", "rollback", "age", "git_commit"} <= set(words)


def test_what_is_lost_is_counted_right_and_said_once(setup: Setup, tmp_path: Path) -> None:
    for _ in range(7):
        saved(setup)
    folder = tmp_path / "store" / "records" / RUN
    for seq in (3, 4, 5, 6, 7):
        path = folder / f"{seq:08}.age"
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data[:-1])
    with pytest.raises(DamagedError) as caught:
        restore(RUN, setup, into=tmp_path / "out")
    remedy = caught.value.remedy or ""
    lost = remedy.partition("lost by that: ")[2]
    assert "record 3, which cannot be read; record 4, which cannot be read; 2 more; record 7, which" in lost
    assert str(caught.value) not in remedy
    lines = restore(RUN, setup, into=tmp_path / "out", previous=True).report.lost
    assert len([line for line in lines if ":" in line]) == 1


def test_a_claim_among_what_is_lost_is_not_counted_as_more(setup: Setup, tmp_path: Path) -> None:
    for _ in range(3):
        saved(setup)
    restore(RUN, setup, into=tmp_path / "over").resume()
    saved(setup)
    path = tmp_path / "store" / "records" / RUN / "00000003.age"
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data[:-1])
    lost = plan(RUN, setup, previous=True).lost
    assert [line.split(",")[0].split(" of ")[0] for line in lost] == ["record 3", "checkpoint 5"]


def test_a_key_that_is_distrusted_is_named_with_the_record(
    other: tuple[Setup, Setup],  # noqa: F811 - the fixture
    tmp_path: Path,
) -> None:
    first, second = other
    saved(first)
    restore(RUN, second, into=tmp_path / "over").resume()
    alone = replace(first, writers=Writers(first.writers.trusted[:1], Path("writers.toml")))
    with pytest.raises(UntrustedWriterError, match=r"^record 2: run pays is signed by"):
        plan(RUN, alone)


# --- claims that cannot be ----------------------------------------------------------------------------------


def test_a_claim_without_a_key_that_is_believed_says_how_to_have_one(
    other: tuple[Setup, Setup],  # noqa: F811 - the fixture
    tmp_path: Path,
) -> None:
    first, second = other
    saved(first)
    with pytest.raises(KeyUnavailableError, match="no signing key to sign the claim") as none:
        restore(RUN, replace(first, signing_key=None), into=tmp_path / "out", claim=True)
    remedy = none.value.remedy or ""
    assert "archiver keygen --into" in remedy
    assert "writers.toml" in remedy
    assert "init" not in remedy
    alone = replace(second, writers=Writers(first.writers.trusted[:1], Path("writers.toml")))
    own = alone.require_signing_key().public
    with pytest.raises(UntrustedWriterError, match="the own signing key") as strange:
        restore(RUN, alone, into=tmp_path / "out", claim=True)
    assert f"run {RUN} is signed by" not in str(strange.value)
    assert own in str(strange.value)
    assert own in (strange.value.remedy or "")
    elsewhere = Writer(name="it", key=own, runs="other-*")
    listed = replace(alone, writers=Writers((*first.writers.trusted[:1], elsewhere), Path("w.toml")))
    with pytest.raises(UntrustedWriterError, match=r"a restorer would say: .* trusted for runs"):
        restore(RUN, listed, into=tmp_path / "out", claim=True)
    assert not (tmp_path / "out").exists()


def test_a_store_behind_is_not_claimed_and_the_error_says_that_the_claim_is_why(
    setup: Setup, tmp_path: Path
) -> None:
    for _ in range(3):
        saved(setup)
    record = tmp_path / "store" / "records" / RUN / "00000003.age"
    kept = record.read_bytes()
    record.unlink()
    with pytest.raises(RolledBackError, match="cannot be taken over while its store is behind") as caught:
        restore(RUN, setup, into=tmp_path / "out", accept=["rollback"], claim=True)
    assert "--claim would use number 3 again" in str(caught.value)
    assert (caught.value.remedy or "").startswith("leave out --claim to look")
    assert "--run-id" not in (caught.value.remedy or "")
    assert not (tmp_path / "out").exists()
    done = restore(RUN, setup, into=tmp_path / "out", accept=["rollback"])
    assert done.report.may_go_on is None
    assert "can still write" not in first_words(tmp_path / "out")
    record.write_bytes(kept)
    with pytest.raises(StaleWriterError):
        done.resume()


def test_what_is_named_wrongly_is_told_by_the_flag_that_names_it(
    setup: Setup, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(setup)
    wrong = shell(f"archiver restore --plan --config '{config}' --writers nope.toml {RUN}", tmp_path)
    assert wrong.code == 2
    assert "correct --writers" in wrong.err
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    nothing = shell(
        f"archiver restore --plan --store '{tmp_path}/store' --writers /dev/null {RUN}", tmp_path / "empty"
    )
    assert nothing.code == 6
    assert "--identity FILE" in nothing.err


def test_a_bundle_that_is_gone_is_told_of_with_one_command_that_works(
    setup: Setup, flags: str, tmp_path: Path
) -> None:
    for _ in range(2):
        saved(setup)
    (tmp_path / "none.toml").write_text("")
    (tmp_path / "none.toml").chmod(0o600)
    (bundle,) = (tmp_path / "store" / "bundles" / RUN).glob("00000002-*")
    bundle.unlink()
    gone = shell(f"archiver restore {RUN} --into out {flags}", tmp_path)
    assert gone.code == 4
    (older,) = re.findall(r"`(archiver restore [^`]+)`", gone.err)
    assert shell(f"{older} --plan", tmp_path / "home").code == 0


def test_a_place_that_takes_nothing_is_told_of_as_what_it_is(setup: Setup) -> None:
    saved(setup)
    with pytest.raises(InputNotFoundError) as caught:
        restore(RUN, setup, into=Path("/proc/x"))
    assert "TMPDIR" not in (caught.value.remedy or "")
    assert "choose another folder" in (caught.value.remedy or "")
