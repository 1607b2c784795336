"""The tampers T1 to T9 of agent-memory-integrity: each is rejected when a run is restored."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXPECTED = {
    "T1 content tamper": "DigestMismatchError",
    "T2 tail truncation": "RolledBackError",
    "T3 middle deletion": "MissingRecordError",
    "T4 reordering": "ContextMismatchError",
    "T5 forged insertion": "UntrustedWriterError",
    "T6 cross-context replay": "ContextMismatchError",
    "T7 rollback replay": "ContextMismatchError",
    "T8 metadata tamper": "HeaderMacError",
    "T9 snapshot rollback": "RolledBackError",
}


@pytest.fixture(scope="module")
def edits(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("agmi")
    row = folder / "row.json"
    done = subprocess.run(
        [sys.executable, "-m", "agmi.check", "--adapter", "history:History", "--json", str(row)],
        cwd=folder,
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(Path(__file__).parent),
            "TMPDIR": str(folder),
            "XDG_CACHE_HOME": str(shared_cache),
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    left = sorted(path.name for path in folder.iterdir())
    assert left == ["row.json"], left
    return {edit["edit"]: edit for edit in json.loads(row.read_text())["edits"]}


def test_all_tampers_are_tried(edits: dict[str, Any]) -> None:
    assert edits.keys() == EXPECTED.keys()


@pytest.mark.parametrize("edit", EXPECTED)
def test_the_tamper_is_rejected_at_read_by_its_own_error(edits: dict[str, Any], edit: str) -> None:
    assert (edits[edit]["verdict"], EXPECTED[edit] in edits[edit]["detail"]) == ("REJECTED", True), edits[
        edit
    ]
