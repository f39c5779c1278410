"""Kernels, and beside each what its meaning says that it accesses.

A model says for a program which elements of each argument it accesses, in the order of the tensor of pointers, and
under which mask: nothing in it knows of layouts, lanes or the compiler.
"""
