"""Rule files: what they must say, what a check finds wrong and where, packs, and rules of the settings."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from archiver.config import load as load_settings
from archiver.errors import RedactionUnavailableError
from archiver.redact import Chosen, OwnPattern, Redactor, re2, rules
from archiver.redact.examples import expand, must_match, must_not_match
from archiver.redact.finder import Finder
from archiver.redact.rule_check import check
from archiver.redact.rule_trial import trial
from archiver.redact.rules import PACKS, Rule
from archiver.setup import chosen_rules
from tests.redact.conftest import KEY

RULES = rules.load(Chosen(packs=PACKS)).rules
PACKED = [rule for rule in RULES if rule.pack in PACKS]
HEAD = 'kind = "acme-key"\nabout = "key of Acme"\nsource = "https://acme.example/docs"\n'
PATTERN = '[[pattern]]\nid = "acme-key"\n' + HEAD
FEW = ("names.toml", "context.toml", "keys.toml")
"""Enough of the package for a redactor that is compiled soon."""


def _few(chosen: Chosen) -> Redactor:
    sources = tuple(one for one in rules.sources(chosen) if one.pack != "default" or one.name in FEW)
    return Redactor(Finder(rules.parse(sources, chosen.disabled, chosen.patterns)), KEY, ())


@pytest.fixture(scope="module")
def packed(cache_folder: Path) -> Redactor:
    return _few(Chosen(packs=PACKS))


def _ids(redactor: Redactor, text: str) -> set[str]:
    finder = redactor._finder
    return {finder.rules.rules[span.rule].id for span in finder.find(text.encode())}


def _is_word(part: object) -> bool:
    return isinstance(part, str) and any(map(str.isalnum, part))


def _messages(text: str) -> list[tuple[int, str]]:
    return [(problem.line, problem.message) for problem in check("mine.toml", text).problems]


def test_every_rule_says_what_it_is_and_has_examples() -> None:
    for rule in RULES:
        assert rule.kind, rule.id
        assert rule.about.strip(), rule.id
        assert rule.source.startswith("https://"), rule.id
        if rule.forms or rule.beside or rule.pattern:
            assert any(texts for _, texts in must_match(rule)), rule.id
        if rule.forms and not rule.reject and any(map(_is_word, rule.forms[0].parts)):
            assert any(texts for _, texts in must_not_match(rule)), rule.id


@pytest.mark.parametrize("rule", PACKED, ids=lambda rule: rule.id)
def test_packs_find_what_they_are_for(rule: Rule, packed: Redactor) -> None:
    assert rule.match
    assert rule.reject
    for template in rule.match:
        assert rule.id in _ids(packed, expand(template)), template
    for template in rule.reject:
        assert rule.id not in _ids(packed, expand(template)), template


def test_packs_are_used_only_where_they_are_asked_for(packed: Redactor) -> None:
    address = expand("{lower:8}@{lower:9}.io")
    arn = expand("arn:aws:iam::{digit:12}:role/{lower:9}")
    plain = _few(Chosen())
    assert plain.text(f"{address} {arn}") == f"{address} {arn}"
    assert packed.text(f"{address} ").startswith("[REDACTED:email:")
    assert "[REDACTED:aws-arn:" in packed.text(arn)
    assert "emails.toml" in {file.name for file in packed.receipt().rule_files}
    with pytest.raises(RedactionUnavailableError, match="no pack 'mails'"):
        Redactor.load(KEY, chosen=Chosen(packs=("mails",)))


def test_a_rule_of_the_package_is_left_out_by_the_settings_alone() -> None:
    text = "see " + expand("eyJhbGciOiJIUzI1NiJ9.eyJ{alnum:30}.{alnum:43}")
    plain, off = _few(Chosen()), _few(Chosen(disabled=("jwt",)))
    assert "jwt" in _ids(plain, text)
    assert "jwt" not in _ids(off, text)
    assert off.receipt().disabled_rules == ("jwt",)
    assert off.receipt().rules_version != plain.receipt().rules_version
    with pytest.raises(RedactionUnavailableError, match="'jwts'"):
        Redactor.load(KEY, chosen=Chosen(disabled=("jwts",)))


def test_names_that_say_secret_can_be_left_out() -> None:
    text = expand("db_password = {alnum:12}9x!")
    assert _few(Chosen(disabled=("assigned-secret",))).text(text) == text
    assert _few(Chosen()).text(text) != text


def test_patterns_of_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "archiver.toml"
    file.write_text(
        '[redaction]\npacks = ["hosts"]\n[[redaction.patterns]]\nid = "staff"\n'
        "pattern = '\\bS-[0-9]{6}\\b'\n"
        '[[redaction.patterns]]\nid = "badge"\nkind = "badge-number"\nform = "BDG{digit:8}"\n'
    )
    chosen = chosen_rules(load_settings(file))
    assert chosen.packs == ("hosts",)
    redactor = _few(chosen)
    shown = redactor.text(expand("S-{digit:6} and BDG{digit:8} at 10.1.2.{=3|14}"))
    for kind in ("staff", "badge-number", "private-address"):
        assert f"[REDACTED:{kind}:" in shown
    assert redactor.text("AS-123456") == "AS-123456"


def test_a_pattern_of_the_settings_that_cannot_be_used_stops_the_save() -> None:
    for pattern in ("(", "(?=a)b", "(a+)+bbb", "x*", "[a-z]+"):
        with pytest.raises(RedactionUnavailableError, match=r"redaction\.patterns.*rule mine"):
            _few(Chosen(patterns=(OwnPattern("mine", pattern=pattern),)))


def test_a_trigger_that_the_engine_refuses_names_its_rule(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        "[[context]]\nid = 'acme-context'\n"
        + HEAD
        + "trigger = '(?<=acme)key='\npattern = 'key=(?P<secret>x+)'\n"
        "judge = 'filled'\n"
    )
    with pytest.raises(RedactionUnavailableError, match="rule acme-context: the engine does not take it"):
        Redactor.load(KEY, chosen=Chosen(files=(file,)))
    assert any("does not take it" in message for _, message in _messages(file.read_text()))


def test_the_same_texts_are_read_once_and_changed_ones_again(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(PATTERN + "pattern = 'acme_[0-9]{8}'\n")
    chosen = Chosen(files=(file,))
    first = rules.load(chosen)
    assert rules.load(chosen) is first
    file.write_text(PATTERN + "pattern = 'acme_[0-9]{9}'\n")
    assert rules.load(chosen) is not first


def test_patterns_are_found_in_raw_and_in_nested_json() -> None:
    own = OwnPattern("acme-key", pattern=r"""(?i)acme["'\s:=/]{1,9}([0-9a-f]{20})\b""")
    redactor = _few(Chosen(patterns=(own,)))
    value = expand("{hex:18}a1")
    finder = redactor._finder
    for text in (f'acme: "{value}"', f"acme/{value}", f"ACME\n\t{value}", f"x\\nacme={value}\\n"):
        assert value not in redactor.text(text)
        raw = text
        for _ in range(3):
            raw = raw.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
            raw = raw.replace("/", "\\/")
            assert finder.hits(raw.encode()), raw


