"""Write the JSON Schemas of the current models to `schemas/v2/`, or with `--check` diff them."""

from __future__ import annotations

import difflib
import json
import sys
from pathlib import Path

from pydantic import BaseModel

from archiver.model import Checkpoint, Note, Receipt, Record
from archiver.model.audit import AuditEntry, AuditLine
from archiver.model.difference import Difference, FolderDifference
from archiver.model.effect_entry import EffectEntry
from archiver.model.export import Export
from archiver.model.manifest import Manifest
from archiver.model.report import RestoreReport
from archiver.model.run_manifest import RunManifest
from archiver.model.workspace import WorkspaceDocument

FOLDER = Path(__file__).parent.parent / "schemas" / "v2"
MODELS: dict[str, type[BaseModel]] = {
    "audit": AuditEntry,
    "audit-line": AuditLine,
    "checkpoint": Checkpoint,
    "diff": Difference,
    "effect": EffectEntry,
    "export": Export,
    "folder-diff": FolderDifference,
    "manifest": Manifest,
    "note": Note,
    "receipt": Receipt,
    "record": Record,
    "report": RestoreReport,
    "run-manifest": RunManifest,
    "workspace": WorkspaceDocument,
}


def render(name: str, model: type[BaseModel]) -> str:
    """The schema of one model as the text of its file."""
    schema = model.model_json_schema(by_alias=True, mode="validation")
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["$id"] = f"checkpoint-archiver/v2/{name}.schema.json"
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def main(check: bool) -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    drift = []
    for name, model in MODELS.items():
        path = FOLDER / f"{name}.schema.json"
        new = render(name, model)
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        if check:
            drift += difflib.unified_diff(
                old.splitlines(), new.splitlines(), str(path.name), "model", lineterm=""
            )
        else:
            path.write_text(new, encoding="utf-8")
    if drift:
        print("\n".join(drift))
        print("schemas/v2 does not match the models; a change of a released format needs a new version.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
