"""Other ways to read one text, each with a map back to it, so that a replacement lands in the text itself.

Three kinds: `views` reads a whole text without what nobody sees; `Coded` decodes the parts of a text to
which a trigger leads; `wrapped` joins lines. What was decoded is read again in the same ways.
"""

from archiver.redact.views.coded import Coded
from archiver.redact.views.mapped import Mapped, Reading, json_string
from archiver.redact.views.unseen import INVISIBLE, readings, views
from archiver.redact.views.wrapped import LINE_END, Wrapped, wrapped

__all__ = [
    "INVISIBLE",
    "LINE_END",
    "Coded",
    "Mapped",
    "Reading",
    "Wrapped",
    "json_string",
    "readings",
    "views",
    "wrapped",
]