def test_offsets_are_right_among_other_scripts() -> None:
    own = OwnPattern("acme-key", pattern=r"ключ=(\pL{2}[0-9]{8})")
    redactor = _few(Chosen(patterns=(own,)))
    shown = redactor.text("日本 ключ=яж12345678 é")
    assert shown.startswith("日本 ключ=[REDACTED:acme-key:")
    assert shown.endswith("] é")


def test_a_check_says_what_is_wrong_and_in_which_line() -> None:
    wrong = [
        ("[[rule]]", "forms = ['acme_{alnum:20}']\nfrom = 'x'", "from", "unknown field"),
        ("[[rule]]", "forms = ['acme_{alnum:20']", "forms", "brace"),
        ("[[pattern]]", "pattern = '(a|ab|b)+c'", "pattern", "can take for ever"),
        ("[[pattern]]", "pattern = '.*a.*b.*cacme'", "pattern", "in a row"),
        ("[[pattern]]", "pattern = '[a-z]{3}'", "pattern", "too little fixed text"),
        ("[[pattern]]", "pattern = 'acme_[0-9]{9}'\ngroup = 1", "pattern", "no group 1"),
        ("[[pattern]]", "pattern = 'acme_[0-9]{9}'\nmatch = ['acme_12']", "id", "does not find 'acme_12'"),
        ("[[pattern]]", "pattern = 'acme_[0-9]{9}'\nreject = ['acme_{digit:9}']", "id", "which it must not"),
    ]
    tables = [f"{kind}\nid = 'acme-{at}'\n{HEAD}{what}\n" for at, (kind, what, _, _) in enumerate(wrong)]
    tables.append(f"[[rule]]\nid = 'jwt'\n{HEAD}forms = ['acme_{{alnum:20}}']\n")
    text = "\n".join(tables)
    found = _messages(text)
    lines = text.splitlines()
    for at, (_, _, field, says) in enumerate(wrong):
        begin = lines.index(f"id = 'acme-{at}'")
        wanted = next(line for line in range(begin, len(lines)) if lines[line].startswith(f"{field} ="))
        assert (wanted + 1) in [line for line, message in found if says in message], (says, found)
    assert (lines.index("id = 'jwt'") + 1, True) in [
        (line, "a second rule jwt" in said) for line, said in found
    ]
    assert len(found) == len(wrong) + 1


