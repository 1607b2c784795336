"""A batch job without a model: what is done is recorded, and is not done again after a kill.

archiver init                                   # once: a store and keys
python examples/batch_job.py --die-after 3      # kills itself after its third row
python examples/batch_job.py                    # goes on with the fourth
"""

from __future__ import annotations

import argparse
import os
import signal
from decimal import Decimal

import archiver

RATES = {"EUR": "1.08", "GBP": "1.27", "USD": "1"}
ORDERS = (
    ("A-17", "120.00", "EUR"),
    ("A-18", "80.50", "GBP"),
    ("A-19", "19.99", "USD"),
    ("A-20", "640.00", "EUR"),
    ("A-21", "5.25", "GBP"),
)


def convert(order: str, amount: str, currency: str) -> str:
    """The slow and costly part of a real job; what it returns has to have a form in JSON."""
    print(f"convert {order}")
    return str(round(Decimal(amount) * Decimal(RATES[currency]), 2))


def work(die_after: int) -> None:
    with archiver.run(
        "convert-orders",
        harness="batch-job 1",
        policy=archiver.Policy(profile="every-step", floor=0),  # it is small: a real run leaves this out
    ) as run:
        total = Decimal(0)
        for number, (order, amount, currency) in enumerate(ORDERS, 1):
            total += Decimal(run.step(f"order {order}", convert, order, amount, currency))
            if number == die_after:
                os.kill(os.getpid(), signal.SIGKILL)
        run.finish("succeeded")
    print(f"total {total} USD")


def main() -> None:
    options = argparse.ArgumentParser(description="A batch job that survives a kill.")
    options.add_argument("--die-after", type=int, default=0, metavar="ROWS", help="SIGKILL, to see it go on")
    work(options.parse_args().die_after)


if __name__ == "__main__":
    main()
