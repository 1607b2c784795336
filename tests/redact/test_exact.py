"""Which values are searched for, and in which forms."""

from __future__ import annotations

import base64
import html
import json
import random
import secrets
import string
from urllib.parse import quote

import pytest

from archiver.redact import ExactValue, Redactor, exact_from_environment
from archiver.redact.exact import ExactMatcher, searchable
from archiver.redact.finder import Finder
from archiver.redact.ledger import Ledger
from archiver.redact.scrub import Scrubber
from tests.redact.conftest import KEY
from tests.redact.support import lines

SECRET = "S3cr/et&P<w>d=" + secrets.token_hex(4)


def _lower_percent(text: str) -> str:
    return quote(text, safe="").replace("%2F", "%2f").replace("%3D", "%3d")


def _as_go(text: str) -> str:
    return json.dumps(text)[1:-1].replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003E")


@pytest.mark.parametrize(
    "write",
    [
        lambda text: text,
        _lower_percent,
        quote,
        _as_go,
        lambda text: json.dumps(_as_go(text))[1:-1],
        html.escape,
        lambda text: text.encode().hex(),
        lambda text: text.encode()[:5].hex().upper() + text.encode()[5:].hex(),
    ],
)
def test_a_registered_value_is_found_however_it_is_written(write: object) -> None:
    written = write(SECRET).encode()  # type: ignore[operator]  # a function of the list above
    data = b"see " + written + b" there"
    assert ExactMatcher([SECRET.encode()]).find(data) == [(4, 4 + len(written), 0)]


def test_a_value_longer_than_the_engine_takes_is_found_whole() -> None:
    value = secrets.token_hex(10_000).encode()
    assert ExactMatcher([value]).find(b"a " + value + b" b") == [(2, 2 + len(value), 0)]


@pytest.mark.parametrize(
    "template",
    [
        "Passw{}(2024)!",
        "$Ecr3t{}!",
        "@dmin{}Xy",
        "hunter{}-here-9X",
        "Tr0ub4dor/{}Xy",
        "letters.{}",
        "/{}/aB3/x",
    ],
)
def test_a_variable_that_says_secret_is_searched_for_whatever_its_value_looks_like(template: str) -> None:
    value = template.format(secrets.token_hex(3))
    [known] = exact_from_environment({"DB_PASSWORD": value})
    assert searchable(known)
    assert value not in Redactor.load(KEY, exact=[known]).text(f"it is {value} now")


def test_random_passwords_are_all_searched_for() -> None:
    rng = random.Random(1)
    signs = string.ascii_letters + string.digits + string.punctuation
    for size in (8, 12, 20):
        for _ in range(400):
            value = "".join(rng.choice(signs) for _ in range(size))
            [known] = exact_from_environment({"DB_PASSWORD": value})
            assert searchable(known), value


@pytest.mark.parametrize(
    "value",
    ["true", "postgres", "5432", "${OTHER}", "/etc/keys/app.pem", "~/.config/x/key", "short", " " * 9],
)
def test_what_is_too_short_or_common_is_named(value: str) -> None:
    receipt = Redactor.load(KEY, exact=exact_from_environment({"DB_PASSWORD": value})).receipt()
    assert receipt.too_short == ("DB_PASSWORD",)


def test_places_of_the_shell_are_no_secrets() -> None:
    environ = {"PWD": "/srv/a", "OLDPWD": "/srv/b", "SSH_AUTH_SOCK": "/tmp/s/agent"}
    assert exact_from_environment(environ) == []


@pytest.mark.parametrize("value", ["postgres", "/etc/keys/app.pem", "123456"])
def test_what_the_caller_registers_is_always_searched_for(value: str) -> None:
    assert searchable(ExactValue("X", value))


@pytest.mark.parametrize("before", ["", "a", "ab"])
def test_a_value_inside_an_encoded_command_is_found(before: str) -> None:
    command = base64.b64encode(f"{before}{SECRET} -x".encode("utf-16-le"))
    [(start, end, _)] = ExactMatcher([SECRET.encode()]).find(b"-enc " + command)
    assert end - start >= 4 * (2 * len(SECRET)) // 3 - 3


@pytest.mark.parametrize("around", ["{}\n", ' "{}" ', "'{}'\r\n", "`{}`"])
def test_white_space_and_quotes_around_a_value_are_no_part_of_it(around: str, finder: Finder) -> None:
    value = secrets.token_hex(8)
    text = Redactor(finder, KEY, [ExactValue("X", around.format(value))]).text(f"a{value}b")
    assert text.startswith("a[REDACTED:")
    assert text.endswith("]b")


def test_a_variable_shows_the_password_of_a_url_and_secrets_in_json() -> None:
    one, two, three = (f"q{secrets.token_hex(8)}" for _ in range(3))
    environ = {
        "DATABASE": f"postgres://app:{one}%21@db/x",
        "ACCOUNT": json.dumps({"client_id": "a", "client_secret": two}),
        "HOME_PAGE": "https://example.org/a/b",
        "SESSION_TOKEN": "https://id.example.org/realms/main",
        "HOOK_TOKEN": f"https://hooks.example.org/{three.upper()}a/x",
    }
    found = exact_from_environment(environ)
    assert {known.value for known in found if searchable(known)} == {
        f"{one}%21",
        f"{one}!",
        two,
        environ["HOOK_TOKEN"],
    }
    assert "HOME_PAGE" not in {known.name for known in found}


@pytest.mark.parametrize("between", ["\x1b[31m", "\x1b[0m\x1b[1;32m", "\u200b", "\u2060", "\ufeff", "\u00ad"])
def test_a_registered_value_that_colours_or_invisible_characters_split_is_found(
    finder: Finder, between: str
) -> None:
    secret = secrets.token_hex(5) + "aQ"
    split = f"a {secret[:5]}{between}{secret[5:]} b"
    scrubber = Scrubber(finder, ExactMatcher([secret.encode()]), Ledger(KEY))
    assert secret[5:].encode() not in scrubber.text(split.encode(), "here")
    for ascii_only in (True, False):
        line = json.dumps({"t": split}, ensure_ascii=ascii_only).encode() + b"\n"
        assert secret[5:].encode() not in lines(scrubber, line)


def test_only_registered_values_are_replaced_in_opaque_leaves(finder: Finder) -> None:
    registered, found = secrets.token_hex(8).encode(), secrets.token_hex(8).encode()
    exact = ExactMatcher([registered], [found])
    line = json.dumps({"id": f"x{found.decode()} {registered.decode()}", "t": found.decode()}).encode()
    for with_rules in (True, False):
        scrubber = Scrubber(finder, exact, Ledger(KEY), rules=with_rules)
        made = json.loads(lines(scrubber, line + b"\n", lambda path, _item: path == ("id",)))
        assert found.decode() in made["id"]
        assert registered.decode() not in made["id"]
        assert found.decode() not in made["t"]


def test_a_found_value_around_a_registered_one_does_not_hide_it() -> None:
    inner = secrets.token_hex(6).encode()
    exact = ExactMatcher([inner], [b"aa" + inner + b"bb"])
    assert exact.find(b"aa" + inner + b"bb", registered=True) == [(2, 14, 0)]
