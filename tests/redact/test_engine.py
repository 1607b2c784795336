"""The engine, its cache, and what happens when something does not load: nothing is saved unredacted."""

from __future__ import annotations

import json
import os
import stat
import string
from pathlib import Path
from typing import Any

import pytest

from archiver.errors import RedactionUnavailableError
from archiver.redact import Chosen, Redactor, cache, engine, finder, rules
from archiver.redact.engine import Engine, Expression
from archiver.redact.finder import Finder
from tests.redact.conftest import KEY
from tests.redact.support import expand

GOOD = """
[[rule]]
id = "acme-key"
kind = "acme-key"
about = "key of Acme"
source = "https://acme.example/docs"
forms = ["acme_{alnum:20}"]
"""


def _expressions(word: bytes) -> list[Expression]:
    return [Expression(word)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return cache._folder()


def test_a_database_is_kept_privately_and_loaded_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="archiver")
    assert Engine(_expressions(b"needle")).scan(b"a needle") == [(8, 0)]
    [kept] = folder.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("compiled although the database is kept")

    assert f"which may take seconds, and kept in {folder}" in caplog.text
    caplog.clear()
    monkeypatch.setattr(engine, "_compile", refuse)
    assert Engine(_expressions(b"needle")).scan(b"a needle") == [(8, 0)]
    assert caplog.text == ""
    with pytest.raises(RedactionUnavailableError):
        Engine(_expressions(b"other"))


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "foreign", "writable", "link"])
def test_a_cache_that_cannot_be_trusted_is_compiled_again(folder: Path, damage: str) -> None:
    Engine(_expressions(b"needle"))
    [kept] = folder.iterdir()
    content = kept.read_bytes()
    if damage == "truncated":
        kept.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        kept.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    elif damage == "empty":
        kept.write_bytes(b"")
    elif damage == "foreign":
        kept.write_bytes(__import__("hashlib").sha256(b"nonsense").digest() + b"nonsense")
    elif damage == "writable":
        kept.chmod(0o622)
        assert cache.load(kept.stem) is None
    else:
        moved = kept.with_name("elsewhere")
        kept.rename(moved)
        kept.symlink_to(moved)
        assert cache.load(kept.stem) is None
    assert Engine(_expressions(b"needle")).scan(b"a needle") == [(8, 0)]


