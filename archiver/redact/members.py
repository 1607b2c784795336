"""The last scan: every packed member, once more, as it will lie in the bundle."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from archiver import jsonio
from archiver.model import LeftOut, Member
from archiver.redact import streams
from archiver.redact.file_forms import is_json
from archiver.redact.raw import RawPass
from archiver.redact.scrub import ItemOpaque, Scrubber
from archiver.scratch import Scratch
from archiver.transcripts.places import at

_BLOCK = 1 << 20
_JSON_LIMIT: Final = 64 << 20
_SNIFFED_LIMIT: Final = 8 << 20
_DIGESTS: Final = frozenset({"sha256", "output", "commit"})
_TRANSCRIPTS: Final = ("transcript/", "full/")
_UNSCANNED: Final = "its objects were not scanned, or not for all that is known to be secret by now"
_HELD: Final = frozenset({("transcript",), ("full_transcript",)})


_HEX = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NAMED_BY_DIGEST = re.compile(r"(?:artifacts|workspace/objects)/([0-9a-f]{64})")
COMMITS: Final = "workspace/git/commits.bundle"
_OF_WORKSPACE: Final = "workspace/"
_IDS: Final = frozenset({"sha256", "commit", "head", "base", "prerequisites", "commit_refs"})


def state_opaque(path: tuple[str | int, ...], item: Any) -> bool:
    """Digests and commits of a checkpoint, an effect or evidence, which no rule may change."""
    if (
        not path
        or path[-1] not in _DIGESTS
        or path[0] not in ("artifacts", "output", "workspace", "evidence")
    ):
        return False
    value = at(item, path)
    return isinstance(value, str) and _HEX.fullmatch(value) is not None


def workspace_opaque(path: tuple[str | int, ...], item: Any) -> bool:
    """Digests of files and ids of commits in the description and the tree of a workspace, likewise."""
    if _IDS.isdisjoint(path):
        return False
    value = at(item, path)
    return isinstance(value, str) and _HEX.fullmatch(value) is not None


def nobody(_member: Member) -> bool:
    """For members of which nothing was scanned before."""
    return False


class MemberScan:
    """Scans members and rewrites those that hold a secret."""

    def __init__(
        self,
        scrubber: Scrubber,
        opaque: ItemOpaque,
        scratch: Scratch,
        *,
        foreign: bool = False,
        vouched: Callable[[Member], bool] = nobody,
        known: Callable[[Member], bool] = nobody,
    ) -> None:
        """`foreign`: others made the members, so that lines may be no JSON whatever a name says.

        `vouched`: whether the content of a member was scanned in this save, and nothing is in it; `known`:
        whether it was in an earlier one under this very path.
        """
        self._vouched = vouched
        self._known = known
        self._foreign = foreign
        self._scrubber = scrubber
        self._opaque = opaque
        self._scratch = scratch
        self.left_out: list[LeftOut] = []

    def scan(self, member: Member) -> Member | None:
        """The member as it may be packed, or None when it has to be left out."""
        name = member.path.encode("utf-8", "surrogateescape")
        named = self._scrubber.text_edits(name)
        if named:
            shown = self._scrubber.text(name, "member name").decode("utf-8", "replace")
            rules = tuple(sorted({self._scrubber.rule_of(edit) for edit in named}))
            self.left_out.append(LeftOut(member=shown, reason="its name holds a credential", rules=rules))
            return None
        if self._known(member):
            return member
        digest = _NAMED_BY_DIGEST.fullmatch(member.path)
        scanned = member.path == COMMITS or (digest is not None and digest[1] == member.sha256)
        if scanned and self._vouched(member):
            return member
        if member.path == COMMITS and not self._foreign:
            self.left_out.append(LeftOut(member=COMMITS, reason=_UNSCANNED))
            return None
        made = self._content(member)
        if made is None or made is member or digest is None:
            return made
        reason = "it holds credentials, and its name is the digest of its content"
        self.left_out.append(LeftOut(member=member.path, reason=reason))
        return None

    def _content(self, member: Member) -> Member | None:
        if member.path.endswith(".jsonl") and not (self._foreign and _is_broken(member)):
            return self._lines(member)
        document = self._document(member)
        if document is not None:
            opaque = workspace_opaque if member.path.startswith(_OF_WORKSPACE) else self._of_state
            changed = self._scrubber.json(document, member.path, opaque)
            return member if changed is document else _in_memory(member, changed)
        return self._raw(member)

    def _of_state(self, path: tuple[str | int, ...], item: Any) -> bool:
        """As `state_opaque`, and in the header of a transcript's part what its dialect says."""
        if path[:1] in _HELD and path[1:2] == ("parts",) and path[3:4] == ("header",):
            return self._opaque(path[4:], at(item, path[:4]))
        return state_opaque(path, item)

    def _lines(self, member: Member) -> Member:
        opaque: ItemOpaque = state_opaque
        if member.path.startswith(_TRANSCRIPTS):
            opaque = self._opaque
        elif member.path.startswith(_OF_WORKSPACE):
            opaque = workspace_opaque
        if not any(True for block in line_blocks(member) for _ in self._scrubber.line_edits(block, opaque)):
            return member
        spool = self._scratch.spool("member")
        number = 1
        for block in line_blocks(member):
            self._scrubber.lines(block, number, member.path, opaque, spool.write)
            number += block.count(b"\n")
        made = spool.close()
        return Member(member.path, made.path, made.size, made.sha256, member.mode)

    def _document(self, member: Member) -> bytes | None:
        """The whole member when it is one JSON document of bearable size."""
        limit = _JSON_LIMIT if member.path.endswith(".json") else _SNIFFED_LIMIT
        if member.size > limit:
            return None
        data = member.source if isinstance(member.source, bytes) else member.source.read_bytes()
        if data[:64].lstrip()[:1] not in (b"{", b"["):
            return None
        try:
            jsonio.loads(data)
        except ValueError:
            return None
        return data

    def _raw(self, member: Member) -> Member | None:
        look = RawPass(self._scrubber, None, member.path)
        for chunk in blocks(member):
            look.feed(chunk)
        outcome = look.close()
        if not look.found and outcome.reason is None:
            return member
        work = RawPass(self._scrubber, self._scratch, member.path)
        for chunk in blocks(member):
            work.feed(chunk)
        outcome = work.close()
        if outcome.spooled is None:
            reason = outcome.reason or ""
            self.left_out.append(LeftOut(member=member.path, reason=reason, rules=outcome.rules))
            return None
        made = outcome.spooled
        return Member(member.path, made.path, made.size, made.sha256, member.mode)


def _is_broken(member: Member) -> bool:
    """True for lines that are not all JSON."""
    return not all(is_json(line) for block in line_blocks(member) for line in block.split(b"\n"))


def _in_memory(member: Member, data: bytes) -> Member:
    return Member(member.path, data, len(data), hashlib.sha256(data).hexdigest(), member.mode)


def blocks(member: Member) -> Iterator[bytes]:
    """The bytes of a member in blocks."""
    if isinstance(member.source, Path):
        with member.source.open("rb") as file:
            while block := file.read(_BLOCK):
                yield block
    else:
        yield from (member.source[at : at + _BLOCK] for at in range(0, member.size, _BLOCK))


def line_blocks(member: Member) -> Iterator[bytes]:
    """The bytes of a member in blocks of whole lines."""
    return whole_lines(blocks(member))


def whole_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The bytes in blocks that end with a line, but for the last, and between which no stream goes on."""
    held: list[bytes] = []
    for chunk in chunks:
        held.append(chunk)
        if b"\n" not in chunk:
            continue
        block = b"".join(held)
        cut = streams.whole_streams(block[: block.rfind(b"\n") + 1])
        if cut:
            yield block[:cut]
        held = [block[cut:]]
    if rest := b"".join(held):
        yield rest
