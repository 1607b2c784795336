"""Folders and git states as they are on disk, and back."""
