"""All programs of a launch at once: how often they come to each operation, and which bytes they touch."""
