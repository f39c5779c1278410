"""A capture to and from one `.irscope` file, with its schema, limits and checks; the store of recent captures; collections."""
