"""Executes TTIR and TTGIR on NumPy, for all programs of a launch at once."""
