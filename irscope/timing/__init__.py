"""The clock: how long a launch takes on a part, what bounds it, and the share of each line, without a GPU."""
