"""Remove the bundles of a run, or erase all of it; the note that says so comes first.

look   → what there is, whether it may be removed, and what will not be reached
remove → bundles and effects go, records stay
erase  → every version of everything goes but the tombstone
"""

from archiver.removing.erasing import Erased, erase
from archiver.removing.planning import Found, look
from archiver.removing.removal import Removed, remove
from archiver.removing.unreached import Unreached

__all__ = ["Erased", "Found", "Removed", "Unreached", "erase", "look", "remove"]
