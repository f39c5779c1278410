"""Captures to and from `.irscope` files, with schema, limits and checks; the store of recent captures; collections."""
