"""What a save says of itself, free of credentials: errors, warnings and a callable's summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from archiver import freshness
from archiver.compact import Summarise, SummaryFacts
from archiver.errors import ArchiverError, RedactionUnavailableError
from archiver.model import Cut, Record
from archiver.redact import Redactor
from archiver.shellwords import command
from archiver.transcripts.reader import Dropped

MAX_CUTS: Final = 20
"""Outputs without room that a save warns of one by one; the receipt has all of them."""


def redacted_summary(summarise: Summarise | None, redactor: Redactor) -> Summarise | None:
    """The callable with its text redacted: what it sees is redacted, what it says may come from elsewhere."""
    if summarise is None:
        return None

    def safe(facts: SummaryFacts) -> str:
        return redactor.text(summarise(facts))

    return safe


@contextmanager
def clean_errors(load: Callable[[], Redactor]) -> Iterator[None]:
    """Messages name files, parts and ids; whatever of them is a credential is replaced there too."""
    try:
        yield
    except RedactionUnavailableError:
        raise
    except ArchiverError as error:
        clean = load()
        error.args = tuple(clean.text(part) if isinstance(part, str) else part for part in error.args)
        error.remedy = clean.text(error.remedy) if error.remedy else None
        raise


def warnings_of(record: Record, redactor: Redactor, dropped: Sequence[Dropped]) -> tuple[str, ...]:
    receipt = redactor.receipt()
    warnings = []
    if record.dialect == "opaque":
        warnings.append("the format of the transcript is not known: redacted, kept whole, not compacted")
    warnings += [
        f"{drop.part}: {drop.bytes} bytes dropped at the {drop.place} (line {drop.line}): {drop.reason}"
        for drop in dropped
    ]
    warnings += [f"{left.member} was left out: {left.reason}" for left in receipt.left_out]
    warnings += _cuts(receipt.cut)
    warnings += [
        f"the value of {name} is too short or too common to search for" for name in receipt.too_short
    ]
    if record.missing_recipients:
        missing = ", ".join(record.missing_recipients)
        warnings.append(
            f"sealed while KMS was away, and not to {missing}: `{command('archiver rekey', record.run, ())}` "
            "does that later"
        )
    warnings += freshness.unseen(record.probes)
    warnings += [f"what stands in {unread}; it was not searched for" for unread in receipt.unread]
    return tuple(map(redactor.text, warnings))


def _cuts(cuts: Sequence[Cut]) -> Iterator[str]:
    """What limits had no room for; of very many the first, and how many more there are."""
    yield from (one.said for one in cuts[:MAX_CUTS])
    if (more := len(cuts) - MAX_CUTS) > 0:
        yield f"{more} more outputs had no room; the receipt names them"
