"""The face of redaction: one `Redactor` goes through all that one save is made of."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from archiver import jsonio
from archiver.errors import RedactionUnavailableError, UsageError
from archiver.model import (
    Checkpoint,
    Items,
    LeftOut,
    Member,
    Transcript,
    TranscriptPart,
)
from archiver.progress import Progress, Silent
from archiver.redact.contents import Contents
from archiver.redact.credential_files import Credentials
from archiver.redact.exact import ExactMatcher, ExactValue
from archiver.redact.finder import Finder
from archiver.redact.growing import GrowingPass, Keeping, Means
from archiver.redact.inflate import Allowance, InflateLimits
from archiver.redact.members import COMMITS, MemberScan, blocks, state_opaque
from archiver.redact.objects import GitObject, ObjectScan, Refusal, ScannedObjects
from archiver.redact.parts import PartPass, Watch
from archiver.redact.reuse import Names
from archiver.redact.scanned import Scanned
from archiver.redact.scrub import ItemOpaque, Scrubber
from archiver.redact.standing import Standing
from archiver.redacted import Redacted, vouch
from archiver.scratch import Scratch
from archiver.transcripts import DIALECTS, get_dialect

if TYPE_CHECKING:
    from archiver.redact.carried import CarriedRedactor

_LONGEST_ID = 200


def new_key() -> bytes:
    """A fresh key for the placeholders of one run; it lives only inside sealed bundles."""
    return secrets.token_bytes(32)


class Redactor(Standing):
    """Replaces credentials in all that one run saves; the same secret has the same placeholder everywhere."""

    def __init__(
        self, finder: Finder, key: bytes, exact: Iterable[ExactValue], *, names: Names | None = None
    ) -> None:
        """Use `load`; with `names`, content that was scanned before is not scanned again."""
        super().__init__(finder, key, exact, names=names)
        self._dialect = "opaque"
        self._made: dict[int, Items] = {}
        self._scratch: Scratch | None = None
        self._scanned_before: Scanned | None = None
        self._left_last: list[LeftOut] = []
        """What the last scan left out."""

    def transcript(
        self,
        transcript: Transcript,
        scratch: Scratch,
        progress: Progress | None = None,
        watch: Watch | None = None,
        keeping: Keeping | None = None,
    ) -> Redacted[Transcript]:
        """Every part redacted and spooled; one that cannot be made safe is emptied, as the receipt says.

        `watch` lets others see the redacted items on the way, so that they need no pass of their own. With
        `keeping`, a transcript of one part that grows from save to save is not redacted again from its
        beginning; the watch is then that of `keeping`.
        """
        dialect = transcript.dialect if transcript.dialect in DIALECTS else self.text(transcript.dialect)
        transcript = transcript.model_copy(update={"dialect": dialect})
        self._dialect = dialect
        self._scratch = scratch
        progress = progress or Silent()
        if keeping is not None and self._grows(transcript):
            return vouch(self._grown(transcript, keeping, progress), self.receipt())
        return vouch(self._parts(transcript, scratch, progress, watch), self.receipt())

    def _grows(self, transcript: Transcript) -> bool:
        """Whether it is one growing part, and nothing that was found before it would be counted with it."""
        return (
            len(transcript.parts) == 1
            and transcript.parts[0].media != "raw"
            and transcript.parts[0].items.growing is not None
            and not self._ledger.total
        )

    def _grown(self, transcript: Transcript, keeping: Keeping, progress: Progress) -> Transcript:
        part = transcript.parts[0]
        frame = jsonio.dumps([part.name, part.header, part.items_at, part.nested_at, part.media]).decode()
        about = self.fingerprint("transcript", transcript.dialect, self._ledger.key.hex(), frame)
        opaque = get_dialect(transcript.dialect).opaque
        means = Means(self._finder, self._values.given, self._clean, self._names, opaque, progress)
        framed = self._frame(self._scrubber, part).model_copy(update={"segments": ()})
        made = GrowingPass(means, keeping, about).redact(framed, self._ledger)
        self._keep_names()
        self._made[id(made.items)] = made.items
        return transcript.model_copy(update={"parts": (made,)})

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
        other = Redactor(self._finder, self._ledger.key, self._values.given)
        return jsonio.loads(other._document(jsonio.dumps(value)))

    def members(
        self,
        members: Redacted[tuple[Member, ...]],
        scratch: Scratch,
        scanned: Scanned | None = None,
    ) -> Redacted[tuple[Member, ...]]:
        """The last scan: a member with a finding is rewritten, or left out where that cannot be done.

        What only the scan of one member finds is searched for in all of them. `scanned` knows what earlier
        saves of this process found clean, and learns what this one does. Where members had to be made anew,
        another call takes the place of the one before.
        """
        self._left_out[:] = [
            one for one in self._left_out if all(one is not last for last in self._left_last)
        ]
        self._left_last.clear()
        if scanned is not None:
            scanned.begin(self.fingerprint("members", self._dialect))
            self._scanned_before = scanned
        known = self._known()
        scrubber = Scrubber(self._finder, known, self._ledger, clean=self._clean, names=self._names)
        kept = self._scanned(members.value, scrubber, scratch)
        new = sorted(set(self._known().values).difference(known.values))
        if new:
            again = Scrubber(self._finder, ExactMatcher((), new), self._ledger, rules=False)
            kept = self._scanned(kept, again, scratch)
        if scanned is not None:
            scanned.end(kept, members.value, self.mark())
        self._keep_names()
        return vouch(kept, self.receipt())

    def carried(
        self,
        scratch: Scratch,
        *,
        credentials: Credentials = "leave-out",
        limits: InflateLimits = InflateLimits(),  # noqa: B008 - immutable
    ) -> CarriedRedactor:
        """What redacts the files of one workspace; the last scan knows what it has scanned."""
        from archiver.redact.carried import CarriedRedactor, Shared  # only who carries a workspace needs it

        shared = Shared(
            self._finder,
            self._ledger,
            self._values,
            self._later,
            self._vouched,
            self._left_out,
            self.learn,
            self._clean,
        )
        return CarriedRedactor(shared, scratch, credentials=credentials, limits=limits)

    def git_objects(
        self, objects: Iterable[GitObject], *, credentials: Credentials = "leave-out"
    ) -> ScannedObjects | Refusal:
        """Scan the objects of a bundle of git: the proof that it may be carried, or why it may not.

        A refusal is named in the receipt.
        """
        known = self._values.matcher(self._ledger)
        scrubber = Scrubber(self._finder, known, self._ledger, clean=self._clean)
        scan = ObjectScan(Contents(scrubber, Allowance()), leave_out=credentials == "leave-out")
        made = scan.all_of(objects, self._values.count(self._ledger))
        if isinstance(made, Refusal):
            self._left_out.append(LeftOut(member=COMMITS, reason=made.reason, rules=made.rules))
        return made

    def accept_commits(self, scanned: ScannedObjects, sha256: str) -> None:
        """Have the last scan take the bundle of git with this digest: all its objects were scanned."""
        self._vouched.add_commits(sha256, scanned.known)

    def _scanned(
        self, members: tuple[Member, ...], scrubber: Scrubber, scratch: Scratch
    ) -> tuple[Member, ...]:
        opaque = get_dialect(self._dialect).opaque
        before = self._scanned_before

        def known(member: Member) -> bool:
            return before is not None and before.has(member, self._later, opaque)

        scan = MemberScan(scrubber, opaque, scratch, vouched=self._is_vouched, known=known)
        kept = tuple(made for member in members if (made := scan.scan(member)) is not None)
        self._left_out.extend(scan.left_out)
        self._left_last += scan.left_out
        return kept

    def _is_vouched(self, member: Member) -> bool:
        """True for content that was scanned in this save, and in which nothing stands that came later."""
        if member.path == COMMITS:
            known = self._vouched.commits(member.sha256)
            return known is not None and self._later.scrubber_since(known) is None
        known = self._vouched.known(member.sha256)
        if known is None:
            return False
        scrubber = self._later.scrubber_since(known)
        if scrubber is not None and self._later.holds(blocks(member), scrubber):
            return False
        self._vouched.add(member.sha256, self._values.count(self._ledger))
        return True


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
