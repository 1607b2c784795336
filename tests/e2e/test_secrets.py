"""A credential that a rule or a registered value covers is nowhere in what a save leaves behind."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from archiver import age
from archiver.archive import Given, Options, Source, archive, archive_rows
from archiver.errors import ArchiverError, RefusedError
from archiver.model import (
    Checkpoint,
    Effect,
    Evidence,
    Items,
    Plan,
    Step,
    SubtaskResult,
    Transcript,
    TranscriptPart,
)
from archiver.restore import restore
from archiver.setup import Setup

START = {
    "type": "user",
    "uuid": "0",
    "parentUuid": None,
    "sessionId": "s-1",
    "message": {"role": "user", "content": "Look."},
}


def made(kind: str, seed: int = 1) -> str:
    """A credential of that kind, made when the test runs."""
    letters = "".join(random.Random(seed).choices(string.ascii_letters + string.digits, k=36))
    return {"rule": f"ghp_{letters}", "registered": letters[:20]}[kind]


@pytest.fixture(params=["rule", "registered"])
def secret(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    value = made(request.param)
    if request.param == "registered":
        monkeypatch.setenv("DEPLOY_PASSWORD", value)
    return value


def opened(setup: Setup) -> bytes:
    """Everything in the store, sealed names and opened contents together."""
    import io

    import zstandard

    pieces = []
    root = Path(setup.store.url.removeprefix("file://"))
    for path in sorted(root.rglob("*")):
        pieces.append(str(path.relative_to(root)).encode())
        if path.suffix == ".age":
            with age.unseal(setup.identities, io.BytesIO(path.read_bytes())) as stream:
                data = stream.read()
            if ".tar.zst" in path.name:
                reader = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True)
                data = reader.read()
            pieces.append(data)
    return b"\n".join(pieces)


def session(path: Path, text: str) -> Path:
    line = {**START, "uuid": "1", "parentUuid": "0", "message": {"role": "user", "content": text}}
    path.write_text(json.dumps(START) + "\n" + json.dumps(line) + "\n", encoding="utf-8")
    return path


def test_in_every_field_of_a_checkpoint(setup: Setup, secret: str, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    text = f"use {secret} now"
    checkpoint = Checkpoint(
        run_id="fields",
        task_id=f"task {secret}",
        user_id=secret,
        objective=text,
        phase=text,
        note=text,
        created_at=now,
        checkpoint_at=now,
        plan=Plan(completed=(Step(id="1", title=text, detail=text),)),
        results=(
            SubtaskResult(key="k", output={secret: text}, files=(secret,), urls=(f"https://x/?t={secret}",)),
        ),
        evidence=(Evidence(command=text, summary=text),),
        effects=(Effect(key=secret, tool="t", arguments={"a": [text]}, result=text, status="confirmed"),),
        summary=text,
        transcript=Transcript(
            dialect="anthropic-messages",
            parts=(
                TranscriptPart(name=f"{secret}.jsonl", items=Items.of([{"role": "user", "content": text}])),
            ),
        ),
    )
    archive(Source(checkpoint=checkpoint), setup)
    assert secret.encode() not in opened(setup)
    done = restore("fields", setup, into=tmp_path / "out")
    for path in (tmp_path / "out").rglob("*"):
        assert secret not in str(path)
        assert path.is_dir() or secret.encode() not in path.read_bytes()
    assert "[REDACTED:" in done.checkpoint.note


def test_in_transcript_note_and_names(setup: Setup, secret: str, tmp_path: Path) -> None:
    path = session(tmp_path / f"{secret}.jsonl", f"the key is {secret}")
    done = archive(Source(paths=(path,)), setup, options=Options(given=Given(note=secret, task_id=secret)))
    assert secret.encode() not in opened(setup)
    assert secret not in repr(done)


def test_in_the_run_id(setup: Setup, secret: str, tmp_path: Path) -> None:
    path = session(tmp_path / "s.jsonl", "nothing")
    done = archive(Source(paths=(path,)), setup, options=Options(given=Given(run_id=f"run-{secret}")))
    assert secret.encode() not in opened(setup)
    assert secret not in repr(done)
    restore(done.record.run, setup, into=tmp_path / "out")


def test_a_run_id_that_turns_out_to_be_a_credential_is_refused(setup: Setup, tmp_path: Path) -> None:
    value = made("registered", seed=7)
    path = session(tmp_path / "s.jsonl", f"password: {value}")
    with pytest.raises(RefusedError) as caught:
        archive(Source(paths=(path,)), setup, options=Options(given=Given(run_id=value)))
    assert value not in str(caught.value)
    assert not list(setup.store.list("records/"))


def test_the_same_task_again(setup: Setup, secret: str, tmp_path: Path) -> None:
    path = session(tmp_path / "s.jsonl", "nothing")
    options = Options(given=Given(run_id="r", task_id=f"t-{secret}"))
    first = archive(Source(paths=(path,)), setup, options=options)
    second = archive(Source(paths=(path,)), setup, options=options)
    assert second.record.task == first.record.task
    assert second.record.seq == 2


def test_in_what_a_summary_callable_says(setup: Setup, secret: str, tmp_path: Path) -> None:
    path = session(tmp_path / "s.jsonl", "nothing")
    archive(Source(paths=(path,)), setup, options=Options(summarise=lambda _: f"used {secret}"))
    assert secret.encode() not in opened(setup)


def test_in_errors(setup: Setup, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    value = made("registered", seed=3)
    monkeypatch.setenv("DEPLOY_PASSWORD", value)
    broken = session(tmp_path / f"{value}.jsonl", "x")
    broken.write_text('{"type":"user"\x00\n' + broken.read_text())
    rows = tmp_path / "rows.json"
    row = {"task_id": "t", "goal": "g", "messages": [], "created_at": value, "updated_at": value}
    rows.write_text(json.dumps([row]))
    doings: list[Callable[[], object]] = [
        lambda: archive(Source(paths=(broken,)), setup),
        lambda: archive(Source(paths=(tmp_path / f"no-{value}.jsonl",)), setup),
        lambda: archive_rows(rows, setup),
    ]
    for doing in doings:
        with pytest.raises(ArchiverError) as caught:
            doing()
        assert value not in f"{caught.value} {caught.value.remedy}"
