"""Saves on demand, each in a fork that says in its requests which process it is, so that it can be killed.

    python s3_saving.py CONFIG TRANSCRIPT

Reads a note a line; forks, saves run `r` with that note, and prints how the fork ended (its exit code, or the
signal as a negative number).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from archiver.archive import Given, Options, Source, archive
from archiver.config import load
from archiver.setup import open_setup


def save(config: Path, transcript: Path, run: str, note: str) -> None:
    options = Options(given=Given(run_id=run, note=note))
    archive(Source(paths=(transcript,)), open_setup(load(config), need="write"), options=options)


def main(config: Path, transcript: Path) -> None:
    # Once here, so that the forks need not load rules and libraries each.
    save(config, transcript, "warm", "warm")
    print("ready", flush=True)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            code = 70
            try:
                os.environ["AWS_SDK_UA_APP_ID"] = f"process-{os.getpid()}"
                save(config, transcript, "r", line.strip())
                code = 0
            finally:
                os._exit(code)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
