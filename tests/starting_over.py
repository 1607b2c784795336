"""A store in a folder and what its machine remembers, put back as they were before each of many deaths.

Whoever kills at one step after the other needs it: what the dead leave, and each run, audit line or empty
folder more, makes the next child do more steps, often as many as its kill comes later, and no child ever gets
through.
"""

from __future__ import annotations

import shutil
from pathlib import Path

NAMES = ("home", "store")


class Beginning:
    """The two folders beside a configuration as they are now."""

    def __init__(self, config: Path) -> None:
        self._root = config.parent
        for name in NAMES:
            shutil.copytree(self._root / name, self._root / "beginning" / name)

    def again(self) -> None:
        """Put them back; a setup or store that is open must be opened anew."""
        for name in NAMES:
            shutil.rmtree(self._root / name)
            shutil.copytree(self._root / "beginning" / name, self._root / name)
