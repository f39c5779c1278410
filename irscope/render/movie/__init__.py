"""Draws the movie of a kernel: its tiles, and one animated SVG that needs no script."""
