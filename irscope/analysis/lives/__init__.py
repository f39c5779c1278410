"""Operations and values followed through the passes: the pass that created each, and the pass that removed it."""
