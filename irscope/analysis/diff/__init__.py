"""The structural comparison of two texts, and of two captures."""
