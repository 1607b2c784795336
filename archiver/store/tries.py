"""How often something is tried, with growing pauses between."""

from __future__ import annotations

import random
import time
from typing import Final

from archiver.errors import ArchiverError, StoreMissingError

_FIRST_PAUSE: Final = 0.25
_LONGEST_PAUSE: Final = 5.0


class Tries:
    """Those of one call: `attempts` in all, and no further one once `patience` seconds have passed."""

    def __init__(self, attempts: int, patience: float) -> None:
        self.failed = 0
        self._attempts = attempts
        self._end = time.monotonic() + patience

    def wait_after(self, error: ArchiverError) -> None:
        """Pause before the next attempt; raises `error` if there must be none, or it cannot help."""
        self.failed += 1
        late = self.failed >= self._attempts or time.monotonic() > self._end
        if late or isinstance(error, StoreMissingError):
            raise error
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (self.failed - 1))
        time.sleep(random.uniform(0.5, 1.0) * longest)  # noqa: S311 # so that many clients do not come at once
