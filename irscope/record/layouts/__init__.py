"""Asks the compiler which linear layout each encoding is, in a child process that the question may crash."""
