"""Assertions about kernels in tests: pytest's fixture `irscope`, and the messages of what it asserts."""
