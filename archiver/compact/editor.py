"""The edits of one part: most lines are copied as they are, touched ones are parsed and written anew."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from typing import Any

from archiver import jsonio
from archiver.compact.artifacts import Artifacts
from archiver.compact.notes import (
    MAX_STUB,
    Conclusion,
    Content,
    CutOutput,
    Reason,
    Stub,
    attachment,
    attachments,
    conclude,
    read_cut,
    read_stub,
)
from archiver.compact.options import CompactOptions, CompactReport
from archiver.compact.outline import BLOB, COPIES, NO_CALL, OUTPUT, REASONING, RESULT
from archiver.compact.plan import Plan
from archiver.compact.text import byte_length, head, tail
from archiver.model import Items
from archiver.transcripts.dialect import Dialect, ToolResult

_ROUNDED = re.compile(rb"[:,\[]-?[0-9.]+e[+][0-9]+[,\]}]")


class Editor:
    """Carries out the plan of one part."""

    def __init__(
        self,
        plan: Plan,
        dialect: Dialect,
        options: CompactOptions,
        artifacts: Artifacts,
        report: CompactReport,
    ) -> None:
        self.conclusions: dict[int, Conclusion] = {}
        """How the calls ended that the summary states."""
        self._plan = plan
        self._dialect = dialect
        self._options = options
        self._artifacts = artifacts
        self._report = report
        self.removed: dict[str, str | None] = {}
        """Ids of dropped items, with those of what they followed."""

    def blocks(self, items: Items, first: int = 0, upto: int | None = None) -> Iterator[bytes]:
        """The items from number `first` to before `upto` as blocks of whole lines, edited."""
        touched = self._plan.touched
        place = bisect_left(touched, first)
        for block in _until(items.blocks_from(first), None if upto is None else upto - first):
            count = block.count(b"\n")
            end = place
            while end < len(touched) and touched[end] < first + count:
                end += 1
            if end == place:
                yield block
            elif edited := self._edited(block, first, touched[place:end].tolist()):
                yield edited
            first += count
            place = end

    def conclude(self, items: Items, upto: int) -> None:
        """Read how the calls ended that the summary states, of results before item `upto`, which stay."""
        for item in sorted(self._plan.shown):
            if item < upto:
                line = next(items.blocks_from(item)).partition(b"\n")[0]
                self._show(jsonio.loads(line), item, self._plan.shown[item])

    def _edited(self, block: bytes, first: int, touched: list[int]) -> bytes:
        lines = block.split(b"\n")
        kept: list[bytes] = []
        start = 0
        for item in touched:
            kept += lines[start : item - first]
            start = item - first + 1
            line = self._line(lines[start - 1], item)
            if line is not None:
                kept.append(line)
        kept += lines[start:]
        return b"\n".join(kept)

    def _line(self, line: bytes, index: int) -> bytes | None:
        item = jsonio.loads(line)
        if index in self._plan.dropped:
            own, parent = self._dialect.link(item)
            if own is not None:
                self.removed[own] = parent
            self._report.items_dropped += 1
            self._report.reasoning_dropped += 1
            return None
        edited = self._edit(item, index)
        if edited is item:
            return line
        made = jsonio.again(edited)
        if _ROUNDED.search(made) is not None:
            # A number may have been too long for a fast reading: edit the exact one in the same way.
            made = jsonio.again(self._edit(jsonio.exact(line), index))
        return made + b"\r" if line.endswith(b"\r") else made

    def _edit(self, item: Any, index: int) -> Any:
        flags = self._plan.outline.flags[index]
        recent = self._plan.recent(index)
        edited = self._dialect.relinked(item, self.removed) if self.removed else item
        if flags & REASONING and not recent:
            edited = self._without_reasoning(edited)
        before = edited
        if flags & BLOB:
            edited = self._without_blobs(edited)
        if calls := self._plan.shown.get(index):
            self._show(edited, index, calls)
        if flags & (RESULT | OUTPUT | BLOB):
            edited = self._with_short_results(edited, index, recent=recent)
        if flags & COPIES and (edited is not before or not recent):
            edited = self._dialect.fold(edited)
            self._report.folded += 1
        return edited

    def _without_reasoning(self, item: Any) -> Any:
        left = self._dialect.without_reasoning(item)
        if left is None or left is item:
            return item
        self._report.reasoning_dropped += 1
        return left

    def _without_blobs(self, item: Any) -> Any:
        edited = item
        for blob in list(self._dialect.blobs(item)):
            if len(blob.data) >= self._options.blob_limit:
                note = attachment(*self._artifacts.blob(blob.media_type, blob.data))
                edited = self._dialect.replace_blob(edited, blob.path, note)
        return edited

    def _with_short_results(self, item: Any, index: int, *, recent: bool) -> Any:
        results = self._dialect.facts(item).results
        answers = Counter(result.call_id for result in results)
        edited = item
        for result, call in zip(results, self._plan.calls_answered(index), strict=True):
            if answers[result.call_id] > 1:
                continue
            unknown = call == NO_CALL  # nothing says what a stub of it would have to say
            text = self._cut(result, call) if recent or unknown else self._stub(result, call)
            if text is not None:
                edited = self._dialect.stub_result(edited, result.call_id, text)
        return edited

    def _cut(self, result: ToolResult, call: int) -> str | None:
        """Head and tail of an output over the limit; the whole becomes an artifact."""
        if byte_length(result.text) <= self._options.output_limit:
            return None
        self._report.outputs_cut += 1
        return str(
            CutOutput(
                head(result.text, self._options.head),
                tail(result.text, self._options.tail),
                self._kept(result, call),
            )
        )

    def _stub(self, result: ToolResult, call: int) -> str | None:
        """The stub of an old result, if it is shorter."""
        size = byte_length(result.text)
        if size <= self._options.small_result or read_stub(result.text) is not None:
            return None
        reason: Reason = "superseded" if self._plan.superseded[call] else "older"
        calls = self._plan.outline.calls
        stub = Stub(
            tool=calls.name(call),
            target=calls.label(call),
            conclusion=conclude(result.text, is_error=result.is_error),
            content=self._content(result, call, reason),
            reason=reason,
            turns=self._options.keep_turns if reason == "older" else 0,
        )
        text = str(stub)
        if byte_length(text) >= size or len(text) > MAX_STUB:
            return None
        self._report.stubs[reason] += 1
        return text

    def _content(self, result: ToolResult, call: int, reason: Reason) -> Content:
        """What a stub says of the content: of an output cut before, what was said then."""
        cut = read_cut(result.text)
        if cut is not None:
            return cut.content
        if reason == "older" and byte_length(result.text) > self._options.output_limit:
            return self._kept(result, call)
        return Content.of(result.text, tuple(attachments(result.text)))

    def _kept(self, result: ToolResult, call: int) -> Content:
        conclusion = conclude(result.text, is_error=result.is_error)
        calls = self._plan.outline.calls
        of = "a result without a call" if call == NO_CALL else f"{calls.name(call)} {calls.label(call)}"
        said = f"; {conclusion.last}" if conclusion.last else ""
        content = self._artifacts.text(result.text, f"{of}: {conclusion.status}{said}")
        held = (*content.artifacts, *attachments(result.text))
        return Content(content.size, content.sha256, tuple(dict.fromkeys(held)))

    def _show(self, item: Any, index: int, calls: list[int]) -> None:
        results = self._dialect.facts(item).results
        for result, call in zip(results, self._plan.calls_answered(index), strict=True):
            if call in calls:
                self.conclusions[call] = conclude(result.text, is_error=result.is_error)


def _until(blocks: Iterator[bytes], lines: int | None) -> Iterator[bytes]:
    """Blocks of whole lines, up to so many lines."""
    if lines is None:
        yield from blocks
        return
    while lines > 0 and (block := next(blocks, b"")):
        count = block.count(b"\n")
        if count > lines:
            end = 0
            for _ in range(lines):
                end = block.index(b"\n", end) + 1
            block = block[:end]
        lines -= count
        yield block
