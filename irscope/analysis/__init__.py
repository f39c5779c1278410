"""Structure to findings."""
