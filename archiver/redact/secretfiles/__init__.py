"""Values known to be secret, from the files in which tools and people keep them."""

from archiver.redact.secretfiles.gather import named, well_known

__all__ = ["named", "well_known"]
