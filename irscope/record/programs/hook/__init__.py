"""Only on the path of the recorded program's Python processes: the module that each imports when it starts."""
