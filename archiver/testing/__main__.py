"""`python -m archiver.testing module:function --times 20 --seed 7`: the kill test from a shell."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from archiver import jsonio
from archiver.errors import ArchiverError
from archiver.testing.harness import kill_at_random
from archiver.testing.points import KINDS


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit codes: 0 all ended as the uninterrupted run, 1 not all, 2 and above errors of the archiver."""
    asked = _parser().parse_args(arguments)
    say = _silent if asked.json else _line
    sys.path.insert(0, str(Path.cwd()))  # as `python file.py` and `python -m` have it
    try:
        report = kill_at_random(
            asked.agent,
            asked.times,
            asked.seed,
            points=asked.points,
            lose_disk=asked.lose_disk,
            store=asked.store,
            environment=dict(asked.environment),
            timeout=asked.timeout,
            tell=say,
            keep=asked.keep,
        )
    except ArchiverError as error:
        sys.stderr.write(f"error: {error}\n" + (f"next: {error.remedy}\n" if error.remedy else ""))
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    sys.stdout.write(
        jsonio.dumps(report.document()).decode() + "\n"
        if asked.json
        else "\n" + "\n".join(report.summary()) + "\n"
    )
    return 0 if report.ok else 1


def _parser() -> argparse.ArgumentParser:
    kinds = "\n".join(f"  {kind:<8}{what}" for kind, what in KINDS.items())
    parser = argparse.ArgumentParser(
        prog="python -m archiver.testing",
        description="Kill an agent at random points, resume it, and compare how it ends.",
        epilog=f"kinds of events:\n{kinds}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("agent", help="module:function or path.py:function")
    parser.add_argument("--times", type=int, default=20, help="kills (20)")
    parser.add_argument("--seed", type=int, default=1, help="what picks the points (1)")
    parser.add_argument(
        "--points",
        action="append",
        default=[],
        metavar="POINTS",
        help="one round with these deaths: fsync:12+act:3",
    )
    parser.add_argument("--lose-disk", action="store_true", help="only store and keys survive a death")
    parser.add_argument("--store", metavar="s3://BUCKET/PREFIX", help="in place of a folder")
    parser.add_argument(
        "--environment",
        action="append",
        default=[],
        type=_variable,
        metavar="NAME=VALUE",
        help="for the agent",
    )
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for one life (60)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="gets what is left of bad rounds")
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    return parser


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _silent(_: str) -> None:
    """Nothing but the report is wanted."""


if __name__ == "__main__":
    sys.exit(main())
