"""Numbers that no machine word holds come through redaction, compaction and repair as they were."""

from __future__ import annotations

import json
from pathlib import Path

from transcripts.samples import claude_session, line_of

from archiver.archive import Options, Source, archive
from archiver.restore import restore
from archiver.setup import Setup

BIG = 12345678901234567890123


def test_a_long_number_in_a_line_that_compaction_edits(setup: Setup, tmp_path: Path) -> None:
    lines = list(claude_session(6, seed=1))
    edited = [line for line in lines if "toolUseResult" in line][:2]
    for line in edited:
        line["cost"] = BIG
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"".join(line_of(line) + b"\n" for line in lines))
    done = archive(Source(paths=(path,)), setup, options=Options(keep_turns=1))
    assert done.compaction.folded >= 2
    restored = restore(done.record.run, setup, into=tmp_path / "out", accept=("age", "git_commit"))
    kept = [
        json.loads(line)
        for file in (restored.folder / "transcript").iterdir()
        for line in file.read_bytes().splitlines()
        if b'"cost"' in line
    ]
    assert [line["cost"] for line in kept] == [BIG, BIG]
    assert all("toolUseResult" not in line for line in kept)
