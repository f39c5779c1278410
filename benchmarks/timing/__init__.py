"""Measured times of families of kernels, and how well predictions rank and match them.

Half the families, drawn at random before anything was measured, are for tuning a model; the other half is for
validation alone. `python -m benchmarks.timing` records, measures and scores.
"""
