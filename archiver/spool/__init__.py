"""Sealed checkpoints on the local disk that are not in the store yet, and their delivery in order."""
