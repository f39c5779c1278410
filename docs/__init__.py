"""The documentation, and what builds it as a site."""
