"""Which files TorchInductor generated: they are named by their contents, and lie in a folder of their process's own."""

from __future__ import annotations

import re

__all__ = ["folder_of_generated"]

# /tmp/torchinductor_user/ln/cln4vrfuae3mpo4ob4g42q6fcclqvmvrztuqwzigfapmx6wvr5wg.py
_GENERATED = re.compile(r"(?P<folder>.+[/\\])(?P<short>[a-z2-7]{2})[/\\]c(?P=short)[a-z2-7]{49}\.py")


def folder_of_generated(path: str) -> str:
    """The folder of TorchInductor's cache that a kernel's file lies in, with its last slash; empty for any other file.

    The names are those of `torch._inductor.codecache.code_hash` and `get_path`: `c`, then 51 digits of the contents'
    SHA-256 in base 32, in a folder named by the second and third character.
    """
    found = _GENERATED.fullmatch(path)
    return found["folder"] if found else ""
