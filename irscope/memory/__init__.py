"""Memory accesses: widths, sectors, lines, bank conflicts, and their costs."""
