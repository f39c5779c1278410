"""Findings: the slow parts of a compiled kernel, their causes, and suggested fixes."""
