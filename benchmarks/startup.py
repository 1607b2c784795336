"""How long `archiver --help` takes over a bare interpreter: best and median of many starts, in ms."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

ARCHIVER = Path(sys.executable).with_name("archiver")
RUNS = 25


def starts(command: list[str]) -> list[float]:
    """Milliseconds of each start."""
    found = []
    for _ in range(RUNS):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        found.append((time.perf_counter() - started) * 1000)
    return found


def main() -> None:
    bare = starts([sys.executable, "-c", "pass"])
    print(f"{'bare interpreter':24} best {min(bare):6.1f}   median {statistics.median(bare):6.1f}")
    for words in (["--help"], ["archive", "--help"], ["restore", "--help"]):
        found = starts([str(ARCHIVER), *words])
        name = " ".join(("archiver", *words))
        over = (min(found) - min(bare), statistics.median(found) - statistics.median(bare))
        print(
            f"{name:24} best {min(found):6.1f}   median {statistics.median(found):6.1f}"
            f"   over bare {over[0]:6.1f} and {over[1]:6.1f}"
        )


if __name__ == "__main__":
    main()
