"""Sealed checkpoints on the local disk that are not in the store yet, and their delivery in order.

spool = open_spool(setup)
waiting = spool.of("task-42", "task-42")
waiting.add(record, sealed, bundle, plain=True)     # durable when it returns
waiting.deliver()                                   # into the store, in the order of numbers, once
"""

from archiver.spool.entry import Entry
from archiver.spool.run import Delivery, Fork, RunSpool
from archiver.spool.spool import Depth, Spool, open_spool

__all__ = ["Delivery", "Depth", "Entry", "Fork", "RunSpool", "Spool", "open_spool"]
