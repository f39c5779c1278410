"""Asks the installed compiler, in a child process: the layouts of a text, a layout given as text, bank conflicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from irscope.errors import MissingTool, UsageError
from irscope.ir.mlir.encoding import parse_encoding
from irscope.layout.rows import encoding_rank, layout_rows, module_numbers, type_of_row
from irscope.model.capture import Target
from irscope.model.layout import LayoutRefusal, LayoutRow
from irscope.record.layouts.messages import Module
from irscope.record.layouts.server import LayoutServer

__all__ = ["ask_layout", "bank_conflicts", "layouts_of_text"]

_ELEMENTS = {
    "fp16": "f16", "fp32": "f32", "fp64": "f64", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "fp8e4nv": "f8E4M3FN", "fp8e5": "f8E5M2", "fp8": "f8E4M3FN", "u8": "i8", "uint8": "i8",
}  # fmt: skip


def layouts_of_text(
    text: str, target: Target, known: Iterable[LayoutRow] = (), *, interpreter: str | None = None
) -> tuple[LayoutRow, ...]:
    """The layouts of a TTGIR module with the compiler's answers.

    Args:
        text: the module.
        target: what it is compiled for.
        known: rows with answers, such as a capture's: the same encoding and shape are not asked again.
        interpreter: the Python whose Triton is asked; None for this one.

    Never raises: a layout without a map has a LayoutRefusal.
    """
    rows = layout_rows(text)
    answers = {(row.encoding, row.shape): row.answer for row in known}
    missing = [row for row in rows if (row.encoding, row.shape) not in answers]
    if missing:
        numbers = module_numbers(text)
        module = Module.of(target, numbers.get("num-warps", 4), numbers.get("num-ctas", 1))
        with LayoutServer(fork=False, interpreter=interpreter) as server:
            job = server.wait(server.ask(module, types=[type_of_row(row) for row in missing]))
        fresh = zip(missing, job.answered_types(), strict=True)
        answers |= {(row.encoding, row.shape): answer for row, answer in fresh}
    return tuple(replace(row, answer=answers[row.encoding, row.shape]) for row in rows)


def ask_layout(
    encoding_text: str,
    shape: tuple[int, ...],
    num_warps: int | None,
    target: Target,
    dtype: str = "f16",
    *,
    num_ctas: int = 1,
    interpreter: str | None = None,
) -> LayoutRow:
    """The row of one layout that is given as text.

    Args:
        encoding_text: such as `#ttg.blocked<{…}>`.
        shape: of the tensor, powers of two.
        num_warps: per CTA; None for as many as the encoding says.
        target: what it is for.
        dtype: MLIR's name of the element type, or Triton's (`fp16`).
        num_ctas: per cluster.
        interpreter: the Python whose Triton is asked; None for this one.

    Raises ParseError if the text is not an encoding, UsageError if the compiler does not take it together with the
    shape, MissingTool if there is no Triton.
    """
    encoding = parse_encoding(encoding_text)
    sizes = "×".join(map(str, shape))
    if any(size < 1 or size & (size - 1) for size in shape):
        raise UsageError(f"the shape {sizes} has a size that is not a power of two: layouts have only such sizes.")
    own = shape
    if encoding.space in ("shared", "tensor") and (rank := encoding_rank(encoding)):
        own = shape[-rank:]
    row = LayoutRow("", encoding.text, own, (_ELEMENTS.get(dtype, dtype),))
    with LayoutServer(fork=False, interpreter=interpreter) as server:
        module = Module.of(target, num_warps or 4, num_ctas)
        (answer,) = server.wait(server.ask(module, types=[type_of_row(row)])).answered_types()
    row = replace(row, answer=answer)
    code = answer.code if isinstance(answer, LayoutRefusal) else ""
    if code == "no-triton":
        raise MissingTool(
            "Triton is not installed here, and a layout that is given as text is asked of it: "
            "pip install 'irscope[triton]' (on Linux; a Triton that came with PyTorch will do too)."
        )
    if code in ("unknown-encoding", "unreadable", "crash"):
        raise UsageError(
            f"the compiler does not take {encoding.text} for a {sizes} {row.elements[0]} with {num_warps or 4} warps "
            f"on {target}: {row.reason.rstrip('.')}. "
            f"The ranks, the warps and the threads of a warp ({target.warp_size}) must fit."
        )
    _check_threads(row, num_warps, target)
    return row


def bank_conflicts(pairs: Sequence[tuple[str, str]], target: Target, num_warps: int = 4) -> tuple[int | None, ...]:
    """The compiler's count of bank conflicts for each (type in registers, type in shared memory).

    It is the number of accesses per wavefront above one, for plain loads and stores; None if the compiler can't be
    asked.
    """
    with LayoutServer(fork=False) as server:
        job = server.wait(server.ask(Module.of(target, num_warps), pairs=pairs))
    return job.conflicts or (None,) * len(pairs)


def _check_threads(row: LayoutRow, num_warps: int | None, target: Target) -> None:
    """The compiler accepts any number of warps and lanes; the user expects those that were asked for."""
    layout = row.map.layout if row.map is not None else None
    if layout is None or "lane" not in layout.in_dims:
        return
    lanes, warps = layout.in_size("lane"), layout.in_size("warp")
    if lanes != target.warp_size:
        raise UsageError(
            f"{row.encoding} is for {lanes} threads per warp; {target} has {target.warp_size}. Choose another --target."
        )
    if num_warps is not None and warps != num_warps:
        raise UsageError(f"{row.encoding} is for {warps} warps, not for {num_warps}: write --num-warps {warps}.")
