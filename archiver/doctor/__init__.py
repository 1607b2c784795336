"""What the store really enforces, and whether this configuration can rely on it."""

from archiver.doctor.check import Check, Verdict, exit_code, fencing
from archiver.doctor.examine import examine

__all__ = ["Check", "Verdict", "examine", "exit_code", "fencing"]
