"""Strategies: JSON lines in every spelling JSON allows, with and without credentials in them."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import strategies as st

from tests.redact.support import expand

SECRETS = [
    "ghp_{alnum:36}",
    "glpat-{alnum:20}",
    "AKIA{b32:16}",
    "xoxb-{digit:12}-{digit:12}-{alnum:24}",
    "sk-ant-api03-{url:93}AA",
    "hvs.{alnum:24}",
    "SG.{alnum:22}.{alnum:43}",
    "npm_{alnum:36}",
    "{digit:9}:AA{alnum:33}",
    "{hex:32}-us{digit:2}",
    "hooks.slack.com/services/T{upnum:9}/B{upnum:9}/{alnum:24}",
]
"""Templates of secrets that need no context."""

VALUES = ["{alnum:14}7aB", "{hex:40}", "{b64:38}4z", "{lownum:30}9q8", "{alnum:9}#{alnum:5}8x"]
"""Templates of secrets that only their context gives away."""

CONTEXTS = [
    "API_TOKEN={}",
    "password: {}",
    'db_password = "{}"',
    "Authorization: Bearer {}",
    "postgres://app:{}@db.internal:5432/app",
    "curl -H 'X-Api-Key: {}'",
    "machine h login bot password {}",
    "tool --password {}",
    '"client_secret": "{}",',
    "?sig={}&x=1",
    "Cookie: a=1; sessionid={}",
]

KEYS = [
    "password",
    "apiKey",
    "client_secret",
    "DB_PASSWORD",
    "auth-token",
    "text",
    "content",
    "name",
    "value",
    "id",
]

_noise = st.text(
    st.sampled_from(
        'abcdefghijklmnopqrstuvwxyzABCXYZ0123456789 \n\t"\\/:=-_.,;{}[]()<>&%$é→😀'
        "\x1b\x00\u2028\u200b\u00ad\ufeff"
    ),
    max_size=60,
)


@st.composite
def _planted(draw: st.DrawFn) -> str:
    seed = draw(st.integers(0, 10_000))
    if draw(st.booleans()):
        return expand(draw(st.sampled_from(SECRETS)), seed)
    value = expand(draw(st.sampled_from(VALUES)), seed)
    return draw(st.sampled_from(CONTEXTS)).format(value)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Noise, with or without secrets in it."""
    parts = draw(
        st.lists(st.one_of(_noise, _planted(), st.sampled_from(["\x1b[32m", "\x1b[0m", "\n"])), max_size=5)
    )
    return "".join(parts)


@st.composite
def structures(draw: st.DrawFn) -> Any:
    """Structures in which a name and its secret stand apart."""
    value = expand(draw(st.sampled_from(VALUES)), draw(st.integers(0, 10_000)))
    name = draw(st.sampled_from(KEYS))
    return draw(
        st.sampled_from(
            [
                {name: value},
                {name: [value, "x"]},
                {"name": name, "value": value},
                {"value": value, "key": name},
                ["tool", f"--{name}", value],
                {"kind": "Secret", "data": {"conn": "c2VjcmV0LXZhbHVlLTEyMw=="}},
                {"auths": {"h": {"auth": "dXNlcjpodW50ZXIyMTIz"}}},
            ]
        )
    )


def values() -> st.SearchStrategy[Any]:
    """JSON values, also with JSON inside strings."""
    leaves = st.one_of(texts(), structures(), st.integers(-5, 5), st.none(), st.booleans())
    nested = st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(st.one_of(st.sampled_from(KEYS), texts()), inner, max_size=3),
            inner.map(json.dumps),
        ),
        max_leaves=8,
    )
    return st.dictionaries(st.sampled_from(KEYS), nested, min_size=1, max_size=4)


def spell(value: Any, seed: int) -> bytes:
    """One of the many spellings of a JSON value on one line."""
    rng = random.Random(seed)
    style = rng.choice(["plain", "ascii", "wild"])
    if style != "wild":
        return json.dumps(value, ensure_ascii=style == "ascii").encode("utf-8", "surrogatepass")
    return "".join(_wild(value, rng)).encode("utf-8", "surrogatepass")


def _wild(value: Any, rng: random.Random) -> Any:
    space = rng.choice(["", "", " ", "  "])
    if isinstance(value, str):
        yield _wild_string(value, rng)
    elif isinstance(value, dict):
        yield "{" + space
        for index, (key, item) in enumerate(value.items()):
            yield ("," + space if index else "") + _wild_string(key, rng) + space + ":" + space
            yield from _wild(item, rng)
        yield space + "}"
    elif isinstance(value, list):
        yield "["
        for index, item in enumerate(value):
            yield "," + space if index else ""
            yield from _wild(item, rng)
        yield "]"
    else:
        yield json.dumps(value)


def _wild_string(text: str, rng: random.Random) -> str:
    rate = rng.choice([0.0, 0.05, 0.5, 1.0])
    out = ['"']
    for char in text:
        if char == "/" and rng.random() < 0.5:
            out.append("\\/")
        elif rng.random() < rate and ord(char) < 0x10000:
            out.append(f"\\u{ord(char):04x}" if rng.random() < 0.5 else f"\\u{ord(char):04X}")
        else:
            out.append(json.dumps(char, ensure_ascii=False)[1:-1])
    return "".join(out) + '"'
