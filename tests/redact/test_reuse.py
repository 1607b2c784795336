"""What was scanned before is not scanned again, and nothing is ever missed by that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from archiver.redact import reuse
from archiver.redact.exact import ExactMatcher
from archiver.redact.finder import Finder
from archiver.redact.ledger import Ledger
from archiver.redact.redactor import Redactor
from archiver.redact.reuse import Names, Piece, to_scan
from archiver.redact.scrub import Scrubber, never
from tests.redact.conftest import KEY
from tests.redact.support import expand, lines

TOKEN = expand("ghp_{alnum:36}", 3)


class Watched(Finder):
    """A finder that counts the bytes it scans."""

    def __init__(self, finder: Finder) -> None:
        self.__dict__.update(finder.__dict__)
        self.scanned = 0

    def hits(self, data: bytes, *between: bytes) -> Any:
        self.scanned += len(data)
        return super().hits(data, *between)


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Names:
    """Names kept in a cache folder of this test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return reuse.shared_names()


def fresh(names: Names) -> Names:
    """The names as another process reads them."""
    reuse._names_in.cache_clear()
    again = reuse.shared_names()
    assert again is not names
    return again


def block(count: int, **changed: str) -> bytes:
    """Lines of about 200 bytes; `n17="text"` changes line 17."""
    rows = ({"n": n, "text": changed.get(f"n{n}", f"words {n} " * 12)} for n in range(count))
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def scrubber(finder: Finder, names: Names | None, *values: bytes, rules: bool = True) -> Scrubber:
    return Scrubber(finder, ExactMatcher(values), Ledger(KEY), rules=rules, names=names)


def test_unchanged_content_is_scanned_once_also_by_another_process(finder: Finder, names: Names) -> None:
    text = block(10_000)
    first = Watched(finder)
    assert lines(scrubber(first, names), text) == text
    names.save()
    assert first.scanned >= len(text)
    for known in (names, fresh(names)):
        again = Watched(finder)
        assert lines(scrubber(again, known), text) == text
        assert again.scanned == 0


def test_what_was_appended_or_changed_is_scanned_with_its_neighbours(finder: Finder, names: Names) -> None:
    lines(scrubber(finder, names), block(10_000))
    grown = Watched(finder)
    lines(scrubber(grown, names), block(10_200))
    assert 0 < grown.scanned < 800_000
    changed = block(10_000, n5000=f"it is {TOKEN}")
    watched = Watched(finder)
    output = lines(scrubber(watched, names), changed)
    assert output == lines(scrubber(finder, None), changed)
    assert TOKEN.encode() not in output
    assert watched.scanned < 1_500_000


def test_a_finding_is_found_every_time(finder: Finder, names: Names) -> None:
    text = block(10_000, n10="x", n700=f"it is {TOKEN}", n9999=f"and {TOKEN}")
    expected = lines(scrubber(finder, None), text)
    for _ in range(3):
        assert lines(scrubber(finder, names), text) == expected


def test_known_values_are_searched_in_what_the_rules_know(finder: Finder, names: Names) -> None:
    text = block(10_000, n10="plain", n5000="say glorious-apple again", n9000='{"a": "glorious-\\u0061pple"}')
    assert lines(scrubber(finder, names), text) == text
    for value in (b"glorious-apple", b"say glori"):
        assert lines(scrubber(finder, names, value), text) == lines(scrubber(finder, None, value), text)
        known_only = lines(scrubber(finder, names, value, rules=False), text)
        assert known_only == lines(scrubber(finder, None, value, rules=False), text)
    watched = Watched(finder)
    lines(scrubber(watched, names, b"glorious-apple"), text)
    assert watched.scanned < 2_500_000


