"""Which instructions of machine code move a spilled register."""

from __future__ import annotations

import re
from typing import Literal

__all__ = ["Spill", "spill_of"]

Spill = Literal["", "store", "load"]

# @P0 STL.64 [R1+0x10], R4 ;      scratch_store_dword off, v1, off offset:4 ; 4-byte Folded Spill
_STORE = re.compile(r"\bSTL\b|\bscratch_store|\bFolded Spill")
# LDL.LU R4, [R1+0x10] ;      scratch_load_dword v1, off, off offset:4 ; 4-byte Folded Reload
_LOAD = re.compile(r"\bLDL\b|\bscratch_load|\bFolded Reload")


def spill_of(line: str) -> Spill:
    """Whether a line of SASS or AMD GPU assembly stores to local memory, or loads from it: with Triton, a spill."""
    return "store" if _STORE.search(line) else "load" if _LOAD.search(line) else ""
