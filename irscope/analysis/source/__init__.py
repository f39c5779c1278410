"""Lines of Python joined to the operations of every stage."""
