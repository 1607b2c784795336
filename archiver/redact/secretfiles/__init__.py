"""Values known to be secret, from the files in which tools and people keep them."""

from archiver.redact.secretfiles.gather import MOST_SECRETS, named, values_of, well_known
from archiver.redact.secretfiles.reading import MAX_FILE, UnusableFileError, decoded

__all__ = ["MAX_FILE", "MOST_SECRETS", "UnusableFileError", "decoded", "named", "values_of", "well_known"]
