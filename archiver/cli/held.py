"""What `hold` and `release` have in common: the call, and what is said of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archiver.cli import output

if TYPE_CHECKING:
    from archiver.holding import Changed


def say(done: Changed, verb: str, as_json: bool) -> None:
    """A document, one line for a program, or a sentence for a person; warnings on standard error."""
    from archiver.cli.text import counted, size

    for warning in done.warnings:
        output.problem("warning", warning, None, style="1;33")
    if as_json:
        output.document(_document(done))
        return
    if not output.tty():
        output.row((done.run, done.objects, done.versions, done.changed, done.bytes))
        return
    objects = f"{counted(done.objects, 'object')} in {counted(done.versions, 'version')}"
    would = "would be " if done.dry_run else ""
    output.line(f"Run {done.run}: {objects} ({size(done.bytes)}), {done.changed} {would}{verb}.")
    if done.note:
        output.line(f"The note says: {done.note}.")


def _document(done: Changed) -> dict[str, Any]:
    return {
        "run": done.run,
        "dry_run": done.dry_run,
        "note": done.note or None,
        "objects": done.objects,
        "versions": done.versions,
        "changed": done.changed,
        "bytes": done.bytes,
        "warnings": list(done.warnings),
    }
