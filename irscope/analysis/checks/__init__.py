"""Assertions about a capture, as the command line and tests state them, and their violations."""
