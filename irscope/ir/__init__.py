"""Text to structure: readers of every language that a stage is written in."""
