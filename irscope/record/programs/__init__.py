"""Ways into a recording: the recording process, and the compiles of one's own process."""
