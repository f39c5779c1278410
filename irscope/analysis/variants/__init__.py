"""Why a kernel was compiled more than once: what tells its variants apart, and what would merge them."""
