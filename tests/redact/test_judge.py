"""Values beside names that say secret."""

from __future__ import annotations

import random
import string

import pytest

from archiver.redact import judge, rules
from archiver.redact.words import pairs
from tests.redact.support import expand

NAMES = rules.load().assigned.names


@pytest.mark.parametrize(
    "value",
    [
        "${VAR}", "$VAR", "$(cat key)", "{{ secret }}", "<token>", "<your-api-key>", "***", "xxxxxxxx",
        "********", "your-api-key-here-1", "changeme123", "CHANGE_ME_1234", "example-secret-123",
        "REDACTED", "<redacted>", "[REDACTED:jwt:0123456789ab]", "%(password)s", "null", "None",
        "true", "undefined", "placeholder-123", "process.env.API_KEY", "os.environ['KEY']",
        "config.get('token')", "getToken()", "settings.SECRET_KEY", "/run/secrets/db_password",
        "./config/secrets.yaml", "secrets.json", "C:\\keys\\server.pem",
        "0b6e1c62-8b58-4a08-a4a8-6f1f8c6f2f11", "2026-01-02T10:00:00Z", "v1.2.3", "127.0.0.1:8080",
        "https://example.com/token", "my_secret_token", "accessTokenV2", "string", "secretRef",
        "#34d399", "AKIAIOSFODNN7" + "EXAMPLE", "deadbeefdeadbeef", "0000000000000000", "password",
        "hunter", "AWS4-HMAC-SHA256", "cmp2-qat-1208358310", "&lt;YOURKEY1&gt;",
    ],
)  # fmt: skip
def test_what_is_no_secret(value: str) -> None:
    data = value.encode()
    assert not judge.is_token(data)
    assert not judge.is_password(data)


@pytest.mark.parametrize("size", [20, 32, 64])
@pytest.mark.parametrize(
    "alphabet",
    [
        string.ascii_letters + string.digits,
        string.ascii_lowercase + string.digits,
        string.ascii_letters + string.digits + "+/",
        "0123456789abcdef",
        string.ascii_uppercase + "234567",
    ],
)
def test_random_tokens_are_secrets(alphabet: str, size: int) -> None:
    rng = random.Random(size)
    values = ["".join(rng.choices(alphabet, k=size)).encode() for _ in range(400)]
    assert sum(map(judge.is_token, values)) >= 385
    assert sum(map(judge.is_password, values)) >= 385


def test_passwords_are_secrets() -> None:
    rng = random.Random(5)
    for _ in range(200):
        word, tail = ("".join(rng.choices(string.ascii_letters, k=size)) for size in (4, 5))
        value = f"{word}{rng.randint(10, 99)}{rng.choice('#!%^&')}{tail}"
        assert judge.is_password(value.encode()), value


def test_written_letters_are_told_from_random_ones() -> None:
    common, count = pairs(b"configurationManagerInstanceFactory")
    assert common > 0.8 * count
    rng = random.Random(1)
    common, count = pairs("".join(rng.choices(string.ascii_lowercase, k=4000)).encode())
    assert 0.2 < common / count < 0.45


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("DB_PASSWORD", "password"), ("dbPassword", "password"), ("PGPASS", None),
        ("pass", "password"), ("user.pass", "password"), ("MYSQL_PWD", "password"),
        ("client_secret", "secret"), ("clientSecret", "secret"), ("X-Api-Key", "secret"),
        ("apikey", "secret"), ("AWS_SECRET_ACCESS_KEY", "secret"), ("SECRET_KEY_BASE", "secret"),
        ("GITHUB_TOKEN", "secret"), ("TOKEN_PROD", "secret"), ("password1", "password"),
        ("auth", "login"), ("Authorization", "secret"), ("AccountKey", "secret"),
        ("mysecret", "secret"), ("travis_token", "secret"), ("max_tokens", None),
        ("token_count", None), ("token_type", None), ("tokenizer", None), ("cache_key", None),
        ("primary_key", None), ("key", None), ("public_key", None), ("next_page_token", None),
        ("csrf_token", None), ("bypass", None), ("author", None), ("secret_name", None),
        ("password_hash_algorithm", None), ("compass", None), ("idempotency_key", None),
        ("passed", None), ("authenticated", None), ("", None), ("token" * 40, None),
    ],
)  # fmt: skip
def test_names(name: str, says: str | None) -> None:
    assert NAMES.says(name) == says


def test_logins_are_base64_of_user_and_password() -> None:
    assert judge.is_login(b"dXNlcjpodW50ZXIyMTIz")
    assert not judge.is_login(b"authentication")
    assert not judge.is_login(b"dXNlcg==")


@pytest.mark.parametrize(
    "value",
    [
        "User:12345", "010:PullRequest123456", "arrayconnection:10", "localhost:8080",
        "PullRequest:0b6e1c62-8b58-4a08-a4a8-6f1f8c6f2f11", "linux-x86_64-gnu-2.31",
        "node-v18.17.0-linux-x64", "cursor:v2:2024-01-01T00:00:00Z", "console.log(foo)",
        "/usr/lib/python3.11/site-packages/foo.py", "my_long_identifier_name_2", '{"id":1234567890}',
        "library/nginx:1.25.3-alpine", "@angular/core@16.2.0", "a sentence of words 12",
        "https://example.com/a1b2c3d4e5f6", "text/html;charset=utf-8", "MYSQL_ROOT_HOST_2024",
        "", "short7Q", "aaaaaaaaaaaaaaaa1111", "12345678901234567890",
    ],
)  # fmt: skip
def test_what_is_no_token_behind_an_encoding(value: str) -> None:
    assert not judge.is_bare_token(value.encode())


@pytest.mark.parametrize(
    "template",
    ["{alnum:32}", "{lownum:32}", "{hex:40}", "deploy:{alnum:16}4k9", "{b64:40}", "{digit:9}:AA{alnum:33}"],
)
def test_random_tokens_behind_an_encoding(template: str) -> None:
    values = [expand(template, seed).encode() for seed in range(200)]
    assert sum(map(judge.is_bare_token, values)) >= 190
