"""Hardware, for recording and viewing: parts, limits, occupancy, measurements."""
