"""Where each line of a stage's text comes from in Python."""
