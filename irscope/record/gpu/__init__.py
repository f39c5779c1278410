"""Launches on a real GPU: run, checked against the empty plan, timed and profiled."""
