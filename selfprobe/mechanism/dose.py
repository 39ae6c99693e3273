"""Doses: lengths of a vector over the mean length of the states to which it is added."""

LARGEST_DOSE = 100.0
"""Largest dose that is taken; from about 10 on the states are little but the vector."""
