"""Files that somebody else made: mutated captures, logs and texts, and a capture made to do harm."""
