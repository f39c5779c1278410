"""Why a kernel was compiled more than once: differences between its variants, and changes that would merge them."""
