"""Rewriting headers for KMS keys and for post-quantum ones: from any kind of recipient to any other."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from servers.ministack import Ministack

from archiver import age, layout, notes
from archiver.catalog import Catalog
from archiver.config import load
from archiver.errors import ConfigError, ContextMismatchError, KmsDeniedError, UsageError
from archiver.rekey import rekey
from archiver.restore import restore
from archiver.setup import Setup, keys, open_setup
from archiver.sign import SigningKey

from .rekeying import (
    RUN,
    at,
    backdate,
    broken,
    distrusting,
    done,
    names,
    only,
    payload_of,
    save,
    sealed_objects,
)

QUANTUM = age.HybridIdentity.generate()


@pytest.fixture
def glass(config: Path, tmp_path: Path) -> Path:
    """The identity that `init` made, carried away."""
    return Path(shutil.move(keys.key_folder() / keys.IDENTITY_FILE, tmp_path / "break-glass.txt"))


@pytest.fixture
def arn(ministack: Ministack, kms_caller: Callable[..., None]) -> str:
    return ministack.make_key()


@pytest.fixture
def opened(config: Path, glass: Path, ministack: Ministack) -> Callable[..., Setup]:
    """Opens the store with these recipients; with the break-glass identity, unless that is left at home."""
    settings = load(config)

    def open_with(*recipients: str, kms: Sequence[str] = (), files: Sequence[Path] = (glass,)) -> Setup:
        arns = kms or tuple(text for text in recipients if text.startswith("arn:"))
        held = settings.keys.model_copy(
            update={
                "recipients": recipients,
                "kms": arns,
                "identities": tuple(files),
                "kms_endpoint_url": ministack.endpoint,
            }
        )
        return open_setup(settings.model_copy(update={"keys": held}), need="write")

    return open_with


@pytest.fixture
def ours(glass: Path) -> str:
    """The recipient of the break-glass identity."""
    (identity,) = age.read_identities(glass)
    return str(identity.recipient)


def test_a_run_gets_a_kms_key_beside_its_own(
    opened: Callable[..., Setup], ours: str, arn: str, note: Path, tmp_path: Path
) -> None:
    save(opened(ours), note)
    before = sealed_objects(opened(ours))
    both = opened(arn, ours)
    assert done(both).rewritten == 2
    after = sealed_objects(both)
    assert {name: payload_of(data) for name, data in after.items()} == {
        name: payload_of(data) for name, data in before.items()
    }
    assert broken(both) == []
    alone = opened(arn, files=())
    restore(RUN, alone, into=tmp_path / "by-kms")
    (examined,) = notes.Notes(alone).examined(RUN)  # the note opens by KMS as well, in a context of its own
    assert examined.believed is not None
    restore(RUN, opened(ours), into=tmp_path / "by-glass")
    assert done(both).notes == ()


def test_the_time_of_writing_is_read_by_kms_alone(
    opened: Callable[..., Setup], ours: str, arn: str, note: Path
) -> None:
    old = datetime(2026, 1, 1, tzinfo=UTC)
    save(opened(ours), note)
    backdate(opened(ours), old, "records/", "bundles/")
    ops = SigningKey.generate()
    both = replace(distrusting(opened(arn, ours), old + timedelta(days=1), ops.public), signing_key=ops)
    done(both)
    reader = replace(opened(arn, files=()), writers=both.writers)
    assert Catalog(reader).chain(RUN).writer == "ci"


def test_a_note_in_another_runs_place_is_refused_before_kms_is_asked(
    opened: Callable[..., Setup], ours: str, arn: str, note: Path
) -> None:
    both = opened(arn, ours)
    save(opened(ours), note)
    done(both)
    (name,) = names(both, layout.NOTES)
    moment = layout.parse(name).at
    assert moment is not None
    moved = layout.note_name(moment, "other", "0" * 16)
    both.store.create(moved, [at(both, name).read_bytes()], retention="hold")
    (examined,) = notes.Notes(opened(arn, files=())).examined("other")
    assert isinstance(examined.error, ContextMismatchError)
    assert "KMS was not asked" in str(examined.error)


def test_a_kms_key_is_taken_away_again(
    opened: Callable[..., Setup], ours: str, arn: str, note: Path, tmp_path: Path
) -> None:
    save(opened(arn, ours), note)
    with pytest.raises(ConfigError, match="none of your identities"):
        list(rekey([RUN], opened(ours, kms=(arn,), files=())))
    assert done(opened(ours, kms=(arn,))).rewritten == 2
    restore(RUN, opened(ours), into=tmp_path / "out")
    assert broken(opened(ours)) == []


def test_what_kms_will_not_open_for_the_caller_is_not_rewritten_to_it_alone(
    opened: Callable[..., Setup],
    ours: str,
    arn: str,
    note: Path,
    ministack: Ministack,
    kms_caller: Callable[..., None],
) -> None:
    """The caller may wrap with the key and not unwrap: he would lock himself out, run by run."""
    save(opened(ours), note)
    before = sealed_objects(opened(ours))
    kms_caller(ministack.make_user("kms:GenerateDataKey", arn=arn))
    (found,) = rekey([RUN], opened(arn))
    assert isinstance(found.error, KmsDeniedError)
    assert found.notes == ()
    assert sealed_objects(opened(ours)) == before
    assert done(opened(arn, ours)).rewritten == 2  # beside his own key nothing is lost


def test_post_quantum_and_back(
    opened: Callable[..., Setup], ours: str, arn: str, note: Path, tmp_path: Path
) -> None:
    save(opened(ours), note)
    quantum = str(QUANTUM.recipient)
    setup = opened(arn, quantum)
    setup = replace(setup, identities=(*setup.identities, QUANTUM))
    assert done(setup).rewritten == 2
    assert broken(setup) == []
    restore(RUN, only(setup, QUANTUM), into=tmp_path / "quantum")
    restore(RUN, opened(arn, files=()), into=tmp_path / "kms")
    with pytest.raises(UsageError, match="may not share a file"):
        done(replace(opened(ours, quantum), identities=setup.identities))
    back = replace(opened(ours), identities=setup.identities)
    assert done(back).rewritten == 2
    restore(RUN, opened(ours), into=tmp_path / "ours")
