"""Benchmarks: what is measured for docs/benchmarks.md."""
