"""Which form a file has: by its name, or else by what stands in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from archiver.redact.secretfiles import forms
from archiver.redact.secretfiles.forms import Parse
from archiver.redact.secretfiles.reading import UnusableFileError

_BY_NAME: Final[tuple[tuple[re.Pattern[str], Parse], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE), parse)
    for pattern, parse in (
        (r"(?:.*/)?(?:\.env(?:rc)?(?:\..+)?|.+\.env)", forms.dotenv_file),
        (r"(?:.*/)?[._]netrc", forms.netrc),
        (r"(?:.*/)?(?:\.pgpass|pgpass\.conf)", forms.pgpass),
        (r"(?:.*/)?(?:\.git-credentials|git/credentials)", forms.urls),
        (r".*\.jsonl?", forms.json_file),
        (r".*\.toml", forms.toml),
        (r".*\.ya?ml|(?:.*/)?\.kube/config|(?:.*/)?\.gem/credentials", forms.yaml_file),
        (
            r".*\.(?:ini|cfg|conf|cnf|properties)|(?:.*/)?\.(?:npmrc|pypirc|s3cfg|boto|databrickscfg)",
            forms.ini,
        ),
        (r"(?:.*/)?\.aws/(?:config|credentials)", forms.ini),
    )
)
_SECTION = re.compile(r"^[ \t]*\[[^\[\]\n]+\][ \t]*$", re.MULTILINE)
_ASSIGNED = re.compile(r"^(?:export[ \t]+)?[A-Za-z_]\w*=", re.MULTILINE)


def parser_of(path: Path, text: str) -> Parse:
    """How to read that file; `UnusableFileError` when nothing fits."""
    if text.lstrip().startswith("-----BEGIN"):
        return forms.whole
    for pattern, parse in _BY_NAME:
        if pattern.fullmatch(path.as_posix()):
            return parse
    return _by_text(text.strip())


def _by_text(text: str) -> Parse:
    if not re.search(r"\s", text) and not _ASSIGNED.match(text) and text[:1] not in ("{", "["):
        return forms.whole
    candidates: list[Parse] = []
    if text[:1] in ("{", "["):
        candidates.append(forms.json_file)
    if _SECTION.search(text):
        candidates += [forms.toml, forms.ini]
    if re.match(r"(?:machine|default)\s", text):
        candidates.append(forms.netrc)
    if _ASSIGNED.search(text):
        candidates.append(forms.dotenv_file)
    for parse in (*candidates, forms.toml, forms.yaml_file):
        try:
            for _ in parse(text):
                pass
        except UnusableFileError:
            continue
        return parse
    if "\n" not in text:
        return forms.whole
    raise UnusableFileError("it has no form that is known (.env, INI, JSON, YAML, TOML, netrc, one value)")
