"""The history of a run as `agmi-check` attacks it: one entry a checkpoint, its record and its bundle.

    agmi-check --adapter history:History

The attacker holds the whole store and every public key, and knows what is in it; the signing key, the
identity and the witness lie elsewhere. The read path is the one that people use: a restore of the newest
checkpoint, and then of each one before it.
"""

from __future__ import annotations

import base64
import io
import os
import secrets
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from agmi.adapters.base import MemoryAdapter
from agmi.adapters.base import Record as Entry

from archiver import age, layout, records
from archiver.archive import Source, archive
from archiver.catalog import Catalog
from archiver.config import load
from archiver.errors import ArchiverError
from archiver.model import Checkpoint, Items, Transcript, TranscriptPart
from archiver.restore import restore
from archiver.setup import Setup, initialise, open_setup
from archiver.sign import SigningKey

RUN, OTHER = "run-a", "run-b"
HINT = b"-> checkpoint.archiver/hint"


class History(MemoryAdapter):
    """Runs in a local folder, with a witness outside it."""

    name = "checkpoint-archiver"
    detection_point = "read"
    supports_replay = supports_metadata = supports_snapshot = True

    def setup(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="history-"))
        self._before = {name: os.environ.get(name) for name in ("HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")}
        for name in self._before:
            os.environ[name] = str(self._folder / "home")
        (self._folder / "home").mkdir()
        self._config = self._folder / "archiver.toml"
        initialise(str(self._store), self._config, settings=load(without_file=True), now=datetime.now(UTC))
        self.reload()

    def teardown(self) -> None:
        for name, value in self._before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        shutil.rmtree(self._folder)

    @property
    def _store(self) -> Path:
        return self._folder / "store"

    def reload(self) -> None:
        self._setup: Setup = open_setup(load(self._config), need="write")

    def verify(self) -> bool:
        with tempfile.TemporaryDirectory(dir=self._folder) as scratch:
            try:
                newest = restore(RUN, self._setup, into=Path(scratch) / "newest").report.seq
                for seq in range(1, newest):
                    restore(RUN, self._setup, into=Path(scratch) / str(seq), at=seq)
            except ArchiverError as error:
                self.verify_detail = f"{type(error).__name__}: {error}"
                return False
        return True

    def seed(self, n: int) -> None:
        self._save(RUN, n)

    def seed_other(self, n: int) -> None:
        self._save(OTHER, n)

    def append_genuine(self) -> None:
        self._save(RUN, 1)

    def _save(self, run: str, count: int) -> None:
        for _ in range(count):
            now = datetime.now(UTC)
            messages = [{"role": "user", "content": f"Step {secrets.token_hex(4)} of {run}."}]
            part = TranscriptPart(name="messages.jsonl", items=Items.of(messages))
            checkpoint = Checkpoint(
                run_id=run,
                task_id=run,
                created_at=now,
                checkpoint_at=now,
                transcript=Transcript(dialect="anthropic-messages", parts=(part,)),
            )
            archive(Source(checkpoint=checkpoint), self._setup)

    def read_all_raw(self) -> list[Entry]:
        return self._entries(RUN)

    def read_other_raw(self) -> list[Entry]:
        return self._entries(OTHER)

    def _entries(self, run: str) -> list[Entry]:
        entries = []
        for path in sorted((self._store / layout.records_prefix(run)).glob("*.age")):
            seq = int(path.stem)
            bundle = self._bundle(run, seq)
            fields = {
                "id": f"{run}/{seq}",
                "record": _text(path.read_bytes()),
                "bundle": _text(bundle.read_bytes()),
                "bundle_name": bundle.name,
            }
            entries.append(Entry(seq, fields))
        return entries

    def _bundle(self, run: str, seq: int) -> Path:
        return next((self._store / layout.bundles_prefix(run)).glob(f"{seq:08d}-*.age"))

    def identity_of(self, record: Entry) -> str:
        return str(record.fields["id"])

    def owner_of(self, record: Entry) -> str:
        return self.identity_of(record).split("/")[0]

    def payload_of(self, record: Entry) -> str:
        """The digests of what is sealed: a header says nothing about the content."""
        sealed = (_bytes(record.fields[name]) for name in ("record", "bundle"))
        return " ".join(age.payload_digest(io.BytesIO(data))[0] for data in sealed)

    def write_raw(self, record: Entry) -> None:
        name = self._store / layout.record_name(RUN, record.seq)
        new = not name.exists()
        bundle = self._store / layout.bundles_prefix(RUN) / record.fields["bundle_name"]
        _put(name, _bytes(record.fields["record"]))
        _put(bundle if new else self._bundle(RUN, record.seq), _bytes(record.fields["bundle"]))

    def delete_raw(self, seq: int) -> None:
        (self._store / layout.record_name(RUN, seq)).unlink()
        self._bundle(RUN, seq).unlink()

    def replay_onto(self, victim_seq: int, donor: Entry) -> None:
        self.write_raw(Entry(victim_seq, donor.fields))

    def mutate_payload(self, record: Entry) -> Entry:
        """Another bundle, sealed to the public recipients as it should be, in the genuine one's place."""
        record.fields["bundle"] = _text(self._sealed(RUN, "bundle", secrets.token_bytes(400)))
        return record

    def forge_record(self, template: Entry) -> Entry:
        """The next record, right in everything but the key that signed it."""
        before = Catalog(self._setup).read(RUN, template.seq)
        forger = SigningKey.generate()
        name = layout.bundle_name(RUN, template.seq + 1, secrets.token_hex(8))
        assert before.record.bundle is not None
        forged = before.record.model_copy(
            update={
                "seq": template.seq + 1,
                "previous": before.sha256,
                "writer": forger.public,
                "bundle": before.record.bundle.model_copy(update={"name": name}),
            }
        )
        recipients = self._setup.recipients_for(RUN, RUN, "record")
        fields = {
            **template.fields,
            "id": f"{RUN}/{forged.seq}",
            "record": _text(records.encode(forged, forger, recipients)),
            "bundle_name": name.rsplit("/", 1)[1],
        }
        return Entry(forged.seq, fields)

    def _sealed(self, run: str, kind: age.ObjectKind, content: bytes) -> bytes:
        out = bytearray()
        sealer = age.seal(self._setup.recipients_for(run, run, kind), out.extend)
        sealer.write(content)
        sealer.close()
        return bytes(out)

    def read_meta(self, seq: int) -> dict[str, object]:
        """What stands in clear in the record's header: whom it is for."""
        sealed = (self._store / layout.record_name(RUN, seq)).read_bytes()
        return {"hint": next(line for line in sealed.split(b"\n") if line.startswith(HINT)).decode()}

    def write_meta(self, seq: int, meta: dict[str, object]) -> None:
        path = self._store / layout.record_name(RUN, seq)
        sealed = path.read_bytes()
        hint = str(meta["hint"]).encode()
        _put(path, sealed.replace(hint, HINT + b" " + secrets.token_hex(16).encode(), 1))

    def snapshot_store(self) -> object:
        return self._copy_store(self._store)

    def restore_store(self, token: object) -> None:
        self._restore_store(str(token), self._store)
        shutil.rmtree(Path(str(token)).parent)


def _put(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)
