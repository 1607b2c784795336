"""What a store says about its runs, added up: for `archiver stats`.

records → what each run came to, whole or not → one sum
audit   → what people and sessions wrote down about them
"""

from archiver.statistics.gathering import Statistics, gather
from archiver.statistics.sums import Audited, Avoided, Sums, Timing

__all__ = ["Audited", "Avoided", "Statistics", "Sums", "Timing", "gather"]
