"""What a loop keeps in flight: copies and dots turn by turn, and the slots that they use."""
