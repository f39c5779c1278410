"""Where output goes: files, the pager, pipes, standard error."""
