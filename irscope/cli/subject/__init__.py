"""What the command line names: captures recorded now, loaded, or compiled again."""
