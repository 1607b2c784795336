"""Intent and outcome of one effect as small sealed objects in the store."""
