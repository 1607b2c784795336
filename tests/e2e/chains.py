"""Bundles of one run in a store, of any tables and on any bases, packed and sealed as the package does it."""

from __future__ import annotations

import io
import secrets
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from pack.archives import redacted

from archiver import age, bundles, layout
from archiver.model import Record
from archiver.model.manifest import Manifest, ManifestHead
from archiver.model.record import BundleRef
from archiver.pack import Base, Held, Kept, Packed, pack, tar
from archiver.pack.frames import Codec
from archiver.progress import Silent
from archiver.setup import Setup
from archiver.store import ObjectStore
from archiver.store.decorated import Decorated

RUN = "chain"
KEY = "c2VjcmV0"
Files = dict[str, bytes]


class Noted(Decorated):
    """A store that keeps the names of what was opened."""

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.opened: list[str] = []

    def open(self, name: str, *, offset: int = 0) -> AbstractContextManager[BinaryIO]:
        self.opened.append(name)
        return super().open(name, offset=offset)


class Chains:
    """`records` has what a reader knows of the run: records that were verified."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.records: list[Record] = []
        self.tables: dict[int, Files] = {}
        self.manifests: dict[int, Manifest] = {}
        self._bases: dict[int, Base] = {}

    def save(
        self, files: Mapping[str, bytes], base: int | None = None, *, kept: Collection[str] = ()
    ) -> Record:
        """One more checkpoint with these members; `kept`: those of the base that nobody reads again."""
        out, seq = io.BytesIO(), len(self.records) + 1
        on = self._bases[base] if base is not None else None
        head = ManifestHead(run=RUN, seq=seq, schema_version=2, redaction_key=KEY)
        had = self.tables[base] if base is not None else {}
        left = {path: had[path] for path in kept}
        made = pack(
            redacted(files),
            head,
            out.write,
            limits=self.setup.settings.limits,
            threads=1,
            base=on,
            kept=Kept(frozenset(left), sum(map(len, left.values()))),
            lending=True,
        )
        self.tables[seq] = {**left, **files}
        record = self._put(seq, out.getvalue(), made.ref)
        assert record.bundle is not None
        chain = (*made.bases, seq)
        self._bases[seq] = Base(
            record.bundle.name, made.manifest_sha256, chain, self._table(made, on), made.text
        )
        self.manifests[seq] = made.manifest
        return record

    def lie(self, base: int, text: bytes = b"", **fields: Any) -> Record:
        """A bundle that no writer makes: without members, on that base; `text` is its dictionary."""
        seq, on = len(self.records) + 1, self._bases[base]
        manifest = Manifest.model_validate(
            {
                "run": RUN,
                "seq": seq,
                "schema_version": 2,
                "redaction_key": KEY,
                "base": {"bundle": on.bundle, "sha256": on.manifest_sha256},
                "members": (),
                **fields,
            }
        )
        first, rest = Codec().encode(tar.manifest_entry(manifest.raw, 0)), Codec(text or None).encode(tar.END)
        made = Packed(manifest, manifest.sha256, manifest.unpacked, len(first + rest), bases=on.chain)
        self.manifests[seq] = manifest
        self.tables[seq] = dict(self.tables[base])
        return self._put(seq, first + rest, made.ref)

    def read(
        self, seq: int, into: Path, choose: Any = None, then: Any = (), progress: Any = None
    ) -> dict[str, bytes]:
        """What comes back of that checkpoint."""
        record = self.records[seq - 1]
        bundles.unpack(record, self.setup, into, progress or Silent(), self.records, choose=choose, then=then)
        return {str(path.relative_to(into)): path.read_bytes() for path in into.rglob("*") if path.is_file()}

    def _put(self, seq: int, data: bytes, ref: Callable[..., BundleRef]) -> Record:
        name = layout.bundle_name(RUN, seq, secrets.token_hex(8))
        sealed = io.BytesIO()
        sealer = age.seal(self.setup.recipients, sealed.write)
        sealer.write(data)
        bundle = ref(name, sealer.close())
        self.setup.store.create(name, [sealed.getvalue()], retention="live")
        now = datetime.now(UTC)
        record = Record(
            store="test",
            run=RUN,
            task=RUN,
            seq=seq,
            schema_version=2,
            min_reader=2,
            created_at=now,
            checkpoint_at=now,
            recorded_at=now,
            outcome="running",
            retention="live",
            writer="test",
            recipients=tuple(one.fingerprint for one in self.setup.recipients),
            bundle=bundle,
        )
        self.records.append(record)
        return record

    @staticmethod
    def _table(made: Packed, on: Base | None) -> dict[str, Held]:
        table = dict(on.table) if on is not None else {}
        for path in made.manifest.dropped:
            del table[path]
        return table | {one.path: (one.size, one.sha256, one.mode) for one in made.manifest.members}
