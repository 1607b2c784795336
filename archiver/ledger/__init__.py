"""Intent and outcome of one effect as small sealed objects in the store.

    intent → create under a name that only its writer can tell → the effect → outcome

The intent is in the store before anything is done, so that whoever takes the run over sees it. A name that is
taken means that another copy of the same writer was first. What the ledger says stands beside checkpoints:
going back to an older one does not undo what was done.
"""

from archiver.ledger.entries import Found, Reading, demanded, known
from archiver.ledger.merging import begun, effect_of, happened, merged, unspent
from archiver.ledger.writing import Ledger, Sealed, Subject

__all__ = [
    "Found",
    "Ledger",
    "Reading",
    "Sealed",
    "Subject",
    "begun",
    "demanded",
    "effect_of",
    "happened",
    "known",
    "merged",
    "unspent",
]
