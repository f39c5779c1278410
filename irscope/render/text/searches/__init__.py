"""Searches over passes and over a kernel's IR as text: ablation, bisection, reduction."""
