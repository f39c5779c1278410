"""Verifies a launch: accesses out of bounds, races between programs and between threads, order that a pass lost."""
