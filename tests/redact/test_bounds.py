"""What a hostile text costs, and that nothing of it is skipped; what is dense and honest is no attack."""

from __future__ import annotations

import base64
import json
import random
import time

import pytest

from archiver.redact.finder import Finder
from archiver.redact.ledger import Ledger
from archiver.redact.scrub import FLOOD, Scrubber
from archiver.redact.tokens import decode
from archiver.redact.views import json_string
from tests.redact.conftest import KEY
from tests.redact.support import expand, lines

SIZE = 400_000
"""Bytes of a text that is repeated."""
REPEATED = (
    *("password: ", "token=", "-----BEGIN PRIVATE KEY-----\n", "AKIA", "kind: Secret\n", "cookie: a="),
    *(
        '{"password":"',
        "password=value ",
        "stripe token okta_key github secret=x ",
        "Bearer ",
        "eyJ.",
        "ghp_",
    ),
)


def rules_of(scrubber: Scrubber) -> set[str]:
    return {finding.rule for finding in scrubber._ledger.findings()}


@pytest.mark.parametrize("text", REPEATED)
@pytest.mark.parametrize("leaf", [False, True])
def test_what_stands_behind_an_attack_is_not_skipped(scrubber: Scrubber, text: str, leaf: bool) -> None:
    secret = expand("ghp_{alnum:36}")
    data = f"{text * (SIZE // len(text))} {secret} end"
    if leaf:
        data = json.dumps({"text": data, "more": [secret]}, ensure_ascii=False) + "\n"
    began = time.process_time()
    made = lines(scrubber, data.encode()) if leaf else scrubber.text(data.encode(), "here")
    assert secret.encode() not in made
    assert time.process_time() - began < 2, "it takes longer than any text of this size may"


