"""Reads Triton's logs and caches as captures: MLIR_ENABLE_DUMP, LLVM_IR_ENABLE_DUMP, cache folders."""
