"""What redaction finds and what it leaves alone, on the corpora and transcripts of ARCHIVER_SHARED.

    python benchmarks/recall.py [--missed] [--list]

`--missed` names the kinds that were missed in each encoding, `--list` the findings in real transcripts, by
rule and place, never by value. Corpora are measured with the rules of the package alone and with all packs:
some count identifiers as secrets. The folder defaults to `../shared` beside the repository; without it
nothing is done.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from archiver.errors import ArchiverError
from archiver.model import Receipt, TranscriptPart
from archiver.redact import Redactor, rules
from archiver.redact.exact import ExactMatcher
from archiver.redact.finder import Finder
from archiver.redact.ledger import Ledger
from archiver.redact.rules import PACKS, Chosen
from archiver.redact.scrub import Scrubber, never
from archiver.scratch import Scratch
from archiver.transcripts import get_dialect
from archiver.transcripts.reader import read

KEY = bytes(32)
SHARED = Path(os.environ.get("ARCHIVER_SHARED", Path(__file__).parents[2] / "shared"))
ANSI = re.compile(r"\x1b\[[0-9;]*m")
PIECE = 10
"""Characters of a secret that are too many to be left."""
FRAME = re.compile(r"-----[A-Z ]+-----|https?(?:://|%3A%2F%2F)")
CARRIED = re.compile(r'"partial_json":"((?:[^"\\]|\\.)*)"')
RUN = re.compile(r"[A-Za-z0-9+/_\-]{12,}")
HEX = re.compile(r"[0-9a-fA-F]+")
URL_SAFE = str.maketrans("-_", "+/")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--missed", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if not (SHARED / "corpora").is_dir():
        print(f"no corpora in {SHARED}: set ARCHIVER_SHARED to the folder that holds them")
        return 0
    finder = Finder(rules.load())
    packs = Finder(rules.load(Chosen(packs=PACKS)))
    planted(finder, missed=options.missed)
    corpora({"default": finder, "with packs": packs})
    transcripts(finder, listed=options.list)
    return 0


def planted(finder: Finder, *, missed: bool) -> None:
    """Synthetic secrets inside transcript lines: how many kinds are removed entirely, by encoding."""
    removed: dict[str, list[str]] = defaultdict(list)
    kept: dict[str, list[str]] = defaultdict(list)
    known: Counter[str] = Counter()
    for case in _load("planted"):
        groups = removed if _gone(case, _scrubbed(finder, case["text"])) else kept
        groups[case["enc"]].append(case["rule"])
        known[case["enc"]] += _gone(case, _scrubbed(finder, case["text"], case["secret"].encode()))
    print(f"{'planted':20} {'kinds':>6} {'removed':>8} {'registered':>11}")
    for encoding in known:
        total = len(removed[encoding]) + len(kept[encoding])
        print(f"{encoding:20} {total:6} {len(removed[encoding]):8} {known[encoding]:11}")
        if missed and kept[encoding]:
            print(f"    missed: {', '.join(kept[encoding])}")


def corpora(finders: Mapping[str, Finder]) -> None:
    """Public test corpora: positives and negatives with any finding, by each set of rules."""
    print(f"\n{'':31} {' '.join(f'{name:^23}' for name in finders)}")
    head = f"{'found':>6} {'share':>8} {'neg.':>6} "
    print(f"{'corpus':15} {'positives':>9} {'neg.':>5} {' '.join([head] * len(finders))}")
    for name in ("noseyparker", "kingfisher", "gitleaks", "detect_secrets"):
        cases = _load(name)
        yes = sum(case["expect"] for case in cases)
        cells = []
        for finder in finders.values():
            found = [case["expect"] for case in cases if _finds(finder, case["text"])]
            hit = sum(found)
            cells.append(f"{hit:6} {100 * hit / yes:6.1f} % {len(found) - hit:6} ")
        print(f"{name:15} {yes:9} {len(cases) - yes:5} {' '.join(cells)}")


def _finds(finder: Finder, text: str) -> bool:
    return bool(Scrubber(finder, ExactMatcher(()), Ledger(KEY)).text_edits(text.encode()))


def transcripts(finder: Finder, *, listed: bool) -> None:
    """Real transcripts: findings a megabyte where no credential is known to be, and opaque fields changed."""
    size = findings = opaque = 0
    for entry in json.loads((SHARED / "transcripts" / "manifest.json").read_text()):
        root = SHARED / "transcripts" / entry["file"]
        for path in [root] if root.is_file() else sorted(p for p in root.rglob("*") if p.is_file()):
            receipt, total, changed = _transcript(finder, path)
            opaque += changed
            if entry["credential_like"]:
                continue
            size += total
            findings += len(receipt.findings)
            for finding in receipt.findings if listed else ():
                print(f"    {entry['file']}: {finding.rule} × {finding.count} {finding.places[:1]}")
    rate = findings / (size / 1e6)
    print(
        f"\ntranscripts without known credentials: {size / 1e6:.1f} MB, {findings} findings, {rate:.3f} a MB"
    )
    print(f"opaque fields changed, in all transcripts: {opaque}")


def _transcript(finder: Finder, path: Path) -> tuple[Receipt, int, int]:
    redactor = Redactor(finder, KEY, ())
    try:
        reading = read([path])
        with Scratch() as scratch:
            redacted = redactor.transcript(reading.transcript, scratch).value
            changed = 0
            for before, after in zip(read([path]).transcript.parts, redacted.parts, strict=True):
                if before.media != "raw":
                    changed += _opaque_changed(before, after, reading.transcript.dialect)
    except ArchiverError as error:
        print(f"    {path.name}: {error}", file=sys.stderr)
        return Receipt(), 0, 0
    return redactor.receipt(), reading.total_bytes, changed


def _opaque_changed(before: TranscriptPart, after: TranscriptPart, dialect: str) -> int:
    opaque = get_dialect(dialect).opaque
    changed = 0
    for one, other in zip(before.items.values(), after.items.values(), strict=True):
        held = dict(_leaves(other))
        changed += sum(held.get(path) != text for path, text in _leaves(one) if opaque(path, one))
    return changed


def _leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, index))


def _load(name: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads((SHARED / "corpora" / f"{name}.json").read_text())
    return cases


def _scrubbed(finder: Finder, text: str, *known: bytes) -> str:
    scrubber = Scrubber(finder, ExactMatcher(known), Ledger(KEY))
    out: list[bytes] = []
    scrubber.lines(text.encode() + b"\n", 1, "planted", never, out.append)
    return b"".join(out).decode()


def _gone(case: dict[str, Any], output: str) -> bool:
    """True when no piece of the secret, nor of its encoded form, can be read from the output in any view."""
    text = "\0".join(_readings(output))
    forms = {case["secret"], json.loads(f'"{case["needle"]}"') if "\\u" in case["needle"] else case["needle"]}
    return not any(piece in text for form in forms for piece in _pieces(form))


def _pieces(form: str) -> set[str]:
    """All that is `PIECE` characters long in a secret, but for the frame of PEM and the scheme of a URL."""
    form = FRAME.sub("\0", form.replace("\\n", "\n")).strip("\0\n ")
    whole = {form} if len(form) < PIECE else set()
    pieces = {form[at : at + PIECE] for at in range(len(form) - PIECE + 1)} | whole
    return {piece for piece in pieces if "\0" not in piece and "\n" not in piece}


def _readings(output: str) -> Iterator[str]:
    """The output as it is, its strings, the strings of neighbouring records joined, and what they encode."""
    strings = [ANSI.sub("", text) for line in output.splitlines() for text in _strings(json.loads(line))]
    carried = "".join(CARRIED.findall(output))
    for text in (output, *strings, carried):
        yield text
        yield re.sub(r"\s|\\n|%0A", "", text)
        yield unquote(text)
        for run in RUN.findall(re.sub(r"\n", "", text)):
            yield from _decoded(run)


def _decoded(run: str) -> Iterator[str]:
    """What a run of letters and digits says as hex, and as base64 wherever it may begin."""
    if HEX.fullmatch(run):
        yield bytes.fromhex(run[: len(run) & ~1]).decode("latin-1")
    for start in range(4):
        text = run[start:].translate(URL_SAFE)
        text = text[: len(text) - (len(text) % 4 == 1)]
        yield base64.b64decode(text + "=" * (-len(text) % 4)).decode("latin-1")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        try:
            inner = json.loads(value)
        except ValueError:
            return
        if isinstance(inner, dict | list):
            yield from _strings(inner)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


if __name__ == "__main__":
    sys.exit(main())
