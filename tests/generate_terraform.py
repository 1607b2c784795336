"""Write the classes and days of `archiver/retention.py` to `terraform/retention.json`, or `--check` them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from archiver.retention import ABORT_DAYS, DAYS, NONCURRENT_DAYS
from archiver.store.s3.client import CLASS_TAG

FILE = Path(__file__).parent.parent / "terraform" / "retention.json"


def text() -> str:
    """The definition as the Terraform module reads it."""
    classes = {
        name: {"days": days, "noncurrent_days": NONCURRENT_DAYS[name]}
        for name, days in sorted(DAYS.items())
        if days is not None
    }
    document = {"tag": CLASS_TAG, "abort_days": ABORT_DAYS, "classes": classes}
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def main(check: bool) -> int:
    if not check:
        FILE.write_text(text(), encoding="utf-8")
        return 0
    if FILE.read_text(encoding="utf-8") == text():
        return 0
    print("terraform/retention.json is not what archiver/retention.py says; write it anew with this script")
    return 1


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
