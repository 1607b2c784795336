"""Kill an agent at random points, resume it, and compare how it ends."""
