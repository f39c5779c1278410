"""The chains in the LLVM IR of an assembly, to complete the locations of the assembly itself."""

from __future__ import annotations

from collections.abc import Sequence

from irscope.ir.locations.llvm import DebugChains
from irscope.ir.locations.model import Chain, Frame, text_lines

_Key = tuple[int, int, str]


class KnownChains:
    """The chains of an LLVM module; without a module, chains stay as they are."""

    def __init__(self, llir: str | None, columns: bool = True) -> None:
        """Read the module; `columns` is False for SASS, which has no columns."""
        self._exact: set[tuple[tuple[str, int, int], ...]] = set()
        self._by_start: dict[tuple[str, int, int], list[Chain]] = {}
        for chain in DebugChains(text_lines(llir)).places() if llir else ():
            plain = tuple(Frame(frame.file, frame.line, frame.column if columns else 0) for frame in chain)
            exact = self._places(plain)
            if plain and exact not in self._exact:
                self._exact.add(exact)
                self._by_start.setdefault(exact[0], []).append(plain)

    def settle(self, frames: Sequence[Frame]) -> Chain:
        """The chain of the module that given frames match.

        Frames that are a chain of the module, or that match none, stay as they are. Otherwise it is the chain that
        agrees with most of them from the innermost outwards, if there is exactly one; files are compared by name,
        since comments omit their folders.
        """
        chain = tuple(frames)
        if not chain or not self._exact or self._places(chain) in self._exact:
            return chain
        candidates = self._by_start.get(self._places(chain[:1])[0], [])
        for length in range(len(chain), 0, -1):
            wanted = self._keys(chain[:length])
            agreeing = [other for other in candidates if self._keys(other[:length]) == wanted]
            if agreeing:
                return agreeing[0] if len(agreeing) == 1 else chain
        return chain

    def _places(self, chain: Sequence[Frame]) -> tuple[tuple[str, int, int], ...]:
        return tuple((frame.file, frame.line, frame.column) for frame in chain)

    def _keys(self, chain: Sequence[Frame]) -> tuple[_Key, ...]:
        return tuple((frame.line, frame.column, frame.file.rpartition("/")[2]) for frame in chain)
