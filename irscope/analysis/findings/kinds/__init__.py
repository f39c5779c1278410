"""Each kind of finding, by what it is about."""
