"""A store that opens by KMS and by a break-glass identity: saved, restored by either, and moved about."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from servers.ministack import Ministack
from servers.seaweed import free_ports

from archiver import age, layout, records
from archiver.age import Context, DataKey, KmsClient
from archiver.archive import Given, Options, Source, archive
from archiver.audit import entries
from archiver.catalog import Catalog
from archiver.config import load
from archiver.errors import (
    ArchiverError,
    ConfigError,
    ContextMismatchError,
    ForeignKeyError,
    KmsDeniedError,
    KmsKeyDisabledError,
    KmsUnreachableError,
)
from archiver.model import Record
from archiver.restore import restore
from archiver.setup import Setup, keys, open_setup
from archiver.verify import verify


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts what KMS is asked; it is asked all the same."""
    made: Counter[str] = Counter()

    class Counted(KmsClient):
        def generate(self, *asked) -> DataKey:
            made["generate"] += 1
            return super().generate(*asked)

        def decrypt(self, *asked) -> DataKey:
            made["decrypt"] += 1
            return super().decrypt(*asked)

    monkeypatch.setattr(keys, "KmsClient", Counted)
    return made


@pytest.fixture
def glass(config: Path, tmp_path: Path) -> Path:
    """The identity that `init` made, carried away: nothing on this machine opens without KMS."""
    return Path(shutil.move(keys.key_folder() / keys.IDENTITY_FILE, tmp_path / "break-glass.txt"))


@pytest.fixture
def arn(ministack: Ministack, kms_caller: Callable[..., None]) -> str:
    return ministack.make_key()


@pytest.fixture
def opened(config: Path, glass: Path, arn: str, ministack: Ministack) -> Callable[..., Setup]:
    """Opens the store with some of the keys; `endpoint` leads to another KMS."""
    recipients = (arn, str(age.read_identities(glass)[0].recipient))
    settings = load(config)

    def open_with(
        kms: Sequence[str] = (arn,), files: Sequence[Path] = (), endpoint: str = ministack.endpoint, **more
    ) -> Setup:
        own = {"kms": kms, "identities": tuple(files), "recipients": recipients if kms else recipients[1:]}
        held = settings.keys.model_copy(update={**own, "kms_endpoint_url": endpoint, **more})
        quick = settings.store.model_copy(update={"attempts": 1})
        return open_setup(settings.model_copy(update={"keys": held, "store": quick}), need="write")

    return open_with


def save(setup: Setup, path: Path, run: str = "r") -> Record:
    return archive(Source(paths=(path,)), setup, options=Options(given=Given(run_id=run))).record


def restored(setup: Setup, into: Path, run: str = "r") -> str:
    return next((restore(run, setup, into=into).folder / "transcript").iterdir()).read_text()


def fails(setup: Setup, into: Path, run: str = "r") -> ArchiverError:
    with pytest.raises(ArchiverError) as caught:
        restore(run, setup, into=into)
    assert not into.exists()
    return caught.value


def at(setup: Setup, name: str) -> Path:
    return Path(setup.store.url.removeprefix("file://")) / name


def test_either_key_restores_alone(opened, glass: Path, arn: str, note: Path, tmp_path: Path) -> None:
    record = save(opened(), note)
    assert record.recipients == (
        age.parse_recipient(arn).fingerprint,
        age.read_identities(glass)[0].fingerprint,
    )
    assert "hello" in restored(opened(), tmp_path / "by-kms")
    nowhere = f"http://127.0.0.1:{free_ports(1)[0]}"
    assert "hello" in restored(opened(files=[glass], endpoint=nowhere), tmp_path / "by-glass")
    assert "hello" in restored(opened(kms=(), files=[glass]), tmp_path / "without-kms")
    error = fails(opened(endpoint=nowhere), tmp_path / "down")
    assert type(error) is KmsUnreachableError
    assert error.exit_code == 6
    assert error.fingerprints == record.recipients
    with pytest.raises(KmsUnreachableError):
        save(opened(files=[glass], endpoint=nowhere), note)


