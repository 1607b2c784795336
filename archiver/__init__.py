"""Save, redact, seal and restore the smallest sufficient state of an AI-agent run."""

__version__ = "0.1.0"
