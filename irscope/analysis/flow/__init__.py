"""Control flow and dataflow, folded until they can be looked at."""
