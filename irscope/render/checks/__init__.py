"""What came of a check, in the forms that people and their tools read."""
