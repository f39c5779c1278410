"""The changes by another compiler: variants in pairs, facts that differ, and the stage and pass they come from."""
