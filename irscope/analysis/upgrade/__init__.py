"""What another compiler changes: variants in pairs, the facts that differ, and the stage and the pass they come from."""
