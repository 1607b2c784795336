"""Write what can drift in `docs/` from the commands and the settings, or with `--check` diff it.

`docs/CLI.md` is generated whole; of `docs/CONFIGURATION.md` the tables between the two markers.
"""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

from typer.main import get_command

from archiver.cli.app import whole
from archiver.config.explaining import variable
from archiver.config.settings import Settings, leaves
from archiver.config.values import duration_text, size_text

DOCS = Path(__file__).parent.parent / "docs"
BEGIN, END = "<!-- generated: keys -->", "<!-- end -->"


def cli() -> str:
    """All commands with their arguments and options."""
    program: Any = get_command(whole())
    lines = [
        "# Commands",
        "",
        "Generated from the commands by `tests/generate_docs.py`; `archiver COMMAND --help` says the same.",
        "`restore` is also a program of its own. Both take `--install-completion`, after which the shell",
        "completes commands and options: it writes to your shell's start file; `--show-completion` only",
        "prints what would be written.",
        "",
        *_section("archiver", "##", program),
    ]
    for name, command in _commands(program):
        lines += _section(f"archiver {name}", "##", command)
    return "\n".join(lines).rstrip() + "\n"


def _commands(program: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every command by its words; a group itself says nothing but what its commands say."""
    for name, command in program.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def _section(name: str, level: str, command: Any) -> list[str]:
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if _is_ours(parameter)]
    group = hasattr(command, "commands")
    usage = " ".join([name, "[OPTIONS]", *map(_shown, arguments), *(["COMMAND …"] if group else [])])
    lines = [f"{level} {name}", "", "```", usage, "```", "", inspect.cleandoc(command.help), ""]
    if arguments:
        lines += ["| argument | |", "|---|---|", *(f"| `{_shown(a)}` | {a.help} |" for a in arguments), ""]
    lines += ["| option | |", "|---|---|", *(f"| {_spelt(o)} | {o.help} |" for o in options), ""]
    return lines


def _is_ours(parameter: Any) -> bool:
    """Typer's own completion options are told in its words, which change with its version."""
    return parameter.param_type_name == "option" and not parameter.name.endswith("_completion")


def _shown(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    name = name if argument.required else f"[{name}]"
    return f"{name}…" if argument.nargs == -1 else name


def _spelt(option: Any) -> str:
    value = "" if option.metavar is None else f" {option.metavar}"
    return ", ".join(f"`{spelling}{value}`" for spelling in (*option.opts, *option.secondary_opts))


def keys() -> str:
    """All settings, a table for each section."""
    lines: list[str] = []
    sections: dict[str, list[str]] = {}
    for key, field in leaves():
        row = f"| `{'.'.join(key[1:])}` | {_default(field)} | `{variable(key)}` | {_meaning(field)} |"
        sections.setdefault(key[0], []).append(row)
    for section, rows in sections.items():
        model: Any = Settings.model_fields[section].annotation
        lines += [f"### [{section}]", "", inspect.cleandoc(model.__doc__ or ""), ""]
        lines += ["| key | default | variable | |", "|---|---|---|---|", *rows, ""]
    return "\n".join(lines)


def _default(field: Any) -> str:
    value = field.default
    if value in (None, ()):
        return "unset"
    if isinstance(value, timedelta):
        return f"`{duration_text(value)}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, int) and any("size_text" in str(part) for part in (*field.metadata, field)):
        return f"`{size_text(value)}`"
    return f"`{value}`"


def _meaning(field: Any) -> str:
    words = {word for word in get_args(field.annotation) if isinstance(word, str)}
    if words:
        return f"{field.description} One of {', '.join(f'`{w}`' for w in sorted(words))}."
    return str(field.description)


def rendered() -> dict[Path, str]:
    """Each file and what it has to say."""
    configuration = DOCS / "CONFIGURATION.md"
    text = configuration.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return {
        DOCS / "CLI.md": cli(),
        configuration: f"{before}{BEGIN}\n\n{keys()}\n{END}{after}",
    }


def drift() -> list[str]:
    """The differences between the files and what they have to say, as a unified diff."""
    found: list[str] = []
    for path, new in rendered().items():
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        found += difflib.unified_diff(
            old.splitlines(), new.splitlines(), f"docs/{path.name}", "generated", lineterm=""
        )
    return found


def main(check: bool) -> int:
    if check:
        found = drift()
        print("\n".join(found))
        return 1 if found else 0
    for path, new in rendered().items():
        path.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
