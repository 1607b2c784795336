"""Real servers for tests, on free ports of this machine only; who starts one stops it."""
