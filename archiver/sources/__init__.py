"""Where runs lie on disk, which of them are complete, and how each ended. Nothing is changed there."""
