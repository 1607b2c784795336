"""The rules and permissions that the documents show are those that are needed, and enough."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from servers import seaweed as servers
from servers.seaweed import Seaweed

from archiver.archive import Source, archive
from archiver.cli.app import COMMANDS
from archiver.config import config_home, load
from archiver.doctor import Check, exit_code, lifecycle
from archiver.lifecycle.rules import Wanted, rules
from archiver.restore import plan
from archiver.retention import DAYS
from archiver.setup import initialise, open_setup
from archiver.store.s3 import CLASS_TAG
from archiver.verify import verify

DOCS = Path(__file__).parents[2] / "docs"
Checked = Callable[..., dict[str, Check]]
Become = Callable[[Seaweed, str], None]
pytestmark = pytest.mark.usefixtures("small_race")


def examples(name: str) -> list[Any]:
    """The JSON examples of a document."""
    blocks = re.findall(r"```json\n(.*?)```", (DOCS / name).read_text(encoding="utf-8"), re.S)
    assert blocks
    return [json.loads(block) for block in blocks]


def test_the_rules_of_the_document_fit() -> None:
    (found,) = (example for example in examples("S3.md") if "Rules" in example)
    wanted = Wanted("prefix/", versioned=True, tag=CLASS_TAG, days=DAYS)
    assert found["Rules"] == rules(wanted)
    (check,) = lifecycle.checks(found["Rules"], wanted)
    assert check.verdict == "ok"
    assert check.text.startswith(f"{len(found['Rules'])} rules")


def test_every_check_of_the_table_is_made(checked: Checked, seaweed: Seaweed, s3_url: str) -> None:
    text = (DOCS / "S3.md").read_text(encoding="utf-8").split("## Doctor")[1].split("## Expiry")[0]
    listed = set(re.findall(r"`([a-z ]+)`", " ".join(re.findall(r"^\| (`[^|]*) \|", text, re.M))))
    settings = load(flags={"store": {"url": s3_url, "endpoint_url": seaweed.endpoint}}, without_file=True)
    initialise(s3_url, None, settings=settings, now=datetime.now(UTC))
    made = set(checked(settings))
    assert made - {"probes"} == listed - {"kms", "saved without kms", "regions"}
    assert "doctor" in COMMANDS


@pytest.fixture
def documented(own_seaweed: Callable[..., Seaweed], monkeypatch: pytest.MonkeyPatch) -> Seaweed:
    """A server whose writer and reader may do what the document gives them, and nothing else."""
    policies = {}
    for policy in examples("CONFIGURATION.md"):
        sid = policy["Statement"][0]["Sid"].lower()
        policies[sid] = json.dumps(policy)
    original = servers._identities

    def identities(credentials: Any) -> dict[str, Any]:
        found = original(credentials)
        for policy in found["policies"]:
            policy["content"] = policies.get(policy["name"], policy["content"])
        return found

    assert {"writer", "reader"} <= set(policies)
    (deny,) = [one for one in json.loads(policies["writer"])["Statement"] if one["Effect"] == "Deny"]
    assert deny["Condition"] == {"Null": {f"s3:ExistingObjectTag/{CLASS_TAG}": "false"}}
    monkeypatch.setattr(servers, "_identities", identities)
    server = own_seaweed()
    server.make_bucket("bucket")
    return server


def test_the_permissions_of_the_document_are_enough(
    documented: Seaweed, aws_environment: Become, checked: Checked, tmp_path: Path
) -> None:
    url, config = "s3://bucket/prefix", tmp_path / "archiver.toml"
    asked = load(flags={"store": {"endpoint_url": documented.endpoint}}, without_file=True)
    aws_environment(documented, "writer")
    made = initialise(url, config, settings=asked, now=datetime.now(UTC))
    assert made.left
    (tmp_path / "notes.txt").write_text("hello\n")
    for number in (1, 2):
        setup = open_setup(load(config), "write")
        record = archive(Source(paths=(tmp_path / "notes.txt",)), setup).record
        assert record.seq == number
    found = checked(load(config))
    assert exit_code(found.values()) == 0
    assert found["permissions"].verdict == "ok"
    assert found["round trip"].verdict == found["class tags"].verdict == "ok"
    assert found["unfinished uploads"].verdict == found["classes"].verdict == "ok"
    # The server knows no condition on the class that is there, so who may put a tag may change one.
    assert "expire early (s3:PutObjectTagging on what is there)" in found["too many rights"].text
    assert found["too many rights"].text.count("(s3:") == 1

    aws_environment(documented, "reader")
    setup = open_setup(load(config), "read")
    assert all(finding.ok for finding in verify(setup, deep=True))
    assert plan(record.run, setup).seq == 2
    (config_home() / "keys" / "signing.pem").unlink()
    text = config.read_text()
    writers = f'writers = "{config_home() / "keys" / "writers.toml"}"\n[archive]'
    config.write_text(re.sub(r"signing_key = .*\n", "", text).replace("[archive]", writers, 1))
    found = checked(load(config))
    assert exit_code(found.values()) == 0, found
    assert found["permissions"].text == "all that a reader needs: s3:ListBucket, s3:GetObject"
    assert found["fencing"].verdict == "unknown"
