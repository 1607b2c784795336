"""When what was scanned may be used again: fingerprints of rules and values, and what became known since."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from archiver.redact import Chosen, ExactValue, OwnPattern, Redactor, reuse, rules
from archiver.redact.finder import Finder
from tests.redact.conftest import KEY
from tests.redact.support import expand

WORD = expand("q{alnum:20}Z", 41)
OTHER = expand("q{alnum:20}Z", 42)


def test_a_fingerprint_says_by_what_was_scanned(finder: Finder, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Redactor(finder, KEY, (ExactValue("A", WORD), ExactValue("B", OTHER)))
    told = one.fingerprint()
    assert len(told) == 32
    assert told == one.fingerprint()
    assert told == Redactor(finder, b"o" * 32, (ExactValue("B", OTHER), ExactValue("C", WORD))).fingerprint()
    one.text(f"API_TOKEN={expand('{alnum:30}', 3)}")
    assert told == one.fingerprint()
    assert told != one.fingerprint("credentials=redact")
    assert one.fingerprint("ab", "c") != one.fingerprint("a", "bc")
    assert told != Redactor(finder, KEY, (ExactValue("A", WORD),)).fingerprint()
    one.learn([ExactValue("A", WORD)])
    assert told == one.fingerprint()
    one.learn([ExactValue("N", "another value")])
    assert told != one.fingerprint()
    monkeypatch.setattr(reuse, "ENGINE", "another engine")
    assert told != Redactor(finder, KEY, (ExactValue("A", WORD), ExactValue("B", OTHER))).fingerprint()


def test_other_rules_have_another_fingerprint(finder: Finder) -> None:
    chosen = (
        Chosen(),
        Chosen(packs=("emails",)),
        Chosen(disabled=("github-token",)),
        Chosen(patterns=(OwnPattern("staff", pattern=r"\bS-[0-9]{6}\b"),)),
        Chosen(patterns=(OwnPattern("staff", pattern=r"\bS-[0-9]{7}\b"),)),
    )
    told = [reuse.fingerprint(reuse.own_key(), rules.load(one), (), ()) for one in chosen]
    assert len(set(told)) == len(chosen)
    assert told[0] == Redactor(finder, KEY, ()).fingerprint()


def test_it_is_the_same_in_other_processes_of_the_user_alone(
    finder: Finder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made() -> Redactor:
        reuse._names_in.cache_clear()
        return Redactor(finder, KEY, (ExactValue("A", WORD),), names=reuse.shared_names())

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "one"))
    first = made()
    assert made().fingerprint() == first.fingerprint()
    assert made().mark() == first.mark()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "two"))
    assert made().fingerprint() != first.fingerprint()
    assert made().mark() != first.mark()
    own = Redactor(finder, KEY, (ExactValue("A", WORD),)).fingerprint()
    assert own != first.fingerprint()
    reuse.own_key.cache_clear()
    assert Redactor(finder, KEY, (ExactValue("A", WORD),)).fingerprint() != own


def test_what_became_known_is_searched_for_alone(finder: Finder) -> None:
    redactor = Redactor(finder, KEY, (ExactValue("A", WORD),))
    before = redactor.mark()
    assert not redactor.grew_since(before)
    assert not redactor.search_again([WORD.encode()], before)
    redactor.text(f"API_TOKEN={OTHER}")
    assert redactor.grew_since(before)
    assert redactor.search_again([b"so ", OTHER.encode()], before)
    assert redactor.search_again([gzip.compress(b"so " + OTHER.encode())], before)
    assert redactor.search_again([b"\x1f\x8b\x08 what cannot be looked into"], before)
    assert not redactor.search_again([f"so {WORD} and {expand('ghp_{alnum:36}', 4)}".encode()], before)
    now = redactor.mark()
    assert before < now
    assert not redactor.grew_since(now)
    assert not redactor.search_again([OTHER.encode()], now)
    redactor.learn([ExactValue("L", "a value that was learned")])
    assert redactor.grew_since(now)
    assert redactor.search_again([b"it is a value that was learned"], now)
    found = len(redactor.receipt().findings)
    assert found == 1


def test_a_later_save_that_finds_the_same_has_nothing_new(finder: Finder) -> None:
    first = Redactor(finder, KEY, ())
    first.text(f"API_TOKEN={OTHER}")
    second = Redactor(finder, b"o" * 32, ())
    assert not second.grew_since(first.mark())
    second.text(f"API_TOKEN={OTHER}")
    assert not second.grew_since(first.mark())
    assert not any(OTHER.encode()[at : at + 6] in b"".join(first.mark()) for at in range(12))


def test_found_values_that_may_stand_anywhere_are_no_reason_to_search(finder: Finder) -> None:
    redactor = Redactor(finder, KEY, ())
    before = redactor.mark()
    redactor.text('password = "blueduck77"')
    redactor.text("DB_PASSWORD=swordfish\n")
    assert redactor.receipt().findings
    assert len(redactor.mark() - before) <= 1