def test_a_folder_of_others_is_not_used(folder: Path) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert Engine(_expressions(b"needle")).scan(b"a needle") == [(8, 0)]
    assert list(folder.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert Engine(_expressions(b"needle")).scan(b"a needle") == [(8, 0)]
    assert blocked.read_text() == "in the way"


def test_the_cache_is_keyed_by_the_rules(folder: Path) -> None:
    Engine(_expressions(b"needle"))
    Engine(_expressions(b"thread"))
    assert len(list(folder.iterdir())) == 2
    assert Engine(_expressions(b"thread")).scan(b"needle thread") == [(13, 0)]


def test_an_engine_that_does_not_compile_stops_everything() -> None:
    with pytest.raises(RedactionUnavailableError, match="could not be made"):
        Engine([Expression(b"(unclosed")])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[rule", "cannot be used"),
        ("[[ruled]]\nid = 'x'", "unknown table 'ruled'"),
        (GOOD.replace("forms", "form"), "unknown field 'form'"),
        (GOOD.replace('about = "key of Acme"', ""), "has no about"),
        (GOOD.replace('source = "https://acme.example/docs"', ""), "has no source"),
        (GOOD.replace('id = "acme-key"', ""), "'id' is missing"),
        (GOOD.replace("acme-key", "Acme Key"), "lower-case"),
        (GOOD.replace("{alnum:20}", "{letters:20}"), "unknown class"),
        (GOOD.replace("{alnum:20}", "{alnum:20"), "brace"),
        (GOOD.replace("{alnum:20}", "{alnum:20,3}"), "cannot be"),
        (GOOD.replace("acme-key", "github-token"), "a second rule"),
        (GOOD + 'boundary = "none"', "boundary"),
        (GOOD + 'checksum = "none"', "none"),
        (GOOD + 'named = ["acme"]', "both"),
        (GOOD.replace("[[rule]]", "[[context]]").replace("forms = ", "x = "), "unknown field"),
        (
            "[[context]]\nid='a'\nkind='a'\nabout='a'\nsource='a'\ntrigger='a'\npattern='('\njudge='filled'",
            "cannot be",
        ),
        (
            "[[context]]\nid='a'\nkind='a'\nabout='a'\nsource='a'\ntrigger='a'\npattern='a'\njudge='none'",
            "none",
        ),
        ("[names]\npassword = ['x']", "[names]"),
        ("rule = 3", "cannot be used"),
    ],
)
def test_a_broken_rule_file_stops_everything(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(RedactionUnavailableError) as caught:
        Redactor.load(KEY, chosen=Chosen(files=(path,)))
    assert says in str(caught.value)
    assert caught.value.remedy


def test_a_rule_file_that_is_not_there_stops_everything(tmp_path: Path) -> None:
    with pytest.raises(RedactionUnavailableError):
        Redactor.load(KEY, chosen=Chosen(files=(tmp_path / "absent.toml",)))
    (tmp_path / "latin.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RedactionUnavailableError):
        Redactor.load(KEY, chosen=Chosen(files=(tmp_path / "latin.toml",)))


def test_rules_of_ones_own_are_used(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    redactor = Redactor.load(KEY, chosen=Chosen(files=(path,)))
    assert redactor.text(f"see {expand('acme_{alnum:20}')}").startswith("see [REDACTED:acme-key:")
    builtin = Redactor.load(KEY)
    assert redactor.receipt().rules == builtin.receipt().rules + 1
    assert redactor.receipt().rules_version != builtin.receipt().rules_version


def test_an_engine_without_its_library_stops_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise OSError("libhs.so: cannot open shared object file")

    monkeypatch.setattr(engine, "_patterns", broken)
    monkeypatch.setattr(finder, "_made", {})
    with pytest.raises(RedactionUnavailableError, match="cannot open shared object"):
        Redactor.load(KEY)


def test_no_trigger_fires_all_along_a_run_of_one_character(finder: Finder) -> None:
    for char in string.ascii_letters + string.digits + "+/=_-.:@%*# ":
        hits = finder.hits(char.encode() * 4096)
        assert len(hits) < 8, (char, finder.rules.expressions[hits[0][1]].pattern)


def test_two_threads_can_scan_at_once(finder: Finder) -> None:
    from concurrent.futures import ThreadPoolExecutor

    data = json.dumps([expand("ghp_{alnum:36}", seed) for seed in range(200)]).encode() * 20
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: len(finder.find(data)), range(16)))
    assert set(results) == {4000}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can own files as another user")
def test_a_database_owned_by_another_user_is_not_loaded(folder: Path) -> None:
    Engine(_expressions(b"needle"))
    [kept] = folder.iterdir()
    os.chown(kept, 12345, 12345)
    assert cache.load(kept.stem) is None


def test_rules_load_the_same_twice() -> None:
    assert rules.load().version == rules.load().version


def test_databases_unused_for_longest_make_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_MOST", 3)
    for number in range(3):
        cache.store(f"{number:064x}", b"database %d" % number)
        os.utime(folder / f"{number:064x}.vsdb", (number, number))
    assert cache.load(f"{0:064x}") == b"database 0"
    cache.store(f"{9:064x}", b"database 9")
    assert sorted(path.stem[-1] for path in folder.glob("*.vsdb")) == ["0", "2", "9"]


def test_many_literals_are_compiled_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_MOST_LITERALS", 10)
    literals = [Expression(b"literal %02d" % number, caseless=number % 2 == 0) for number in range(35)]
    made = Engine(literals, literal=True)
    text = b", ".join(literal.pattern for literal in literals)
    assert sorted(number for _, number in made.scan(text)) == list(range(35))
    assert {number for _, number in made.scan(text.upper())} == set(range(0, 35, 2))
