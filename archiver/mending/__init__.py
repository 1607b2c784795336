"""Transcript files without a store: what is invalid about them, and mended ones in their native form."""

from archiver.mending.checking import Checked, Finding, check
from archiver.mending.mending import Change, Mended, mend

__all__ = ["Change", "Checked", "Finding", "Mended", "check", "mend"]
