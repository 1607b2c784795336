"""Bring what waits in the spool into the store, run after run."""
