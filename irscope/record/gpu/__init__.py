"""Launches on a real GPU: run, checked against the empty plan, and timed."""
