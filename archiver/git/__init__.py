"""Asking git about repositories that nobody trusts."""
