"""Tables and diffs for a terminal, and as JSON."""
