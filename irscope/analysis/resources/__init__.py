"""What is counted of a capture."""
