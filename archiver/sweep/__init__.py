"""Completed runs on disk, archived on schedule: find → is it complete → is it new → save → remember."""
