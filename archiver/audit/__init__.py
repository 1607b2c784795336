"""Who opened, restored, accepted, resolved, claimed, rekeyed or exported what, why, and with which key.

note   → a line of the local file, always and first: without it the action is refused
       → an object in the store, one an action, where this role may write
finish → one object for all that was opened besides
"""

from archiver.audit.sessions import Session, note_session
from archiver.audit.writing import LOUD, finish, is_break_glass, note, who_and_why, within

__all__ = [
    "LOUD",
    "Session",
    "finish",
    "is_break_glass",
    "note",
    "note_session",
    "who_and_why",
    "within",
]
