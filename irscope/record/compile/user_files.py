"""Which files of Python are the user's own, among the frames of a stack."""

from __future__ import annotations

import os
import sys

import irscope

__all__ = ["is_users"]


def is_users(path: str) -> bool:
    """Whether a file is neither torch's, nor Python's own, nor irscope's; other packages' are the user's."""
    torch = sys.modules.get("torch")
    own = [os.path.dirname(str(module.__file__)) for module in (torch, irscope) if module is not None]
    standard = path.startswith(os.path.dirname(os.__file__)) and "-packages" not in path
    return not (path.startswith(("<", *(folder + os.sep for folder in own))) or standard)
