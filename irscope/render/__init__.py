"""Findings to text, pictures and pages; nothing here writes a file."""
