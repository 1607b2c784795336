"""What is kept of rule files saves time and never a check: any doubt means that the texts are read."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

import orjson
import pytest

from archiver.errors import RedactionUnavailableError
from archiver.redact import cache, confirm, kept_rules, rules
from archiver.redact.assigned import Assigned
from archiver.redact.forms import compiled
from archiver.redact.rules import Chosen, Source

NAMES = next(one for one in rules.sources(Chosen()) if one.name == "names.toml")
GOOD = """
[[rule]]
id = "acme-key"
kind = "acme-key"
about = "key of Acme"
source = "https://acme.example/docs"
forms = ["acme_{alnum:20}"]

[[context]]
id = "acme-context"
kind = "acme-key"
about = "key of Acme behind a word"
source = "https://acme.example/docs"
trigger = 'acme='
pattern = 'acme=(?P<secret>[a-z0-9]{12})'
judge = "filled"
"""
TEXTS = (NAMES, Source("mine.toml", GOOD, "own"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rules.parse.cache_clear()
    return cache._folder()


def _parsed(texts: tuple[Source, ...] = TEXTS) -> rules.RuleSet:
    rules.parse.cache_clear()
    return rules.parse(texts)


def _said(made: rules.RuleSet) -> tuple[object, ...]:
    return made.version, made.files, made.rules, made.expressions, made.costs, made.owners


def test_rules_that_were_kept_are_the_same(folder: Path) -> None:
    first = _parsed()
    assert not first.known
    [kept] = folder.iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    second = _parsed()
    assert second.known
    assert _said(first) == _said(second)
    data = b"acme=k3v9x0q8w2z7 "
    number = second.owners.index(second.index("acme-context"))
    assert second.confirms[number](data, 5) == ((5, 17, second.index("acme-context")),)


def test_other_texts_or_settings_are_read(folder: Path) -> None:
    _parsed()
    assert not _parsed((NAMES, Source("mine.toml", GOOD + "# more\n", "own"))).known
    rules.parse.cache_clear()
    assert not rules.parse(TEXTS, ("assigned-secret",)).known
    assert _parsed().known


@pytest.mark.parametrize("damage", ["flipped", "writable", "fewer", "no list", "no JSON"])
def test_what_cannot_be_trusted_is_read_again(folder: Path, damage: str) -> None:
    first = _parsed()
    [kept] = folder.iterdir()
    body = kept.read_bytes()[32:]
    if damage == "flipped":
        kept.write_bytes(kept.read_bytes().replace(b"acme_", b"acne_"))
    elif damage == "writable":
        kept.chmod(0o622)
    else:
        wrong = {"fewer": orjson.dumps(orjson.loads(body)[:1]), "no list": b"{}", "no JSON": b"[}"}[damage]
        kept.write_bytes(hashlib.sha256(wrong).digest() + wrong)
    second = _parsed()
    assert not second.known
    assert _said(first) == _said(second)


@pytest.mark.parametrize(
    ("good", "bad", "says"),
    [
        ("[a-z0-9]{12}", "[a-z0-9", "line 15: rule acme-context"),
        ("'acme='", "'acme=(?P<x'", "line 14: rule acme-context"),
        ("?P<secret>", "?P<value>", "line 15: rule acme-context: the pattern has no group"),
    ],
)
def test_an_expression_that_does_not_compile_stops_the_load_each_time(
    folder: Path, good: str, bad: str, says: str
) -> None:
    _parsed()
    for _ in range(2):
        with pytest.raises(RedactionUnavailableError, match=r"mine\.toml") as caught:
            _parsed((NAMES, Source("mine.toml", GOOD.replace(good, bad), "own")))
        assert says in str(caught.value)


def test_what_json_would_change_is_not_kept(folder: Path) -> None:
    for value in ("1979-05-27", "nan"):
        document = rules._documents([Source("x.toml", f"x = {value}")])[0][0][1]
        kept_rules.store("0", [document])
    assert not folder.exists()


def test_every_pattern_of_a_form_compiles() -> None:
    made = rules.load()
    for rule in made.rules:
        for form in rule.forms + rule.beside:
            compiled(confirm.BEFORE[rule.boundary] + form.pattern() + confirm.AFTER[rule.boundary])


def test_names_are_looked_up_as_if_every_word_was_tried() -> None:
    assigned = Assigned(rules.load().assigned.names, 0)
    words = {1: ("acme", "ac"), 2: ("cmek",), 3: ("acmekey",), 4: ("zebra",), 5: ("y",)}
    for rule, some in words.items():
        assigned.add(rule, some, b"%d" % rule)
    for name in ("ACME_KEY", "my-ac", "zebraKey", "x", "", "Acme.Key"):
        plain = name.lower().translate(dict.fromkeys(map(ord, "_-.")))
        wanted = [rule for rule, some in words.items() if any(word in plain for word in some)]
        assert [rule for rule, _ in assigned._providers(name)] == wanted, name
