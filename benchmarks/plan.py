"""`restore --plan` in a new process, on a local store with many runs.

    python benchmarks/plan.py [RUNS [CHECKPOINTS]]

1000 runs of 10 checkpoints by default; the planned run is one saved as people save, in a git work tree, so
that every probe has something to compare. Prints seconds on the clock and of the processor, git included, and
the ratio of the latter to an interpreter that only imports what a plan needs.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from archiver.archive import Given, Options, Source, archive
from archiver.config import load
from archiver.setup import initialise, open_setup

ROUNDS = 7
HERE = Path(__file__).parent
SAMPLE = next((HERE.parent / "examples" / "sample-run").glob("*.jsonl"))
PLAN = "import sys; from archiver.cli import restore_main; restore_main()"
IMPORTS = "import archiver.restore, archiver.cli.restore, archiver.setup, archiver.config"


def seconds(*command: str, codes: tuple[int, ...] = (0,)) -> tuple[float, float]:
    """On the clock and of the processor, the best of some rounds: what the machine does besides only adds."""
    clock = processor = float("inf")
    for _ in range(ROUNDS):
        started, used = time.perf_counter(), used_by_children()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        clock = min(clock, time.perf_counter() - started)
        processor = min(processor, used_by_children() - used)
        assert done.returncode in codes, done.stdout + done.stderr
    return clock, processor


def used_by_children() -> float:
    """Seconds of the processor that processes have used which have ended, with their own."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def work_tree(folder: Path) -> Path:
    """A repository with some hundred files and a lock file."""
    folder.mkdir()
    for number in range(300):
        (folder / f"module{number}.py").write_text(f"value = {number}\n", encoding="utf-8")
    (folder / "uv.lock").write_text("version = 1\n" * 2000, encoding="utf-8")
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-q", "-m", "Begin")):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@localhost", "-C", str(folder), *words],
            check=True,
        )
    return folder


def main(runs: int, checkpoints: int) -> None:
    with tempfile.TemporaryDirectory(prefix="archiver-bench-") as name:
        folder = Path(name)
        for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
            os.environ[variable] = str(folder / variable.lower())
        config = folder / "archiver.toml"
        initialise(str(folder / "store"), config, settings=load(), now=datetime.now(UTC))
        many = [str(HERE / "many_runs.py"), str(config), str(runs), str(checkpoints), "--newest-bundles"]
        subprocess.run([sys.executable, *many], check=True, capture_output=True)
        tree = work_tree(folder / "tree")
        session = folder / SAMPLE.name
        text = SAMPLE.read_text(encoding="utf-8").replace("/home/dev/price-feed", str(tree))
        session.write_text(text, encoding="utf-8")
        setup = open_setup(load(config), need="write")
        for _ in range(checkpoints):
            archive(Source(paths=(session,)), setup, options=Options(given=Given(run_id="planned")))
        clock, plan = seconds(
            sys.executable, "-c", PLAN, "planned", "--plan", "--config", str(config), codes=(0, 3, 7)
        )
        _, imports = seconds(sys.executable, "-c", IMPORTS)
        print(
            f"plan of one of {runs + 1} runs: {clock:.2f} s, {plan:.2f} s of the processor, "
            f"{plan / imports:.2f} x its imports alone"
        )


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    main(*[*given, *(1000, 10)[len(given) :]])
