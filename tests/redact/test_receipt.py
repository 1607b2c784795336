"""What a receipt says, and that nothing of a value can be read out of it."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import string
from collections.abc import Callable
from typing import Any

import pytest

from archiver import jsonio
from archiver.model import Finding, Member, Receipt
from archiver.redact import FileRedactor, Held, new_key, shape_of
from archiver.redact.exact import ExactValue
from archiver.redact.finder import Finder
from archiver.redact.ledger import Ledger
from archiver.rotation import by_rank, lines, rotations
from archiver.scratch import Scratch

from .support import expand


def made(length: int, seed: int) -> str:
    """A random value of that length, with a letter of each case and a digit."""
    rng = random.Random(seed)
    return "aB3" + "".join(rng.choices(string.ascii_letters + string.digits, k=length - 3))


def looked(redactor: FileRedactor, files: dict[str, bytes]) -> Receipt:
    """Files looked at twice, as a scan does."""
    for again in (False, True):
        if again:
            redactor.settle()
        for name, data in files.items():
            source = Held(data)
            redactor.look(source, shape_of(source), redactor.name(name))
    return redactor.receipt()


@pytest.fixture
def redactor(finder: Finder) -> Callable[..., FileRedactor]:
    return lambda *exact: FileRedactor(finder, new_key(), exact)


def hostile(secret: str) -> dict[str, bytes]:
    """The secret in values, keys, keys of JSON inside strings, names, and text."""
    inner = json.dumps({secret: {"password": secret}, f"x{secret}": 1})
    return {
        "a.json": json.dumps({secret: {"deep": [{"token": secret}]}, "body": inner}, indent=1).encode(),
        "b.jsonl": b"".join(json.dumps({"k": inner, secret: n}).encode() + b"\n" for n in range(3)),
        f"{secret}.txt": f"password={secret}\n{secret}\n".encode(),
        "d.txt": base64.b64encode(f"password={secret}".encode()),
    }


@pytest.mark.parametrize("length", [12, 40])
def test_nothing_of_a_value_is_in_it(redactor: Callable[..., FileRedactor], length: int) -> None:
    secret = made(length, 1)
    receipt = looked(redactor(ExactValue("X", secret)), hostile(secret))
    text = json.dumps(receipt.document())
    assert receipt.findings
    for start in range(len(secret) - 5):
        assert secret[start : start + 6] not in text
    for form in (secret, secret + "\n", base64.b64encode(secret.encode()).decode()):
        for name in ("md5", "sha1", "sha256", "sha512", "blake2b", "blake2s", "sha3_256"):
            digest = hashlib.new(name, form.encode())
            assert digest.hexdigest()[:12] not in text
            assert base64.b64encode(digest.digest()).decode()[:12] not in text


def test_a_longer_value_gives_the_same_receipt(redactor: Callable[..., FileRedactor]) -> None:
    receipts = []
    for length, seed in ((14, 1), (15, 2), (61, 3)):
        secret = made(length, seed)
        document = looked(redactor(ExactValue("X", secret)), hostile(secret)).document()
        document["findings"].sort(key=lambda one: (one["rule"], one["places"]))
        text = re.sub(r'"fingerprint": "[0-9a-f]{12}"', "", json.dumps(document))
        receipts.append(re.sub(r":[0-9a-f]{12}\]", ":]", text))
    assert receipts[0] == receipts[1] == receipts[2]


def test_the_fingerprints_of_two_scans_have_nothing_in_common(redactor: Callable[..., FileRedactor]) -> None:
    secret = expand("ghp_{alnum:36}")
    files = {"a.txt": f"token {secret}".encode()}
    first, second = (looked(redactor(), files).findings for _ in range(2))
    assert [one.rule for one in first] == ["github-token"]
    assert first[0].fingerprint != second[0].fingerprint
    assert first[0].about


def test_it_names_engine_rules_and_their_files(redactor: Callable[..., FileRedactor], finder: Finder) -> None:
    receipt = looked(redactor(ExactValue("SHORT", "abc")), {"a.txt": b"nothing"})
    assert "vectorscan" in receipt.engine
    assert receipt.rules == len(finder.rules.rules)
    assert receipt.rules_version == finder.rules.version
    assert receipt.rule_files == ()  # only the package's
    assert receipt.too_short == ("SHORT",)


def test_a_known_value_is_told_by_its_name(redactor: Callable[..., FileRedactor]) -> None:
    values = [made(20, seed) for seed in range(2)]
    given = [ExactValue(f"ENV_{number}", value) for number, value in enumerate(values)]
    receipt = looked(redactor(*given), {"a.txt": f"so {values[0]} is, and {values[1]}".encode()})
    assert {finding.about for finding in receipt.findings} == {"the value of ENV_0", "the value of ENV_1"}
    (told,) = lines(receipt.findings)
    assert "the value of ENV_0" in told
    assert "the value of ENV_1" in told


def test_what_an_older_release_wrote_is_read() -> None:
    old = {
        "engine": "vectorscan 0.9.1", "rules_version": "0" * 16, "rules": 3, "left_out": [], "too_short": [],
        "findings": [
            {"rule": "jwt", "kind": "jwt", "fingerprint": "0" * 12, "count": 2, "places": ["a line 1 $.b"]}
        ],
    }  # fmt: skip
    receipt = Receipt.model_validate(old)
    assert receipt.findings[0].about == ""
    assert receipt.rule_files == ()


def test_a_word_of_a_place_that_turns_out_to_be_secret_is_masked() -> None:
    ledger = Ledger(new_key())
    ledger.replace("password", "password", b"swordfish", "swordfish.json $.a.swordfish.password")
    assert ledger.findings()[0].places == ("*.json $.a.*.password",)


def test_every_member_of_a_bundle_is_scanned(redactor: Callable[..., FileRedactor], scratch: Scratch) -> None:
    secret = expand("ghp_{alnum:36}")

    def member(path: str, text: str) -> Member:
        file = scratch.new_path("member")
        file.write_text(text, encoding="utf-8")
        data = text.encode()
        return Member(path, file, len(data), hashlib.sha256(data).hexdigest())

    found = (
        member("checkpoint.json", json.dumps({"objective": f"use {secret}"})),
        member("transcript/0001.jsonl", json.dumps({"role": "user", "content": secret}) + "\n"),
        member("artifacts/" + "0" * 64, secret),
    )
    receipt = redactor().stored(found, "anthropic-messages", scratch)
    places = [place for one in receipt.findings for place in one.places]
    assert {place.split(" ")[0] for place in places} >= {"checkpoint.json", "transcript/0001.jsonl"}
    assert secret not in json.dumps(receipt.document())


def finding(kind: str, number: int = 0, **more: Any) -> Finding:
    return Finding(rule=kind, kind=kind, fingerprint=f"{number:012x}", count=1, **more)


def test_the_worst_is_said_first() -> None:
    kinds = ["email", "secret", "cookie", "github-token", "aws-secret-key", "password", "private-key"]
    kinds.append("url-signature")
    said = [one.kind for one in rotations(map(finding, kinds))]
    assert said[:2] == ["aws-secret-key", "private-key"]
    assert said[2:4] == ["github-token", "password"]
    assert said[-3:] == ["url-signature", "secret", "email"]
    assert [name for name, _ in by_rank({"secret": 9, "aws-secret-key": 1})] == ["aws-secret-key", "secret"]


def test_the_list_is_short_and_counts_the_rest() -> None:
    found = [finding(f"k{kind:02d}-token", number) for kind in range(30) for number in range(3)]
    said = lines(found, 10)
    assert len(said) == 11
    assert said[0].startswith("k00-token: 3 different")
    assert said[-1] == "and 60 more of 20 kinds, which the receipt lists"


def test_each_kind_says_what_to_do() -> None:
    for kind, word in (
        ("private-key", "key pair"),
        ("slack-webhook", "webhook"),
        ("url-password", "change the password"),
        ("jwt", "session"),
        ("npm-token", "revoke it"),
        ("known-value", "change it wherever it is used"),
        ("dense", "look into the original"),
        ("private-address", "nothing to rotate"),
    ):
        line = lines([finding(kind, about="what it is", places=("a line 1",))])[0]
        assert word in line
        assert "what it is" in line
        assert "a line 1" in line


def test_receipts_are_canonical_json(redactor: Callable[..., FileRedactor]) -> None:
    document = looked(redactor(), hostile(made(20, 4))).document()
    assert Receipt.model_validate(jsonio.loads(jsonio.canonical(document))).document() == document
