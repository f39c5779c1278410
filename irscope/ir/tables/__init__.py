"""What the compiler's languages define: one table of operations, one of opcodes for each assembly."""
