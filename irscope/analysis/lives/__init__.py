"""Operations and values followed through the passes: what made each, and what removed it."""
