"""The library face: a run inside the loop of an agent, its effects, its background writer."""
