"""Write a store whose bundles hold documents of schema version 1: `make_v1_store.py FOLDER`.

No release writes such bundles; the format allows them, so every release has to restore them. Made once, by
hand where the product has no way to make them, and never written again.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from keys import STORE_ID
from make_store import NOW, golden_setup

from archiver import age, jsonio, layout, members, pack, records
from archiver.migrate import migrate
from archiver.model import Checkpoint, Member, Receipt, Sizes
from archiver.model.manifest import ManifestHead
from archiver.model.record import Record
from archiver.position import Position
from archiver.record_of import record_of
from archiver.redacted import vouch
from archiver.setup import Setup
from archiver.store import open_store

ROWS = Path(__file__).parent / "v1" / "rows.jsonl"


def save(row: dict[str, Any], setup: Setup, before: Record | None) -> Record:
    """Commit the row, as it is, as the next checkpoint of its run."""
    checkpoint = Checkpoint.model_validate(migrate(row)[0])
    seq = 1 if before is None else before.seq + 1
    key = hashlib.sha256(checkpoint.run_id.encode()).digest()
    receipt = Receipt()
    packed, data = _sealed(row, checkpoint, seq, key, receipt, setup)
    name = layout.bundle_name(checkpoint.run_id, seq, hashlib.sha256(data).hexdigest()[:16])
    setup.store.create(name, [data], retention="live")
    place = Position(checkpoint.run_id, seq, None if before is None else records.body_sha256(before))
    record = record_of(
        checkpoint,
        place,
        setup,
        bundle=packed,
        sizes=Sizes(raw=1, compacted=1, stored=len(data)),
        receipt=receipt,
        recipients=tuple(recipient.fingerprint for recipient in setup.recipients),
        recorded_at=NOW,
        software="made by hand",
    ).model_copy(update={"schema_version": 1, "min_reader": 1})
    assert record.bundle is not None
    record = record.model_copy(update={"bundle": record.bundle.model_copy(update={"name": name})})
    sealed = records.encode(record, setup.require_signing_key(), setup.recipients)
    setup.store.create(layout.record_name(record.run, record.seq), [sealed], retention="record")
    return record


def _sealed(
    row: dict[str, Any], checkpoint: Checkpoint, seq: int, key: bytes, receipt: Receipt, setup: Setup
) -> tuple[Any, bytes]:
    data = jsonio.canonical(row)
    state = Member(members.STATE, data, len(data), hashlib.sha256(data).hexdigest())
    head = ManifestHead(
        run=checkpoint.run_id,
        seq=seq,
        schema_version=1,
        redaction_key=base64.b64encode(key).decode(),
        mtime=int(checkpoint.checkpoint_at.timestamp()),
    )
    out = bytearray()
    sealer = age.seal(setup.recipients, out.extend)
    packed = pack.pack(
        vouch((state, members.of_receipt(receipt)), receipt), head, sealer.write, limits=setup.settings.limits
    )
    container = sealer.close()
    placeholder = layout.bundle_name(checkpoint.run_id, seq, "0" * 16)
    return packed.ref(placeholder, container), bytes(out)


def main(folder: Path) -> None:
    store = open_store(str(folder), make=True)
    store.create(layout.STORE, [layout.store_document(STORE_ID)], retention="hold")
    setup = golden_setup(folder)
    rows = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        save(row, setup, None)
    first = rows[0]
    later = {**first, "iteration": 4, "updated_at": "2026-01-05T11:00:00Z", "schema_version": 1}
    head = records.decode(
        setup.store.read(layout.record_name("task-7", 1), limit=records.MAX_RECORD),
        setup.identities,
        run="task-7",
        seq=1,
    )
    save(later, setup, head.record)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