def test_a_window_of_saves_costs_a_call_for_each_kind(
    opened, glass: Path, note: Path, tmp_path: Path, calls: Counter[str]
) -> None:
    setup = opened()
    for number in range(6):
        note.write_text(f"hello {number}\n")
        save(setup, note)
    assert calls["generate"] == 2  # records and bundles
    assert calls["decrypt"] == 2  # the writer reads the record and the manifest before its own
    calls.clear()
    reader = opened()
    assert all(finding.ok for finding in verify(reader, "r", deep=True))
    assert calls == {"decrypt": 2}  # six records and six bundles
    calls.clear()
    assert all(finding.ok for finding in verify(opened(files=[glass]), "r", deep=True))
    assert calls == {}


def test_one_run_does_not_open_in_the_place_of_another(
    opened, note: Path, tmp_path: Path, calls: Counter[str]
) -> None:
    setup = opened()
    one, two = save(setup, note, "one"), save(setup, note, "two")
    assert one.bundle is not None
    assert two.bundle is not None
    shutil.copy(at(setup, layout.record_name("one", 1)), at(setup, layout.record_name("two", 1)))
    calls.clear()
    error = fails(opened(), tmp_path / "record", "two")
    assert type(error) is ContextMismatchError
    assert "sealed for run 'one', not for run 'two'; KMS was not asked" in str(error)
    assert calls == {}
    shutil.copy(at(setup, one.bundle.name), at(setup, two.bundle.name))
    context = Context("checkpoint-archiver", "two", two.task, "bundle")
    reader = opened()
    with at(setup, two.bundle.name).open("rb") as source, pytest.raises(ContextMismatchError):
        age.unseal(age.bind_identities(reader.identities, context), source)
    assert calls == {}


@pytest.mark.parametrize("by", ["kms", "glass"])
def test_a_context_that_is_not_that_of_the_signed_body(
    opened, glass: Path, note: Path, tmp_path: Path, by: str
) -> None:
    """A writer with permission for one task seals a record of another under it, to hide what it writes."""
    setup = opened()
    record = save(setup, note)
    lie = Context("checkpoint-archiver", "r", "another task", "record")
    sealed = records.encode(record, setup.require_signing_key(), age.bind_recipients(setup.recipients, lie))
    place = at(setup, layout.record_name("r", 1))
    place.unlink()
    place.write_bytes(sealed)
    reader = opened() if by == "kms" else opened(files=[glass])
    with pytest.raises(ContextMismatchError, match="sealed for task 'another task', not for task"):
        Catalog(reader).read("r", 1)
    assert type(fails(reader, tmp_path / "out")) is ContextMismatchError


def test_a_bundle_whose_context_is_not_that_of_its_record(
    opened, glass: Path, note: Path, tmp_path: Path
) -> None:
    """The payload is as it was signed; only the header was made anew for another task."""
    setup = opened()
    record = save(setup, note)
    assert record.bundle is not None
    place = at(setup, record.bundle.name)
    lie = Context("checkpoint-archiver", "r", "another task", "bundle")
    with place.open("rb") as source:
        new = age.rewrap(age.read_identities(glass), age.bind_recipients(setup.recipients, lie), source)
        data = b"".join(new.blocks())
    place.unlink()
    place.write_bytes(data)
    for reader in (opened(), opened(files=[glass])):
        error = fails(reader, tmp_path / "out")
        assert type(error) is ContextMismatchError
        assert "another task" in str(error)


def test_a_key_that_is_not_in_the_own_list(
    opened, ministack: Ministack, note: Path, tmp_path: Path, calls: Counter[str]
) -> None:
    setup = opened()
    save(setup, note)
    calls.clear()
    error = fails(opened(kms=(ministack.make_key(),)), tmp_path / "out")
    assert type(error) is ForeignKeyError
    assert calls == {}


def test_a_disabled_key_and_a_role_that_may_not_decrypt(
    opened, ministack: Ministack, arn: str, note: Path, tmp_path: Path, kms_caller: Callable[..., None]
) -> None:
    save(opened(), note)
    ministack.client().disable_key(KeyId=arn)
    assert type(fails(opened(), tmp_path / "out")) is KmsKeyDisabledError
    ministack.client().enable_key(KeyId=arn)
    kms_caller(ministack.make_user("kms:GenerateDataKey", arn=arn))
    error = fails(opened(), tmp_path / "out")
    assert type(error) is KmsDeniedError
    assert "kms:Decrypt" in str(error)
    assert "object='record', run='r'" in str(error)
    kms_caller(ministack.make_user("kms:Decrypt", arn=arn))
    assert "hello" in restored(opened(), tmp_path / "out")


