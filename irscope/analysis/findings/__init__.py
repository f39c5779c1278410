"""Findings: what is slow in a compiled kernel, because of what, and what would fix it."""
