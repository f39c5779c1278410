"""The result of a reduction: files that can be run again, a text for an issue, JSON."""