def test_other_rules_and_another_opaque_place_know_nothing(
    finder: Finder, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = block(3_000)
    lines(scrubber(finder, names), text)
    other = Watched(finder)
    scrubber(other, names).lines(text, 1, "here", lambda _path, _item: False, len)
    assert other.scanned >= len(text)
    for changed in ("version", "id", "expression", "program"):
        watched = Watched(finder)
        with monkeypatch.context() as patch:
            if changed == "version":
                patch.setattr(finder.rules, "version", "another")
            elif changed == "id":
                patch.setattr(finder.rules, "rules", finder.rules.rules[:-1])
            elif changed == "expression":
                patch.setattr(finder.rules, "expressions", finder.rules.expressions[:-1])
            else:
                patch.setattr("archiver.__version__", "9.9.9")
            made = scrubber(watched, names)
        made.lines(text, 1, "here", never, len)
        assert watched.scanned >= len(text), changed


def test_a_piece_counts_only_behind_the_piece_it_was_seen_behind(finder: Finder, names: Names) -> None:
    one, two = block(1_500), block(1_500).replace(b"words", b"other")
    pieces = scrubber(finder, names)._reuse.pieces(one + two, never)  # type: ignore[union-attr]
    assert len(pieces) > 3
    lines(scrubber(finder, names), one + two)
    watched = Watched(finder)
    lines(scrubber(watched, names), two + one)
    assert watched.scanned > 0


def test_torn_foreign_and_open_files_are_not_believed(finder: Finder, names: Names, tmp_path: Path) -> None:
    text = block(3_000)
    lines(scrubber(finder, names), text)
    names.save()
    (folder,) = (tmp_path / "cache").rglob("redact")
    path = folder / "clean.names"
    good = path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    for broken in (b"", good[:-1], good[:-16], good + bytes(16), bytes([good[0] ^ 1]) + good[1:], bytes(32)):
        path.write_bytes(broken)
        watched = Watched(finder)
        lines(scrubber(watched, fresh(names)), text)
        assert watched.scanned >= len(text)
    path.write_bytes(good)
    path.chmod(0o644)
    assert not fresh(names)._held
    path.chmod(0o600)
    assert fresh(names)._held
    (folder / "clean.key").write_bytes(os.urandom(32))
    assert not fresh(names)._held


def test_the_file_says_nothing_of_the_content_and_stays_small(
    finder: Finder, names: Names, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reuse, "_MOST", 20)
    for seed in range(30):
        lines(scrubber(finder, names), block(400).replace(b"words", b"w%d" % seed))
        names.save()
    (path,) = (tmp_path / "cache").rglob("clean.names")
    assert path.stat().st_size == 32 + 20 * 16
    assert b"words" not in path.read_bytes()
    assert len(names._held) <= 41


def test_writers_at_the_same_time_lose_no_name(finder: Finder, names: Names) -> None:
    others = [Names(names.key) for _ in range(4)]
    texts = [block(500).replace(b"words", b"w%d" % number) for number in range(4)]

    def work(number: int) -> None:
        lines(scrubber(finder, others[number]), texts[number])
        others[number].save()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    held = fresh(names)._held
    assert held
    for other in others:
        other._is_new = True
        other.save()
    assert len(fresh(names)._held) == 4


def test_reuse_is_asked_for(finder: Finder) -> None:
    assert Redactor(finder, KEY, ())._names is None
    assert Redactor.load(KEY, reuse=True)._names is reuse.shared_names()
    assert Redactor.load(KEY)._names is None


def test_a_secret_split_over_records_far_apart_is_found_where_only_its_end_is_new(
    finder: Finder, names: Names
) -> None:
    """Records of one stream, with long ones of another between them, so that pieces would part them."""

    def row(index: int, text: str) -> bytes:
        event = {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}
        return json.dumps(event).encode() + b"\n"

    other = "".join(f"word{n} " for n in range(2_000))
    first = b"".join(row(0, f" {TOKEN[:12]}" if n == 0 else "") + row(1, other) * 5 for n in range(10))
    lines(scrubber(finder, names), first)
    grown = first + row(0, TOKEN[12:])
    output = lines(scrubber(finder, names), grown)
    assert output == lines(scrubber(finder, None), grown)
    assert TOKEN[12:].encode() not in output


def test_what_is_known_is_scanned_again_beside_what_is_not() -> None:
    known, unknown = Piece(0, 1, None, None), Piece(0, 1, b"name", None)
    values = Piece(0, 1, None, b"name")
    assert list(to_scan([known, known, unknown, known, known])) == [(1, 4, True)]
    assert list(to_scan([known, values, known, known])) == [(0, 3, False)]
    assert list(to_scan([unknown, known, values])) == [(0, 2, True), (2, 3, False)]
    assert list(to_scan([known, known])) == []


def test_runs_in_a_row_write_the_file_now_and_then_and_at_the_end(names: Names, tmp_path: Path) -> None:
    program = (
        "from archiver.redact import reuse\n"
        "names = reuse.shared_names()\n"
        "for number in range(3):\n"
        "    names.add(bytes([number]) * 16)\n"
        "    names.save_in_time()\n"
        "    print(len(reuse._read(names.key)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["1", "1", "1"]  # none of them comes after the pause
    assert all(bytes([number]) * 16 in fresh(names) for number in range(3))
    assert reuse._PAUSE < 60


def test_names_of_another_cache_folder_are_not_written_at_the_end(
    names: Names, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    names.add(bytes(16))
    reuse._save_last(names, str(tmp_path / "cache" / "checkpoint-archiver" / "redact"))
    assert not (tmp_path / "other").exists()
