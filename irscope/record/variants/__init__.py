"""Many compiles of one capture: a pool of warm workers, their results kept, their measurement on a GPU."""
