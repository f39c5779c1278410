"""Reads assembly and its binaries: PTX, SASS, AMDGCN, ELF."""
