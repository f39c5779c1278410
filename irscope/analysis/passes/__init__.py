"""The changes and the effect of each pass."""
