"""Hooks of harnesses: each call of one saves the session it is about, and never gets in its way."""
