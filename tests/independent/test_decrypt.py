"""The independent decryptor opens what the package makes, and refuses what the package refuses."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
import zstandard

from archiver import age, notes, records, sign

SCRIPT = Path(__file__).parent / "decrypt.py"
VECTORS = Path(__file__).parent.parent / "vectors"
KEY, OTHER = age.generate(), age.generate()
TEXT = b"0123456789abcdef" * 9000


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "identity.txt"
    age.write_identity(path, KEY, created=datetime(2026, 1, 31, tzinfo=UTC))
    return path


def write(path: Path, plain: bytes, recipients: Sequence[age.Recipient] = ()) -> Path:
    with path.open("wb") as file:
        sealer = age.seal(recipients or [OTHER.recipient, KEY.recipient], file.write)
        sealer.write(plain)
        sealer.close()
    return path


def run(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    # -I: no folder of the repository is on the path, so nothing of the package can be imported by chance
    return subprocess.run([sys.executable, "-I", SCRIPT, *arguments], capture_output=True)


def test_it_shares_no_code_with_the_package() -> None:
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"))
    roots = {
        (node.module or "").split(".")[0] if isinstance(node, ast.ImportFrom) else alias.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert roots - set(sys.stdlib_module_names) == {"cryptography", "zstandard"}


@pytest.mark.parametrize("size", [0, 1, 65536, 65537, len(TEXT)])
def test_a_file(tmp_path: Path, key_file: Path, size: int) -> None:
    done = run(key_file, write(tmp_path / "a.age", TEXT[:size]))
    assert (done.returncode, done.stdout) == (0, TEXT[:size]), done.stderr


def test_a_file_for_post_quantum_keys(tmp_path: Path) -> None:
    own, other = age.HybridIdentity.generate(), age.HybridIdentity.generate()
    path = write(tmp_path / "a.age", TEXT, [other.recipient, own.recipient])
    for key, works in ((own, True), (other, True), (age.HybridIdentity.generate(), False), (KEY, False)):
        key_file = tmp_path / f"{key.fingerprint}.txt"
        age.write_identity(key_file, key, created=datetime(2026, 1, 31, tzinfo=UTC))
        done = run(key_file, path)
        assert (done.returncode == 0, done.stdout) == (works, TEXT if works else b""), done.stderr


def test_a_file_for_kms_says_what_opens_it(tmp_path: Path, key_file: Path) -> None:
    done = run(key_file, VECTORS / "kms" / "kms.age")
    assert done.returncode != 0
    assert b"no key fits; AWS KMS opens it with arn:aws:kms:eu-central-1:111122223333:key/" in done.stderr
    assert done.stdout == b""


def test_a_bundle(tmp_path: Path, key_file: Path) -> None:
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        for name, data in (("manifest.json", b"{}"), ("transcript/0000.jsonl", TEXT)):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    raw = tar.getvalue()
    frames = zstandard.compress(raw[:70000]) + zstandard.compress(raw[70000:])
    done = run("--untar", tmp_path / "out", key_file, write(tmp_path / "b.tar.zst.age", frames))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/manifest.json").read_bytes() == b"{}"
    assert (tmp_path / "out/transcript/0000.jsonl").read_bytes() == TEXT


def test_a_record(tmp_path: Path, key_file: Path) -> None:
    body = b'{"format":1}'
    frame = sign.sign(sign.SigningKey.generate(), records.PAYLOAD_TYPE, body)
    done = run("--record", key_file, write(tmp_path / "00000001.age", frame))
    assert (done.returncode, done.stdout) == (0, body), done.stderr


@pytest.mark.parametrize("change", ["header", "payload", "cut", "tail"])
def test_a_damaged_file_gives_nothing(tmp_path: Path, key_file: Path, change: str) -> None:
    path = write(tmp_path / "a.age", b"the state of a run")
    data = bytearray(path.read_bytes())
    if change == "header":
        data[data.index(b"hint ") + 5] ^= 1
    elif change == "payload":
        data[-20] ^= 1
    else:
        data = data[:-1] if change == "cut" else data + b"\0"
    path.write_bytes(data)
    done = run(key_file, path)
    assert done.returncode != 0
    assert done.stdout == b""


def test_a_note_is_no_record(tmp_path: Path, key_file: Path) -> None:
    frame = sign.sign(sign.SigningKey.generate(), notes.PAYLOAD_TYPE, b'{"format":1}')
    path = write(tmp_path / "note.age", frame)
    assert run("--note", key_file, path).stdout == b'{"format":1}'
    refused = run("--record", key_file, path)
    assert (refused.returncode, refused.stdout) == (1, b"")


def test_a_changed_record_gives_nothing(tmp_path: Path, key_file: Path) -> None:
    frame = sign.sign(sign.SigningKey.generate(), records.PAYLOAD_TYPE, b'{"format":1}')
    for wrong in (frame.replace(b'"format":1', b'"format":2'), frame + b" "):
        done = run("--record", key_file, write(tmp_path / "r.age", wrong))
        assert done.returncode != 0
        assert done.stdout == b""


def test_another_key_does_not_open_it(tmp_path: Path) -> None:
    stranger = tmp_path / "stranger.txt"
    age.write_identity(stranger, age.generate(), created=datetime(2026, 1, 31, tzinfo=UTC))
    done = run(stranger, write(tmp_path / "a.age", b"state"))
    assert done.returncode != 0
    assert b"no key fits" in done.stderr
