"""One capture as text: its page, the partitions of its warps, and columns beside its machine code."""