def test_the_policies_of_the_document(
    opened, ministack: Ministack, arn: str, note: Path, tmp_path: Path, kms_caller: Callable[..., None]
) -> None:
    """As they stand, but for the conditions: this server denies whatever has one on the context."""
    text = (Path(__file__).parents[2] / "docs" / "KEYS.md").read_text()
    policies = [json.loads(block.split("```")[0]) for block in text.split("```json\n")[1:]]
    (writer,), (reader,) = (policy["Statement"] for policy in policies)
    context = Context("checkpoint-archiver", "r", "t", "record")
    for statement in (writer, reader):
        named = {key: value for pairs in statement.pop("Condition").values() for key, value in pairs.items()}
        assert {key.removeprefix("kms:EncryptionContext:") for key in named} <= set(context.pairs())
        assert named["kms:EncryptionContext:application"] == load().keys.application
        if "kms:EncryptionContext:task" in named:
            probes = {layout.INIT_PROBES, layout.DOCTOR_PROBES}
            assert probes <= set(named["kms:EncryptionContext:task"])
        statement["Resource"] = arn
    kms_caller(ministack.make_user_of([writer]))
    setup = opened()
    save(setup, note)
    save(setup, note)
    kms_caller(ministack.make_user_of([reader]))
    assert "hello" in restored(opened(), tmp_path / "out")
    with pytest.raises(KmsDeniedError, match="kms:GenerateDataKey is not allowed"):
        save(opened(), note)


def test_the_policy_for_the_audit_of_readers(
    opened, ministack: Ministack, arn: str, note: Path, tmp_path: Path, kms_caller: Callable[..., None]
) -> None:
    """A reader's own policy leaves the audit on this machine; that of the document puts it into the store."""
    save(opened(), note)
    text = (Path(__file__).parents[2] / "docs" / "AUDIT.md").read_text()
    policies = [json.loads(block.split("```")[0]) for block in text.split("```json\n")[1:]]
    (seals,) = [one for policy in policies for one in policy["Statement"] if one["Sid"] == "SealsAudit"]
    assert seals.pop("Condition")["StringEquals"] == {
        "kms:EncryptionContext:application": load().keys.application,
        "kms:EncryptionContext:object": "audit",
    }
    reader = {"Effect": "Allow", "Action": "kms:Decrypt", "Resource": arn}
    kms_caller(ministack.make_user_of([reader]))
    report = restore("r", opened(), into=tmp_path / "local").report
    (warning,) = [one for one in report.warnings if one.startswith("audit: local only")]
    assert "kms:GenerateDataKey" in warning
    assert "object='audit'" in warning
    kms_caller(ministack.make_user_of([reader, {**seals, "Resource": arn}]))
    report = restore("r", opened(), into=tmp_path / "both").report
    assert not [one for one in report.warnings if one.startswith("audit:")]
    (entry,) = [found.entry for found in entries.of(opened(), "r")]
    assert entry is not None
    assert entry.action == "restore"


def test_the_example_of_the_document(config: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "KEYS.md").read_text()
    example = text.split("```toml\n")[1].split("```")[0].replace("age1…", str(age.generate().recipient))
    config.write_text(example)
    first, second = keys.recipients(load(config), ())
    assert (first.kind, second.kind) == ("AWS KMS", "X25519")


def test_another_application_is_refused(opened, note: Path, tmp_path: Path, calls: Counter[str]) -> None:
    save(opened(), note)
    calls.clear()
    error = fails(opened(application="billing"), tmp_path / "out")
    assert type(error) is ContextMismatchError
    assert "keys.application" in (error.remedy or "")
    assert calls == {}


def test_a_reader_needs_no_identity_file(opened, config: Path, arn: str, note: Path) -> None:
    save(opened(), note)
    reader = opened()
    assert [identity.fingerprint for identity in reader.identities] == [age.parse_arn(arn).fingerprint]
    assert Catalog(reader).head("r") is not None


def test_a_wrong_arn_in_the_configuration(opened, arn: str) -> None:
    for wrong in (arn.replace("key/", "alias/"), "arn:aws:kms"):
        with pytest.raises(ConfigError, match=r"keys\.kms"):
            opened(kms=(wrong,))
