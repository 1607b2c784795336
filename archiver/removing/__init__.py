"""Remove the bundles of a run, or erase all of it; the note that says so comes first."""
