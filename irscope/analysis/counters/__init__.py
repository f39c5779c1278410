"""The hardware's counters, joined to a capture's own code, its operations, and their predictions."""
