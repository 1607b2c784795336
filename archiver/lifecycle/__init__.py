"""Lifecycle rules of a bucket: those that the classes need, those that are there, and what they would do."""
