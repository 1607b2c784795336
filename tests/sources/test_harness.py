"""A session in the middle of one long call is no crashed one while its harness runs."""

from __future__ import annotations

import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from archiver.sources import OpenFiles, of_session
from archiver.sources.ending import ending
from sources.samples import Claude, touch, write

C = Claude()


@pytest.mark.parametrize(
    ("lines", "hours", "elsewhere", "complete"),
    [
        ([C.asks(), C.calls()], 2, False, False),
        ([*C.whole()], 2, False, True),  # a later turn is archived again
        ([C.asks(), C.calls()], 2, True, True),
        ([C.asks(), C.calls()], 25, False, True),  # longer than any call
        ([C.asks(), C.calls()], -1, False, True),  # the process is younger than the last word
    ],
)
def test_a_call_that_takes_long(
    tmp_path: Path, lines: list[object], hours: int, elsewhere: bool, complete: bool
) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    slug = re.sub(r"[^A-Za-z0-9]", "-", str(tmp_path if elsewhere else folder))
    path = write(tmp_path / "projects" / slug / "s.jsonl", lines)
    running = subprocess.Popen(["claude", "60"], executable="/bin/sleep", cwd=folder)
    try:
        opened = OpenFiles.look()
    finally:
        running.kill()
        running.wait()
    spoke = datetime.now(UTC) + timedelta(minutes=5 if hours > 0 else -5)
    touch(path, spoke)
    seen = ending(of_session(path), spoke + timedelta(hours=abs(hours)), opened)
    assert seen.complete is complete
    assert seen.outcome == (None if not complete else "succeeded" if len(lines) > 2 else "crashed")
    assert complete or str(running.pid) in seen.why
