"""Child processes that are forks of one that has imported Triton."""
