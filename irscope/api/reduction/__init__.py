"""Reduction of a capture: what is kept true, the texts to begin with, and the searches over IR and Python."""
