"""The face of redaction: one `Redactor` goes through all that one save is made of."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from archiver import jsonio
from archiver.errors import RedactionUnavailableError
from archiver.model import Checkpoint, LeftOut, Member, Receipt, Transcript, TranscriptPart
from archiver.progress import Progress, Silent
from archiver.redact import exact as exact_values
from archiver.redact import rules
from archiver.redact.engine import ENGINE
from archiver.redact.exact import ExactMatcher, ExactValue
from archiver.redact.finder import Finder
from archiver.redact.ledger import Ledger
from archiver.redact.members import MemberScan, state_opaque
from archiver.redact.parts import PartPass
from archiver.redact.scrub import Clean, Scrubber, never
from archiver.redacted import Redacted, vouch
from archiver.scratch import Scratch
from archiver.transcripts import get_dialect

_LONGEST_ID = 200


def new_key() -> bytes:
    """A fresh key for the placeholders of one run; it lives only inside sealed bundles."""
    return secrets.token_bytes(32)


class Redactor:
    """Replaces credentials in all that one run saves; the same secret has the same placeholder everywhere."""

    def __init__(self, finder: Finder, key: bytes, exact: Iterable[ExactValue]) -> None:
        """Use `load`."""
        self._finder = finder
        self._ledger = Ledger(key)
        registered = list(exact)
        self._too_short = tuple(
            sorted({known.name for known in registered if not exact_values.searchable(known.value)})
        )
        self._registered = tuple(
            known.value.encode("utf-8", "surrogatepass")
            for known in registered
            if exact_values.searchable(known.value)
        )
        self._exact = ExactMatcher(self._registered)
        self._clean: Clean = {}
        self._scrubber = Scrubber(finder, self._exact, self._ledger, clean=self._clean)
        self._left_out: list[LeftOut] = []
        self._dialect = "opaque"

    @classmethod
    def load(
        cls, key: bytes, *, exact: Iterable[ExactValue] = (), rule_files: Iterable[Path] = ()
    ) -> Redactor:
        """Load the rules and the engine; raises `RedactionUnavailableError` when either does not load."""
        return cls(Finder(rules.load(rule_files)), key, exact)

    def transcript(
        self, transcript: Transcript, scratch: Scratch, progress: Progress | None = None
    ) -> Redacted[Transcript]:
        """Every part redacted and spooled; one that cannot be made safe is emptied, as the receipt says."""
        self._dialect = transcript.dialect
        opaque = get_dialect(transcript.dialect).opaque
        work = PartPass(self._scrubber, opaque, scratch, progress or Silent())
        parts = [self._part(work, part) for part in transcript.parts]
        matcher = self._found()
        if matcher:
            again = Scrubber(self._finder, matcher, self._ledger, rules=False)
            parts = [work.again(part, again) for part in parts]
        self._left_out.extend(work.left_out)
        return vouch(transcript.model_copy(update={"parts": tuple(parts)}), self.receipt())

    def _part(self, work: PartPass, part: TranscriptPart) -> TranscriptPart:
        name = self.text(part.name)
        header = self._value(part.header, f"transcript {name} header")
        return work.redact(part.model_copy(update={"name": name, "header": header}))

    def checkpoint(self, checkpoint: Checkpoint) -> Redacted[Checkpoint]:
        """All fields except the transcripts' items, which are redacted already."""
        transcripts = {
            "transcript": checkpoint.transcript,
            "full_transcript": checkpoint.full_transcript,
        }
        document = checkpoint.document(exclude=set(transcripts))
        matcher = ExactMatcher((*self._registered, *self._searchable()))
        scrubber = Scrubber(self._finder, matcher, self._ledger)
        text = jsonio.dumps(document)
        changed = scrubber.json(text, "checkpoint", state_opaque)
        if changed == text:
            return vouch(checkpoint, self.receipt())
        redacted = _short_ids(jsonio.loads(changed), document, scrubber)
        try:
            made = Checkpoint.model_validate({**redacted, **transcripts})
        except ValidationError as error:
            raise RedactionUnavailableError(
                f"the checkpoint is not valid after redaction: {error.error_count()} fields",
                remedy="a registered secret equals a field of fixed form; do not register it",
            ) from error
        return vouch(made, self.receipt())

    def text(self, text: str) -> str:
        """One text with its secrets replaced."""
        data = text.encode("utf-8", "surrogatepass")
        changed = self._scrubber.text(data, "text")
        return text if changed is data else changed.decode("utf-8", "surrogatepass")

    def members(
        self, members: Redacted[tuple[Member, ...]], scratch: Scratch
    ) -> Redacted[tuple[Member, ...]]:
        """The last scan: a member with a finding is rewritten, or left out where that cannot be done."""
        matcher = ExactMatcher((*self._registered, *self._searchable()))
        scrubber = Scrubber(self._finder, matcher, self._ledger, clean=self._clean)
        scan = MemberScan(scrubber, get_dialect(self._dialect).opaque, scratch)
        kept = tuple(made for member in members.value if (made := scan.scan(member)) is not None)
        self._left_out.extend(scan.left_out)
        return vouch(kept, self.receipt())

    def receipt(self) -> Receipt:
        """All that was found so far."""
        loaded = self._finder.rules
        return Receipt(
            engine=ENGINE,
            rules_version=loaded.version,
            rules=len(loaded.rules),
            findings=self._ledger.findings(),
            left_out=tuple(self._left_out),
            too_short=self._too_short,
        )

    def _value(self, value: Any, place: str) -> Any:
        if value is None:
            return None
        text = jsonio.dumps(value)
        changed = self._scrubber.json(text, place, never)
        return value if changed is text else jsonio.loads(changed)

    def _searchable(self) -> tuple[bytes, ...]:
        return tuple(filter(exact_values.safe_to_search, self._ledger.values))

    def _found(self) -> ExactMatcher:
        """The search for values found by rules; registered ones were searched for in the first pass."""
        known = set(self._registered)
        return ExactMatcher(value for value in self._searchable() if value not in known)


def _short_ids(redacted: Any, before: Any, scrubber: Scrubber) -> Any:
    """Ids stay usable as names: one that grew too long becomes a placeholder and nothing else."""
    for name in ("run_id", "task_id"):
        if len(redacted[name]) > _LONGEST_ID:
            redacted[name] = scrubber.whole(before[name], f"checkpoint $.{name}")
    return redacted
