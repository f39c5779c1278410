"""The nouns: what a recording holds."""
