"""Reduction: smaller programs of which one thing is still true, and the search for the smallest."""
