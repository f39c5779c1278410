"""Lexers of the languages that stages are written in."""
