"""How a run goes on once its bundles have met their limit: with less of its outputs, as the policy says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from archiver.archive import Options
from archiver.errors import LimitExceededError
from archiver.model.limits import Limits


class Room:
    """Remembers that a run has met its limit; used by the thread that seals."""

    def __init__(self, limits: Limits, options: Callable[[], Options]) -> None:
        self._limits = limits
        self._options = options
        self._full = False

    def options(self) -> Options:
        """How the next checkpoint is saved."""
        made = self._options()
        return replace(made, full=True) if self._full else made

    def met(self, error: LimitExceededError) -> bool:
        """Whether to try once more: the run's limit was met just now, and its policy is not to refuse."""
        if self._full or not self._limits.may_go_on(error):
            return False
        self._full = True
        return True
