"""`irscope edit`: one text of a capture is edited, and compiled on from."""
