"""What keeps, shortens and ends the life of runs, under the roles' own credentials, by the real commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from inside import command

from terraform.applied import Applied
from terraform.test_commands import Machine, machine, note  # noqa: F401

Classes = Callable[[str], list[str]]
Save = Callable[..., None]


@pytest.fixture
def classes(applied: Applied) -> Classes:
    """The classes of a run's bundles that are there, first saved first, as the account's root sees them."""
    s3, bucket = applied.client("s3"), applied.bucket

    def of(run: str) -> list[str]:
        found = s3.list_objects_v2(Bucket=bucket, Prefix=f"team/archive/bundles/{run}/").get("Contents", [])
        tags = [s3.get_object_tagging(Bucket=bucket, Key=one["Key"])["TagSet"] for one in found]
        return [one["Value"] for (one,) in tags]

    return of


@pytest.fixture
def save(machine: Machine, note: Path) -> Save:  # noqa: F811
    """Saves checkpoints of a run as the runner; the last has the outcome."""

    def saved(run: str, *outcomes: str) -> None:
        config = machine("runner")
        for outcome in outcomes:
            note.write_text(f"{note.read_text()}{run}\n")
            words = ("--run-id", run, "--task", "billing-7", "--outcome", outcome, "--config", config)
            done = command("archive", note, *words)
            assert done.code == 0, done.err

    return saved


def test_a_sweeper_changes_classes_and_no_hold(machine: Machine, save: Save, classes: Classes) -> None:  # noqa: F811
    for run in ("swept", "kept"):
        save(run, "running", "succeeded")
        assert classes(run) == ["live", "success"]
    done = command("hold", "kept", "--reason", "an audit", "--config", machine("administrator"))
    assert done.code == 0, done.err
    assert classes("kept") == ["hold", "hold"]
    done = command("sweep", "--config", machine("sweeper"), "--json")
    assert done.code == 0, done.err
    assert classes("swept") == ["success", "success"]
    assert classes("kept") == ["hold", "hold"]
    released = command("release", "kept", "--config", machine("sweeper"), "--reason", "mine")
    assert released.code != 0
    assert classes("kept") == ["hold", "hold"]
    done = command("release", "kept", "--config", machine("administrator"), "--reason", "it is over")
    assert done.code == 0, done.err
    assert classes("kept") == ["success", "success"]


def test_an_administrator_alone_removes(machine: Machine, save: Save, classes: Classes) -> None:  # noqa: F811
    save("removed", "running", "succeeded")
    for role, code in (("runner", 8), ("sweeper", 6)):  # one may put no note, the other not even seal it
        refused = command("rm", "removed", "--yes", "--reason", "mine", "--config", machine(role))
        assert refused.code == code, refused.err
    assert len(classes("removed")) == 2
    words = ("--yes", "--reason", "asked for", "--config", machine("administrator"))
    done = command("rm", "removed", *words)
    assert done.code == 0, done.err
    assert classes("removed") == []


def test_an_administrator_alone_erases_every_version(
    machine: Machine,  # noqa: F811
    save: Save,
    classes: Classes,
    applied: Applied,
) -> None:
    save("erased", "running", "failed")
    s3 = applied.client("s3")

    def left() -> list[str]:
        """What is there of the run in any version, markers of deletion too, but for its notes and audit."""
        found = []
        for kind in ("bundles", "records", "effects"):
            seen = s3.list_object_versions(Bucket=applied.bucket, Prefix=f"team/archive/{kind}/erased/")
            found += [one["Key"] for one in (*seen.get("Versions", ()), *seen.get("DeleteMarkers", ()))]
        return found

    before = len(left())
    assert before >= 4
    for role in ("runner", "sweeper"):
        refused = command("erase", "erased", "--yes", "--reason", "mine", "--config", machine(role))
        assert refused.code in (6, 8), refused.err
    assert len(left()) == before
    words = ("--yes", "--reason", "asked for", "--config", machine("administrator"))
    done = command("erase", "erased", *words)
    assert done.code == 0, done.err
    assert left() == []
    notes = s3.list_objects_v2(Bucket=applied.bucket, Prefix="team/archive/notes/erased/")
    assert notes["KeyCount"] == 1  # the tombstone
    assert classes("erased") == []
    gone = command("restore", "erased", "--into", "again", "--config", machine("restorer"))
    assert gone.code == 9, gone.err
