"""A value that the caller registers leaves in no bundle, whatever it looks like and however it is written."""

from __future__ import annotations

import base64
import json
import secrets
from pathlib import Path
from urllib.parse import quote

from archiver.archive import Source, archive
from archiver.redact import ExactValue
from archiver.restore import restore
from archiver.setup import Setup


def test_a_registered_value_leaves_in_all_its_encodings(setup: Setup, tmp_path: Path) -> None:
    value = "plain words " + "".join(secrets.choice("abcdefgh/&é") for _ in range(12))
    said = [value, quote(value), value.encode().hex(), base64.b64encode(value.encode()).decode()]
    path = tmp_path / "notes.json"
    path.write_text(json.dumps({"notes": said, "inner": json.dumps({"said": value})}))
    knowing = setup.registering(ExactValue("PASSPHRASE", value), ExactValue("PIN", "1234"))
    done = archive(Source(paths=(path,)), knowing)
    (finding,) = [one for one in done.receipt.findings if one.rule == "known-value"]
    assert finding.about == "the value of PASSPHRASE"
    assert done.receipt.too_short == ("PIN",)
    restore(done.record.run, setup, into=tmp_path / "out", accept=("age", "git_commit"))
    for file in (tmp_path / "out").rglob("*"):
        content = file.read_text() if file.is_file() else ""
        assert not any(form in content or json.dumps(form)[1:-1] in content for form in said)
