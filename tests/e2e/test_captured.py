"""What probes capture passes redaction as it is: a token that was replaced would compare with nothing."""

from __future__ import annotations

import base64
import secrets
from datetime import UTC, datetime

from archiver.freshness import digests
from archiver.model import Checkpoint, Environment, JsonValue, Transcript
from archiver.redact import Redactor, new_key
from archiver.scratch import Scratch


def captured() -> dict[str, JsonValue]:
    """Tokens of the forms that servers give, made anew."""
    tokens: list[JsonValue] = [
        {"etag": f'"{secrets.token_hex(20)}"', "last_modified": "Tue, 03 Feb 2026 10:00:00 GMT"},
        {"etag": f'W/"{secrets.token_urlsafe(24)}"'},
        {"etag": f'"0x8DC{secrets.token_hex(6).upper()}"'},
        {
            "etag": f"{secrets.token_hex(16)}-12",
            "version": base64.b64encode(secrets.token_bytes(48)).decode(),
        },
        {"head": secrets.token_hex(20)},
        {"head": secrets.token_hex(32)},
        {"content": digests.guarded(b"x")},
        {"token": digests.guarded(b"x")},
    ]
    owner: JsonValue = {
        "at": "aws:", "present": True, "kind": "environment", "key": "ASIA…WXYZ", "account": "111122223333",
        "arn": "arn:aws:sts::111122223333:assumed-role/Deploy",
    }  # fmt: skip
    token: JsonValue = {
        "at": "env:GITHUB_TOKEN", "present": True, "kind": "JWT", "expires": "2026-03-01T11:00:00.000Z",
        "scope": ["repo", "https://www.googleapis.com/auth/cloud-platform"],
    }  # fmt: skip
    return {
        "upstream": {"resources": [{"at": "https://example.com/a", "token": one} for one in tokens]},
        "remote_head": {
            "remote": "https://example.com/a/b.git", "ref": "refs/heads/main", "head": secrets.token_hex(20),
        },
        "credentials": {"credentials": [owner, token]},
    }  # fmt: skip


def test_captured_tokens_stay() -> None:
    redactor = Redactor.load(new_key())
    now = datetime.now(UTC)
    with Scratch() as scratch:
        transcript = redactor.transcript(Transcript(dialect="opaque", parts=()), scratch).value
        for _ in range(20):
            probes = captured()
            checkpoint = Checkpoint(
                run_id="r",
                task_id="t",
                created_at=now,
                checkpoint_at=now,
                environment=Environment(probes=probes),
                transcript=transcript,
            )
            assert redactor.checkpoint(checkpoint).value.environment.probes == probes
