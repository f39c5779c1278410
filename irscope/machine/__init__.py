"""Executes TTIR and TTGIR on NumPy, for all programs of a launch at once."""

from importlib.util import find_spec


def has_machine() -> bool:
    """Whether NumPy is installed, without which nothing here can be imported: the extra `irscope[machine]`."""
    return find_spec("numpy") is not None
