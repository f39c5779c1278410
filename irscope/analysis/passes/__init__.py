"""What each pass did, and what it is worth."""
