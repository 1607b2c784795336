"""A configuration made real: the store, the keys and the trusted writers that every operation works with."""

from archiver.setup.initialise import Initialised, initialise
from archiver.setup.keys import Keys, make_keys
from archiver.setup.opening import Setup, chosen_rules, known_values, open_setup

__all__ = [
    "Initialised",
    "Keys",
    "Setup",
    "chosen_rules",
    "initialise",
    "known_values",
    "make_keys",
    "open_setup",
]
