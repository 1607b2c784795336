"""What the documents say is what the program does."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path
from typing import Any, get_args

from archiver.cli.options import OUTCOMES, Outcome
from archiver.config import load
from archiver.model import Outcome as ModelOutcome
from archiver.setup.config_text import config_text
from archiver.setup.keys import Keys

ROOT = Path(__file__).parent.parent.parent


def generator() -> Any:
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "tests" / "generate_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_commands_and_settings_have_not_drifted() -> None:
    assert generator().drift() == [], "run `python tests/generate_docs.py`"


def test_outcomes_are_those_of_the_model() -> None:
    assert get_args(Outcome) == get_args(ModelOutcome)
    assert "{}, {}, {}, {} or {}".format(*get_args(ModelOutcome)) == OUTCOMES


def test_examples_of_the_document_load(tmp_path: Path, home: Path) -> None:
    text = (ROOT / "docs" / "CONFIGURATION.md").read_text()
    example, writers = (block.split("```")[0] for block in text.split("```toml\n")[1:])
    path = tmp_path / "archiver.toml"
    path.write_text(example)
    assert load(path).keys.writers == tmp_path / "keys" / "writers.toml"
    assert tomllib.loads(writers)["writer"][0]["runs"] == "ci-*"


def test_what_init_writes_loads_also_without_its_comment_signs(tmp_path: Path, home: Path) -> None:
    keys = Keys(Path("/k/identity.txt"), Path("/k/signing.pem"), "age1x", "f", "ed25519:x")
    text = config_text("/srv/a", "ab" * 16, keys, load(without_file=True))
    path = tmp_path / "archiver.toml"
    path.write_text(text)
    plain = load(path)
    lines = text.splitlines()
    uncommented = "\n".join(line.removeprefix("# ") if " = " in line else line for line in lines)
    assert uncommented != text
    path.write_text(uncommented)
    full = load(path)
    assert full.store == plain.store
    assert full.freshness == plain.freshness
    assert full.archive.keep_turns == plain.archive.keep_turns
    assert full.archive.user == "me"


def test_every_part_has_its_place_in_the_picture() -> None:
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    parts = [
        path.name if path.suffix else f"{path.name}/"
        for path in (ROOT / "archiver").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    ]
    assert len(parts) > 50
    missing = [part for part in parts if part != "__init__.py" and f"`{part}`" not in text]
    assert [part for part in missing if f"`archiver/{part}`" not in text] == []
