"""What a save and a restore take in time and money, where nobody has measured better."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

MEASURED: Final = "2026-11"
"""When times were measured: `benchmarks/pipeline.py` and saves of small states, all stages, one core."""
PRICED: Final = "2025"
"""Of when the prices are: S3 Standard, us-east-1, list price, first 50 TB, without taxes."""
PUTS_OF_SAVE: Final = 3
"""Bundle, record and the hint for `list`."""
GETS_OF_RESTORE: Final = 3
"""Newest record, size of the bundle, and the bundle; a list of the records before is priced as a put."""
DAYS_KEPT: Final = 180
"""As long as the bundle of a run that failed or has not ended: the longest that one is kept by itself."""
INTERRUPTIONS_PER_HOUR: Final = -math.log(1 - 0.05) / 4
"""One run of four hours in twenty is interrupted."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds and US dollars of one save and one restore, by bytes of the state."""

    save_fixed: float = 0.15
    """Seconds of a save beside its bytes: packing, sealing, three requests. The first save of a process also
    loads the rules, which takes seconds, once."""
    save_rate: float = 45e6
    """Bytes a second of a save that has seen none of it before; one that has is faster."""
    restore_fixed: float = 1.0
    """Seconds of a restore beside its bytes: a program that starts, records, probes of freshness."""
    restore_rate: float = 300e6
    """Bytes a second."""
    packed: float = 0.16
    """Stored bytes for each byte of the state; of one that is compacted much less."""
    put: float = 0.005 / 1000
    """US dollars for a request that creates an object, or lists some."""
    get: float = 0.0004 / 1000
    """US dollars for a request that reads one."""
    month: float = 0.023 / 1e9
    """US dollars for a stored byte and month of 30 days."""

    def save_seconds(self, size: int) -> float:
        """How long a save of a state of `size` bytes takes."""
        return self.save_fixed + size / self.save_rate

    def restore_seconds(self, size: int) -> float:
        """How long a restore of it takes."""
        return self.restore_fixed + size / self.restore_rate

    def create_usd(self) -> float:
        """What the requests of one save cost."""
        return PUTS_OF_SAVE * self.put

    def store_usd(self, size: int, days: float = DAYS_KEPT) -> float:
        """What keeping its bundle costs."""
        return size * self.packed * self.month * days / 30

    def restore_usd(self) -> float:
        """What the requests of one restore cost; bytes leave a bucket for free within its region."""
        return self.put + GETS_OF_RESTORE * self.get
