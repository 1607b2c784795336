"""Kill an agent at random points, resume it, and compare how it ends with the uninterrupted run."""

from archiver.testing.harness import kill_at_random
from archiver.testing.place import Action, Place, World
from archiver.testing.points import Point
from archiver.testing.report import Death, Report, Round

__all__ = ["Action", "Death", "Place", "Point", "Report", "Round", "World", "kill_at_random"]
