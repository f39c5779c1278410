"""What another compiler changes: variants in pairs, facts that differ, and the stage and pass they come from."""
