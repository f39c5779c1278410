"""Graphs, drawn with graphviz."""
