"""A text as the comparison reads it: lines, values, nesting, and keys that are independent of names."""