def test_other_lines_are_no_part_of_an_attack(scrubber: Scrubber) -> None:
    honest = b'{"text":"nothing to see"}\n'
    hostile = json.dumps({"text": "token=" * (SIZE // 6), "more": "as it was"}).encode() + b"\n"
    made = lines(scrubber, honest + hostile + honest)
    assert made.startswith(honest)
    assert made.endswith(honest)
    assert json.loads(made.splitlines()[1])["more"] == "as it was"
    assert rules_of(scrubber) == {FLOOD}
    assert len(made) < SIZE / 4


def test_a_placeholder_does_not_save_an_attack(scrubber: Scrubber) -> None:
    shown = b"[REDACTED:secret:012345abcdef]"
    secret = expand("ghp_{alnum:36}").encode()
    made = scrubber.text(b"token=" * (SIZE // 6) + shown + b" " + secret, "here")
    assert secret not in made
    assert shown in made
    assert FLOOD in rules_of(scrubber)


@pytest.mark.parametrize(
    "text", ["\N{ZERO WIDTH NON-JOINER}", "\N{ZERO WIDTH SPACE}x", "می\N{ZERO WIDTH NON-JOINER}خواهم "]
)
def test_invisible_characters_alone_are_no_attack(scrubber: Scrubber, text: str) -> None:
    data = (text * (SIZE // len(text.encode()))).encode()
    assert scrubber.text(data, "here") == data


@pytest.mark.parametrize("per", [1, 22, 24, 30, 76, SIZE])
def test_images_of_one_color_are_clean(scrubber: Scrubber, per: int) -> None:
    rng = random.Random(per)
    run = b"".join(b"A" * per + rng.choice((b"B", b"w", b"8")) for _ in range(SIZE // per))
    data = b'<svg><image href="data:image/png;base64,' + run + b'"/></svg>'
    assert scrubber.text(data, "here") == data
    line = json.dumps({"image": data.decode()}).encode() + b"\n"
    assert lines(scrubber, line) == line


def secrets(count: int) -> list[str]:
    rng = random.Random(count)
    return [
        f"ghp_{''.join(rng.choices('abcdefghjkmnpqrstuvwxyzABCDEFGHJKMNPQRSTUVWXYZ23456789', k=36))}"
        for _ in range(count)
    ]


@pytest.mark.parametrize(
    ("row", "between", "count"),
    [
        ("K{n}_TOKEN={secret}", "\n", 1_000),
        ("K{n}_TOKEN={secret}", "\0", 200),
        ('{n},"{secret}"', "\n", 1_500),
        ("INSERT INTO keys VALUES ({n}, 'me{n}@here.org', '{secret}');", "\n", 1_500),
        ("{secret}", " ", 6_000),
    ],
)
def test_many_secrets_are_each_found(finder: Finder, row: str, between: str, count: int) -> None:
    from archiver.redact.exact import ExactMatcher

    scrubber = Scrubber(finder, ExactMatcher(()), Ledger(KEY))
    values = secrets(count)
    data = between.join(row.format(n=n, secret=secret) for n, secret in enumerate(values)).encode()
    made = scrubber.text(data, "here")
    assert not [secret for secret in values if secret.encode() in made]
    assert FLOOD not in rules_of(scrubber)
    assert made.count(b"[REDACTED:") == count


def test_more_secrets_than_anybody_has_are_one(scrubber: Scrubber) -> None:
    values = secrets(12_000)
    made = scrubber.text("\n".join(values).encode(), "here")
    assert not [secret for secret in values if secret.encode() in made]
    assert FLOOD in rules_of(scrubber)


def test_a_log_of_masked_passwords_stays(scrubber: Scrubber) -> None:
    rows = (f"{n:08} GET /login?user=u{n}&password=**** 200 {n * 7}\n" for n in range(12_000))
    data = "".join(rows).encode()
    assert scrubber.text(data, "here") == data


def test_settings_in_rows_of_one_width_take_no_longer_than_others(scrubber: Scrubber) -> None:
    rows = "".join(f"K{n:05}_TOKEN={'x' * 30}{n:05}\n" for n in range(4_000)).encode()
    began = time.process_time()
    scrubber.text(rows, "here")
    assert time.process_time() - began < 2


def test_a_place_in_a_long_string_is_found() -> None:
    rng = random.Random(3)
    pieces = [r"\n", r"\"", r"\\", "\\u00e9", "\\ud83d\\ude00", "a", "bc", "é", "\\ud800", "/"]
    token = ('"' + "".join(rng.choices(pieces, k=20_000)) + '"').encode()
    data = decode(token)
    mapped = json_string(token, data)
    begins = [at for at in range(len(data)) if not 0x80 <= data[at] < 0xC0]
    for at, end in zip(begins[::97], begins[20::97], strict=False):
        start, stop = mapped.span(at, end)
        assert decode(b'"' + token[start:stop] + b'"') == data[at:end]


def test_base64_of_an_env_file_is_found_whole(scrubber: Scrubber) -> None:
    values = secrets(200)
    dump = "\n".join(f"K{n}_TOKEN={secret}" for n, secret in enumerate(values))
    made = scrubber.text(base64.b64encode(dump.encode()), "here")
    assert FLOOD not in rules_of(scrubber)
    assert len(made) < len(dump)


@pytest.mark.parametrize("many", ["\\u0061", "\N{ZERO WIDTH SPACE}", "\\x61\\x62\\x63\\x64 ", "%3Aa"])
def test_what_is_hidden_among_many_escapes_is_found(scrubber: Scrubber, finder: Finder, many: str) -> None:
    secret = expand("ghp_{alnum:36}")
    hidden = {
        "\\u": "".join(f"\\u{ord(sign):04x}" for sign in secret),
        "\\x": "".join(f"\\x{ord(sign):02x}" for sign in secret),
        "%3": "".join(f"%{ord(sign):02x}" for sign in secret),
    }.get(many[:2], "\N{ZERO WIDTH SPACE}".join(secret))
    filler = many * (SIZE // len(many.encode()) // 2)
    data = f"{filler} {hidden} {filler}".encode()
    assert hidden.encode() not in scrubber.text(data, "here")
    assert len(finder.hits(data)) < len(data) / 12, "what is kept of a scan takes more memory than the text"


def test_each_short_string_with_an_escape_is_looked_at(scrubber: Scrubber) -> None:
    hidden = "".join(f"\\u{ord(sign):04x}" for sign in expand("ghp_{alnum:36}"))
    line = '{"all":[' + '"\\u0061",' * (SIZE // 9) + f'"{hidden}"]}}\n'
    made = lines(scrubber, line.encode())
    assert hidden.encode() not in made
    assert len(made) > SIZE / 2
