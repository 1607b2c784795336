"""Files in the form of gitleaks mean here what they mean there, and what cannot be used stops the save."""

from __future__ import annotations

from pathlib import Path

import pytest

from archiver.errors import RedactionUnavailableError
from archiver.redact import Chosen, Redactor, re2, rules
from archiver.redact.examples import expand
from archiver.redact.finder import Finder
from archiver.redact.rule_check import check
from tests.redact.conftest import KEY

FEW = ("names.toml", "context.toml", "keys.toml")
FILE = r"""
title = "rules of Acme"
[extend]
useDefault = true
disabledRules = ["generic-api-key"]

[[rules]]
id = "Acme_Key"
description = "key of Acme"
regex = '''(?i)\bacme[_-]?key['"\s]{0,3}[:=]['"\s]{0,3}([0-9a-f]{32})\b'''
keywords = ["ACME"]
entropy = 3
tags = ["key"]
[[rules.allowlists]]
stopwords = ["C0FFEE"]

[[rules]]
id = "widget"
regex = '''wdg-([[:alnum:]]{4})-(?P<part>\d{12}\x2d[^\W_]{3,}?)(?:;|\z)'''
secretGroup = 2
[rules.allowlist]
regexTarget = "match"
regexes = ['''wdg-test''']

[[rules]]
id = "sprocket"
regex = '''\b[A-Z]{3}[0-9]{9}\b'''
keywords = ["sprocket"]
[[rules.allowlists]]
condition = "AND"
regexTarget = "line"
regexes = ['''# sample''']
stopwords = ["aaa"]
[[rules.allowlists]]
condition = "AND"
paths = ['''go\.sum''']
regexes = ['''.''']

[[rules]]
id = "jwt"
regex = '''acme-jwt-(?s:.)[0-9]{20}'''

[[rules]]
id = "keystores"
path = '''\.p12$'''

[[allowlists]]
targetRules = ["jwt"]
regexes = ['''acme-jwt-x''']
[[allowlists]]
regexes = ['''^ffff''']
paths = ['''vendor/''']
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rules") / "gitleaks.toml"
    path.write_text(FILE)
    return path


@pytest.fixture(scope="module")
def redactor(file: Path, cache_folder: Path) -> Redactor:
    return Redactor(Finder(_with_few(file)), KEY, ())


def _with_few(file: Path) -> rules.RuleSet:
    """The file beside a few rules of the package, which are read soon."""
    sources = rules.sources(Chosen(files=(file,)))
    return rules.parse(tuple(one for one in sources if one.pack == "own" or one.name in FEW))


def test_the_first_group_is_the_secret_and_entropy_and_stopwords_count(redactor: Redactor) -> None:
    value = expand("{hex:28}09af")
    assert redactor.text(f'ACME_KEY = "{value}"').startswith('ACME_KEY = "[REDACTED:acme-key:')
    dull = "acme-kez " + "0" * 30 + "ab"
    assert redactor.text(dull) == dull
    stopped = "acme_key x=" + "c0ffee" + value[:26]
    assert redactor.text(stopped) == stopped


def test_a_group_by_number_and_an_allowlist_for_the_match(redactor: Redactor) -> None:
    value = expand("{digit:12}-{alnum:3}")
    shown = redactor.text(f"wdg-ab12-{value}; wdg-test-{value};")
    assert shown.startswith("wdg-ab12-[REDACTED:widget:")


def test_a_rule_without_fixed_text_counts_near_its_keyword(redactor: Redactor) -> None:
    value = expand("{upper:3}{digit:9}")
    assert redactor.text(f"a part {value}") == f"a part {value}"
    assert redactor.text(f"Sprocket no. {value}") == redactor.text(f"Sprocket no. {value}")
    assert value not in redactor.text(f"Sprocket no. {value}")
    assert value not in redactor.text(f"sprocket {value} # sample")
    both = "sprocket AAA123456789 # sample"
    assert redactor.text(both) == both


def test_a_name_that_the_package_has_is_told_apart_and_shared_allowlists_hold(redactor: Redactor) -> None:
    digits = expand("{digit:20}")
    assert "[REDACTED:jwt:" in redactor.text(f"acme-jwt-\n{digits}")
    ids = {rule.id for rule in redactor._finder.rules.rules if rule.pack == "own"}
    assert ids == {"acme-key", "widget", "sprocket", "gitleaks-jwt"}
    spared = f"acme-jwt-x{digits}"
    assert redactor.text(spared) == spared


def test_a_check_knows_the_form_and_says_what_does_not_count(file: Path) -> None:
    checked = check(str(file), FILE)
    assert checked.problems == ()
    assert checked.rules == 4
    notes = {note.line: note.message for note in checked.notes}
    lines = FILE.splitlines()
    assert "disabled_rules" in notes[lines.index("[extend]") + 1]
    assert "paths alone" in notes[lines.index('id = "keystores"')]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("[[rules]]\nid = 'a'\nregex = '''a(?=b)'''\n", 3, "rule a: '(?=b' at 1: RE2 has no such group"),
        ("[[rules]]\nid = 'a'\nregex = '''acme(x+)+y'''\n", 3, "rule a: a repetition repeats another"),
        ("[[rules]]\nid = 'a'\nregex = '''acme{1001}'''\n", 3, "1000 times"),
        ("[[rules]]\nid = 'a'\nregex = '''acme\\p{Greek}'''\n", 3, "no general category"),
        ("[[rules]]\nid = 'a'\nregex = '''acme-x'''\nsecretGroup = 2\n", 3, "no group 2"),
        ("[[rules]]\nid = 'a'\nregexp = '''acme-x'''\n", 3, "unknown field 'regexp'"),
        ("[[rules]]\nregex = '''acme-x'''\n", 1, "'id' is missing"),
        ("[[rules]]\nid = 'a'\n", 2, "has no regex"),
        ("[[rules]]\nid='a'\nregex='acme-x'\n[[rules]]\nid = 'a'\nregex='acme-y'\n", 5, "a second rule a"),
        ("[extend]\npath = 'other.toml'\n", 1, "redaction.rule_files"),
        ("[allowlist]\nregexTarget = 'file'\n", 0, "regexTarget"),
        ("[[allowlists]]\nregexes = ['(']\n", 0, "without its ')'"),
        ("[[rules]]\nid='a'\nregex='acme-x'\nentropy = 'much'\n", 4, "no number"),
        ("[[rules]]\nid='a'\nregex='acme-x'\n[[rules.required]]\nid='b'\n", 1, "require others"),
    ],
)
def test_what_cannot_be_used_stops_the_save(text: str, line: int, says: str, tmp_path: Path) -> None:
    path = tmp_path / "gitleaks.toml"
    path.write_text("title = 'x'\n" + text)
    with pytest.raises(RedactionUnavailableError) as caught:
        _with_few(path)
    assert says in str(caught.value)
    assert str(path) in str(caught.value)
    if line:
        assert f"line {line + 1}:" in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "matches", "not_matches"),
    [
        (r"(?i)Abc", ["aBC"], ["abd"]),
        (r"(?i:a)B", ["AB"], ["Ab"]),
        (r"a(?-i)b", ["ab"], ["aB"]),
        (r"(?s)a.b", ["a\nb"], []),
        (r"a.b", ["axb"], ["a\nb"]),
        (r"[[:alnum:]_]{3}\z", ["a1_"], ["-a_ "]),
        (r"\x60\x{61}\141", ["`aa"], ["aaa"]),
        (r"\Qa.b\E+", ["a.bb"], ["axb"]),
        (r"\pL\p{Lu}\PL", ["éÉ1"], ["éé1"]),
        (r"[^[:^digit:]a]", ["7"], ["b", "a"]),
        (r"[]a]\]", ["]]"], ["b]"]),
        (r"a{,2}", ["a{,2}"], ["aa"]),
        (r"(?U)a+b", ["aab"], ["b"]),
        (r"\d\w\s\D", ["1_ x"], ["١_ x"]),
        (r"(?P<n>x)(?<m>y)", ["xy"], ["x"]),
    ],
)
def test_expressions_of_go_mean_the_same(expression: str, matches: list[str], not_matches: list[str]) -> None:
    import re

    pattern = re.compile(re2.python(re2.parse(expression)), re.ASCII | re.MULTILINE)
    for text in matches:
        assert pattern.search(text), text
    for text in not_matches:
        assert not pattern.search(text), text


@pytest.mark.parametrize(
    "expression", ["a**", "a++", "(?<=a)b", "(?>a)", "\\8", "[a", "a)", "(?P=n)", "[z-a]"]
)
def test_what_go_does_not_read_is_refused(expression: str) -> None:
    with pytest.raises(re2.ExpressionError):
        re2.parse(expression)
