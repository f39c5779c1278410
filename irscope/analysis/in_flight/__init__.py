"""The operations that a loop keeps in flight: copies and dots iteration by iteration, and the slots that they use."""
