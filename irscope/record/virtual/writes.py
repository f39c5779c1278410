"""Which of a launch's arguments its kernel may write through: those that it only reads keep their values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from irscope.ir.mlir.pointer_uses import read_pointer_uses

_uses = lru_cache(maxsize=256)(read_pointer_uses)


def written_arguments(kernel: Any, signature: Mapping[str, Any], arguments: tuple[Any, ...]) -> list[Any] | None:
    """Those of a launch's arguments that the compiled kernel may write through; None if it may write to any memory."""
    # One that is being compiled has these already; its other texts would be waited for.
    known = getattr(kernel, "known_texts", None) or kernel.asm
    text = next((known[stage] for stage in ("ttir", "ttgir") if isinstance(known.get(stage), str)), None)
    if text is None:
        return list(arguments)
    uses = _uses(text)
    if uses.elsewhere:
        return None
    kinds = list(signature.values())
    passed = zip(kinds, arguments, strict=False)
    pointers = [argument for kind, argument in passed if str(kind).startswith(("*", "tensordesc"))]
    if len(kinds) != len(arguments) or len(pointers) != len(uses.parameters):
        # A tuple holds pointers that are not among these.
        return list(arguments)
    return [argument for use, argument in zip(uses.parameters, pointers, strict=True) if use.written]
