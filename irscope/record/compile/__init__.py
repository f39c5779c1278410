"""Compiles under a plan: launches, the tap on pass managers, watched compiles, compiling again from a stored stage."""
