"""What stands behind all redaction of one save: the rules, the values that are known, what was found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Self

from archiver.errors import RedactionUnavailableError
from archiver.model.receipt import Cut, Finding, LeftOut, Receipt, RuleFile
from archiver.redact import exact as exact_values
from archiver.redact import rules
from archiver.redact.engine import ENGINE
from archiver.redact.exact import ExactMatcher, ExactValue
from archiver.redact.finder import Finder
from archiver.redact.known import KnownValues
from archiver.redact.later import Later, Mark
from archiver.redact.ledger import KNOWN, Ledger
from archiver.redact.reuse import Names, fingerprint, own_key, shared_names
from archiver.redact.ruleset import Chosen
from archiver.redact.scrub import FLOOD, Clean, Scrubber
from archiver.redact.vouched import Vouched

_ABOUT_KNOWN: Final = "a value that was named as secret, or its copy"
_ABOUT_FLOOD: Final = "a text with more possible credentials than are looked at one by one"


class Standing:
    """Knows what is secret, and says what was found."""

    def __init__(
        self, finder: Finder, key: bytes, exact: Iterable[ExactValue], *, names: Names | None = None
    ) -> None:
        """With `names`, content that was scanned before is not scanned again."""
        self._names = names
        self._finder = finder
        self._ledger = Ledger(key)
        self._values = KnownValues(exact)
        self._clean: Clean = {}
        self._scrubber = self._by_registered()
        self._vouched = Vouched()
        self._key = own_key() if names is None else names.key
        self._later = Later(finder, self._ledger, self._values, self._key)
        self._left_out: list[LeftOut] = []
        self._cut: tuple[Cut, ...] = ()

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

    def _by_registered(self) -> Scrubber:
        known = self._values.registered_alone()
        return Scrubber(self._finder, known, self._ledger, clean=self._clean, names=self._names)

    def learn(self, values: Iterable[ExactValue]) -> None:
        """Values that are known to be secret from now on, as if they had been registered."""
        if self._values.learn(values):
            self._scrubber = self._by_registered()

    def fingerprint(self, *about: str) -> str:
        """All that decides what a scan finds but its content: rules, engine, program, registered values.

        Values that rules found do not count (`mark` names them); `about` are settings that count too. It is
        keyed, so it says nothing, and is another one in every process of a user who keeps no names.
        """
        return fingerprint(self._key, self._finder.rules, self._values.registered, about)

    def mark(self) -> Mark:
        """Which values are known by now, by names that say nothing; for `grew_since`, in later saves too."""
        return self._later.mark()

    def grew_since(self, mark: Mark) -> bool:
        """Whether values are known that were not then: what was scanned then has to be searched for them."""
        return bool(self._later.new_since(mark))

    def search_again(self, blocks: Iterable[bytes], mark: Mark) -> bool:
        """Whether a content holds a value that is known by now and was not then; nothing is noted."""
        new = self._later.new_since(mark)
        return bool(new) and self._later.holds(blocks, self._later.scrubber(new))

    def _keep_names(self) -> None:
        if self._names is not None:
            self._names.save_in_time()

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
            too_short=self._values.too_short,
            unread=tuple(map(self._shown, self._values.unread)),
            cut=tuple(one.model_copy(update={"member": self._shown(one.member)}) for one in self._cut),
        )

    def _names_of(self, found: Iterable[Finding]) -> dict[str, str]:
        """What named the known values among the findings: a variable, a file, the caller; by fingerprint."""
        if all(finding.rule != KNOWN for finding in found):
            return {}
        return {
            self._ledger.fingerprint(exact_values.bytes_of(one)): f"the value of {self._shown(one.name)}"
            for one in self._values.given
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
        return self._values.matcher(self._ledger)
