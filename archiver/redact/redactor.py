"""The face of redaction: one `Redactor` goes through all that one save is made of."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any, Self

from pydantic import ValidationError

from archiver import jsonio
from archiver.errors import RedactionUnavailableError, UsageError
from archiver.model import (
    Checkpoint,
    Cut,
    Finding,
    Items,
    LeftOut,
    Member,
    Receipt,
    RuleFile,
    Transcript,
    TranscriptPart,
)
from archiver.progress import Progress, Silent
from archiver.redact import exact as exact_values
from archiver.redact import rules
from archiver.redact.engine import ENGINE
from archiver.redact.exact import ExactMatcher, ExactValue
from archiver.redact.finder import Finder
from archiver.redact.ledger import KNOWN, Ledger
from archiver.redact.members import MemberScan, state_opaque
from archiver.redact.parts import PartPass, Watch
from archiver.redact.reuse import Names, shared_names
from archiver.redact.ruleset import Chosen
from archiver.redact.scrub import FLOOD, Clean, ItemOpaque, Scrubber
from archiver.redacted import Redacted, vouch
from archiver.scratch import Scratch
from archiver.transcripts import DIALECTS, get_dialect

_LONGEST_ID = 200
_ABOUT_KNOWN = "a value that was named as secret, or its copy"
_ABOUT_FLOOD = "a text with more possible credentials than are looked at one by one"


def new_key() -> bytes:
    """A fresh key for the placeholders of one run; it lives only inside sealed bundles."""
    return secrets.token_bytes(32)


class Redactor:
    """Replaces credentials in all that one run saves; the same secret has the same placeholder everywhere."""

    def __init__(
        self, finder: Finder, key: bytes, exact: Iterable[ExactValue], *, names: Names | None = None
    ) -> None:
        """Use `load`; with `names`, content that was scanned before is not scanned again."""
        self._names = names
        self._finder = finder
        self._ledger = Ledger(key)
        registered = self._given = tuple(exact)
        self._too_short = tuple(
            sorted({one.name for one in registered if not one.missing and not exact_values.searchable(one)})
        )
        self._unread = tuple(f"{one.name}: {one.missing}" for one in registered if one.missing)
        self._registered = tuple(
            exact_values.bytes_of(known) for known in registered if exact_values.searchable(known)
        )
        self._exact = exact_values.matcher_of(self._registered)
        self._matched = 0
        """Number of values found when the search was compiled."""
        self._clean: Clean = {}
        self._scrubber = Scrubber(finder, self._exact, self._ledger, clean=self._clean, names=names)
        self._left_out: list[LeftOut] = []
        self._cut: tuple[Cut, ...] = ()
        self._dialect = "opaque"
        self._made: dict[int, Items] = {}
        self._scratch: Scratch | None = None

    @classmethod
    def load(
        cls,
        key: bytes,
        *,
        exact: Iterable[ExactValue] = (),
        chosen: Chosen = Chosen(),  # noqa: B008 - immutable
        reuse: bool = False,
    ) -> Self:
        """Load the rules and the engine; raises `RedactionUnavailableError` when either does not load.

        `reuse`: what this user's processes found free of secrets before, by the same rules and values, is not
        scanned again.
        """
        made = rules.load(chosen)
        try:
            return cls(Finder.of(made), key, exact, names=shared_names() if reuse else None)
        except RedactionUnavailableError as error:
            raise rules.blamed(made) or error from error

    def transcript(
        self,
        transcript: Transcript,
        scratch: Scratch,
        progress: Progress | None = None,
        watch: Watch | None = None,
    ) -> Redacted[Transcript]:
        """Every part redacted and spooled; one that cannot be made safe is emptied, as the receipt says.

        `watch` lets others see the redacted items on the way, so that they need no pass of their own.
        """
        dialect = transcript.dialect if transcript.dialect in DIALECTS else self.text(transcript.dialect)
        transcript = transcript.model_copy(update={"dialect": dialect})
        self._dialect = dialect
        self._scratch = scratch
        return vouch(self._parts(transcript, scratch, progress or Silent(), watch), self.receipt())

    def _parts(
        self, transcript: Transcript, scratch: Scratch, progress: Progress, watch: Watch | None
    ) -> Transcript:
        opaque = get_dialect(transcript.dialect).opaque
        work = PartPass(self._scrubber, opaque, scratch, progress, watch)
        parts = [self._part(work, number, part) for number, part in enumerate(transcript.parts)]
        if self._ledger.count:
            again = Scrubber(self._finder, self._known(), self._ledger, rules=False, names=self._names)
            parts = [work.again(number, part, again) for number, part in enumerate(parts)]
        self._keep_names()
        self._left_out.extend(work.left_out)
        self._made |= {id(part.items): part.items for part in parts}
        return transcript.model_copy(update={"parts": tuple(parts)})

    def _part(self, work: PartPass, number: int, part: TranscriptPart) -> TranscriptPart:
        framed = self._frame(self._scrubber, part)
        return work.redact(number, framed.model_copy(update={"segments": ()}))

    def _frame(self, scrubber: Scrubber, part: TranscriptPart) -> TranscriptPart:
        """A part with all redacted but its items."""
        name = _text(scrubber, part.name)
        opaque = get_dialect(self._dialect).opaque
        header = _value(scrubber, part.header, f"transcript {name} header", opaque)
        places = {
            field: tuple(_text(scrubber, key) if isinstance(key, str) else key for key in path)
            for field, path in (("items_at", part.items_at), ("nested_at", part.nested_at))
        }
        return part.model_copy(update={"name": name, "header": header, **places})

    def checkpoint(self, checkpoint: Checkpoint) -> Redacted[Checkpoint]:
        """All fields; the items of `transcript` are those that `transcript` made, and stay as they are.

        Raises `RedactionUnavailableError` for items it has never seen.
        """
        for part in checkpoint.transcript.parts:
            if id(part.items) not in self._made and any(True for _ in part.items.blocks()):
                raise RedactionUnavailableError(
                    "the checkpoint holds items of a transcript that were not redacted",
                    remedy="give it the transcript that Redactor.transcript made",
                )
        return self._checkpoint(checkpoint, self._full(checkpoint.full_transcript))

    def settled(self, checkpoint: Redacted[Checkpoint]) -> Redacted[Checkpoint]:
        """A redacted checkpoint once more, with what was found since; no items are read."""
        return self._checkpoint(checkpoint.value, checkpoint.value.full_transcript)

    def _checkpoint(self, checkpoint: Checkpoint, full: Transcript | None) -> Redacted[Checkpoint]:
        document = checkpoint.document(exclude={"transcript", "full_transcript"})
        before = jsonio.dumps(document)
        changed = self._document(before)
        transcripts = {
            "transcript": self._framed(checkpoint.transcript),
            "full_transcript": full and self._framed(full),
        }
        if changed == before and all(made is getattr(checkpoint, name) for name, made in transcripts.items()):
            return vouch(checkpoint, self.receipt())
        redacted = self._short_ids(jsonio.loads(changed), document)
        try:
            made = Checkpoint.model_validate({**redacted, **transcripts})
        except ValidationError as error:
            raise RedactionUnavailableError(
                f"the checkpoint is not valid after redaction: {error.error_count()} fields",
                remedy="a registered secret equals a field of fixed form; do not register it",
            ) from error
        return vouch(made, self.receipt())

    def _framed(self, transcript: Transcript) -> Transcript:
        """A transcript whose names and headers are searched for what was found since."""
        scrubber = Scrubber(self._finder, self._known(), self._ledger, rules=False)
        parts = tuple(self._frame(scrubber, part) for part in transcript.parts)
        unchanged = all(
            (one.name, one.items_at, one.nested_at) == (other.name, other.items_at, other.nested_at)
            and one.header is other.header
            for one, other in zip(parts, transcript.parts, strict=True)
        )
        return transcript if unchanged else transcript.model_copy(update={"parts": parts})

    def _document(self, text: bytes) -> bytes:
        """A document redacted, and once more for values that were found behind their first occurrence."""
        found = -1
        while found != self._ledger.count:
            found = self._ledger.count
            text = Scrubber(self._finder, self._known(), self._ledger).json(text, "checkpoint", state_opaque)
        return text

    def _full(self, full: Transcript | None) -> Transcript | None:
        """A whole transcript that came with the checkpoint, which the pass over `transcript` did not see."""
        if full is None:
            return None
        if self._scratch is None:
            raise UsageError(
                "a checkpoint with a full transcript is redacted after its transcript",
                remedy="call Redactor.transcript first",
            )
        return self._parts(full, self._scratch, Silent(), None)

    def _short_ids(self, redacted: Any, before: Any) -> Any:
        """Ids stay usable as names: one that grew too long becomes a placeholder and nothing else."""
        for name in ("run_id", "task_id"):
            if len(redacted[name]) > _LONGEST_ID:
                redacted[name] = self._scrubber.whole(before[name], f"checkpoint $.{name}")
        return redacted

    def text(self, text: str) -> str:
        """One text with its secrets replaced."""
        return _text(self._scrubber, text)

    def alone(self, value: Any) -> Any:
        """A JSON value redacted by itself: what was found elsewhere does not count, and nothing is noted.

        So the same value gives the same, whatever else the run holds.
        """
        other = Redactor(self._finder, self._ledger.key, self._given)
        return jsonio.loads(other._document(jsonio.dumps(value)))

    def members(
        self, members: Redacted[tuple[Member, ...]], scratch: Scratch
    ) -> Redacted[tuple[Member, ...]]:
        """The last scan: a member with a finding is rewritten, or left out where that cannot be done.

        What only the scan of one member finds is searched for in all of them.
        """
        known = self._known()
        scrubber = Scrubber(self._finder, known, self._ledger, clean=self._clean, names=self._names)
        kept = self._scanned(members.value, scrubber, scratch)
        new = sorted(set(self._known().values).difference(known.values))
        if new:
            again = Scrubber(self._finder, ExactMatcher((), new), self._ledger, rules=False)
            kept = self._scanned(kept, again, scratch)
        self._keep_names()
        return vouch(kept, self.receipt())

    def _keep_names(self) -> None:
        if self._names is not None:
            self._names.save_in_time()

    def _scanned(
        self, members: tuple[Member, ...], scrubber: Scrubber, scratch: Scratch
    ) -> tuple[Member, ...]:
        scan = MemberScan(scrubber, get_dialect(self._dialect).opaque, scratch)
        kept = tuple(made for member in members if (made := scan.scan(member)) is not None)
        self._left_out.extend(scan.left_out)
        return kept

    def note_cuts(self, cuts: tuple[Cut, ...]) -> None:
        """Have the receipt name what limits had no room for."""
        self._cut = cuts

    def receipt(self) -> Receipt:
        """All that was found so far; places and names are free of every value known by now."""
        loaded = self._finder.rules
        found = self._ledger.findings()
        about = {KNOWN: _ABOUT_KNOWN, FLOOD: _ABOUT_FLOOD}
        for rule in {finding.rule for finding in found}.difference(about):
            about[rule] = loaded.rules[loaded.index(rule)].about
        known = self._names_of(found)
        findings = (
            finding.model_copy(
                update={
                    "about": (finding.rule == KNOWN and known.get(finding.fingerprint))
                    or about[finding.rule],
                    "places": tuple(map(self._shown, finding.places)),
                }
            )
            for finding in found
        )
        left_out = (left.model_copy(update={"member": self._shown(left.member)}) for left in self._left_out)
        return Receipt(
            engine=ENGINE,
            rules_version=loaded.version,
            rules=len(loaded.rules),
            disabled_rules=loaded.disabled,
            rule_files=tuple(
                RuleFile(name=self._shown(name), sha256=digest) for name, digest in loaded.files
            ),
            findings=tuple(findings),
            left_out=tuple(left_out),
            too_short=self._too_short,
            unread=tuple(map(self._shown, self._unread)),
            cut=tuple(one.model_copy(update={"member": self._shown(one.member)}) for one in self._cut),
        )

    def _names_of(self, found: Iterable[Finding]) -> dict[str, str]:
        """What named the known values among the findings: a variable, a file, the caller; by fingerprint."""
        if all(finding.rule != KNOWN for finding in found):
            return {}
        return {
            self._ledger.fingerprint(exact_values.bytes_of(one)): f"the value of {self._shown(one.name)}"
            for one in self._given
            if exact_values.searchable(one)
        }

    def _shown(self, text: str) -> str:
        """A text of the receipt without any known value; this does not count as one more place."""
        known = self._known()
        if not known:
            return text
        data = text.encode("utf-8", "surrogatepass")
        spans = known.find(data)
        for start, end, _ in reversed(spans):
            data = data[:start] + b"*" + data[end:]
        return data.decode("utf-8", "surrogatepass") if spans else text

    def _known(self) -> ExactMatcher:
        """The search for all values known by now: registered ones, and found ones that are safe to search."""
        if self._matched != self._ledger.count:
            self._matched = self._ledger.count
            found = filter(exact_values.safe_to_search, self._ledger.values)
            self._exact = ExactMatcher(self._registered, found)
        return self._exact


def _text(scrubber: Scrubber, text: str) -> str:
    data = text.encode("utf-8", "surrogatepass")
    changed = scrubber.text(data, "text")
    return text if changed is data else changed.decode("utf-8", "surrogatepass")


def _value(scrubber: Scrubber, value: Any, place: str, opaque: ItemOpaque) -> Any:
    if value is None:
        return None
    text = jsonio.dumps(value)
    changed = scrubber.json(text, place, opaque)
    return value if changed is text else jsonio.loads(changed)
