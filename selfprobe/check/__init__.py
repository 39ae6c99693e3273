"""Can a script rely on these logs? Any Inspect log; those of the suite with the reason of each missing value."""