@pytest.mark.parametrize(
    ("text", "line", "says"), [("[[rule]\n", 1, "not TOML"), ("\n[[ruled]]\nid = 'x'\n", 2, "unknown table")]
)
def test_a_file_without_usable_tables(text: str, line: int, says: str) -> None:
    [(at, message)] = _messages(text)
    assert at == line
    assert says in message


def test_a_check_finds_nothing_wrong_with_what_is_right() -> None:
    good = PATTERN + "pattern = 'acme_([0-9]{9})'\nmatch = ['acme_{digit:9}']\nreject = ['acme_1']\n"
    checked = check("mine.toml", good)
    assert (checked.rules, checked.problems) == (1, ())


def test_a_python_pattern_that_takes_for_ever_is_found_by_trying() -> None:
    slow = (
        "[[context]]\nid = 'acme-context'\n"
        + HEAD
        + "trigger = 'acme='\npattern = 'acme=(?P<secret>(a+)+b)'\n"
        "judge = 'filled'\nmatch = ['acme=aab']\n"
    )
    begin = time.process_time()
    assert any("hostile" in message for _, message in _messages(slow))
    assert time.process_time() - begin < 8


def test_expressions_that_are_refused_are_those_that_take_for_ever() -> None:
    for text in ("(a+)+b", "(a|a)*b", "(?:a|ab|b)+c", "(?:[a-z]*)*1", "([a-z.]+\\.)+com", "(a{1,9}){5,}b"):
        assert re2.why_costly(re2.parse(text)), text
    for text in ("(?:[a-z]+\\.)+com", "([0-9a-f]{2}:?){16}", "a+b+", "(?:foo|far)+x", ".*x", "(?:a|b)+"):
        assert re2.why_costly(re2.parse(text)) is None, text


def test_a_trial_says_why_nothing_was_found() -> None:
    example = "AKIA" + "IOSFODNN7EXAMPLE"
    result = trial(example.encode(), Chosen(), explain=True)
    assert result.found == ()
    assert ("aws-access-key-id", "it looks made up, as in documentation") in {
        (vain.rule, vain.why) for vain in result.vain
    }


@pytest.mark.parametrize("rule", ["private-key", "kubernetes-secret"])
def test_rows_of_blanks_do_not_hold_up_what_code_confirms(rule: str, cache_folder: Path) -> None:
    made = rules.load()
    [number] = [at for at, owner in enumerate(made.owners) if owner == made.index(rule)]
    begin = time.process_time()
    for head in ("-----BEGIN PRIVATE KEY-----\n" + "a" * 40, "kind: Secret\ndata:\n  a: b\n"):
        for fill in (" ", "- ", "> ", "\n "):
            end = head.index("\n") if "kind" not in head else 12
            made.confirms[number]((head + fill * 4096).encode(), end)
    assert time.process_time() - begin < 1
