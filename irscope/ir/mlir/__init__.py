"""Reads MLIR: operations, values, aliases, encodings and types."""
