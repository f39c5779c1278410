"""Asks the installed compiler, in a child process: the layouts of a text, a layout given as text, bank conflicts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace

from irscope.errors import MissingTool, UsageError, installing
from irscope.ir.mlir.attributes import Encoding
from irscope.ir.mlir.types import element_bits
from irscope.layout.computed import computed_map
from irscope.layout.rows import encoding_rank, layout_rows, type_of_row
from irscope.layout.typed import blocks_of, lanes_of, parse_typed, warps_of
from irscope.model.capture import Target
from irscope.model.layout import LayoutRefusal, LayoutRow
from irscope.record.process.annotations import LayoutServer, Module

_ELEMENTS = {
    "fp16": "f16", "fp32": "f32", "fp64": "f64", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "fp8e4nv": "f8E4M3FN", "fp8e5": "f8E5M2", "fp8": "f8E4M3FN", "u8": "i8", "uint8": "i8",
}  # fmt: skip


def layouts_of_text(text: str, target: Target, known: Iterable[LayoutRow] = ()) -> tuple[LayoutRow, ...]:
    """The layouts of a TTGIR module with the compiler's answers, or refusals; those of `known` are not asked again."""
    return answered_rows(layout_rows(text), text, target, known)


def answered_rows(
    rows: Sequence[LayoutRow], text: str, target: Target, known: Iterable[LayoutRow] = ()
) -> tuple[LayoutRow, ...]:
    answers = {(row.encoding, row.shape): row.answer for row in known}
    missing = [row for row in rows if (row.encoding, row.shape) not in answers]
    if missing:
        with LayoutServer() as server:
            job = server.wait(server.ask(Module.of_text(target, text), types=[type_of_row(row) for row in missing]))
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
    num_ctas: int | None = None,
    threads_per_warp: int | None = None,
    server: LayoutServer | None = None,
) -> LayoutRow:
    """The row of one layout that is given as text, always with its map.

    A number that is None is that of the encoding, else 4 warps, one CTA and the target's threads. `server`: the
    compiler's process, if it is kept for several questions. Raises ParseError if the text is not an encoding,
    UsageError if it does not fit the shape or the numbers or the compiler does not take it, MissingTool if no Triton
    here has its map.
    """
    encoding = parse_typed(encoding_text, shape)
    own = shape
    if encoding.space in ("shared", "tensor") and (rank := encoding_rank(encoding)):
        own = shape[-rank:]
    row = LayoutRow("", encoding.text, own, (_ELEMENTS.get(dtype, dtype),))
    if not element_bits(row.elements[0]):
        raise UsageError(f"{dtype!r} is not an element type: write f16, bf16, f32, i8, f8E4M3FN, ….")
    warps = _fitting(encoding, "warps", warps_of(encoding), num_warps, "--num-warps", 64)
    ctas = _fitting(encoding, "CTAs", blocks_of(encoding), num_ctas, "--num-ctas", 16)
    lanes = _fitting(
        encoding, "threads per warp", lanes_of(encoding), threads_per_warp, "--option threads_per_warp", 128
    )
    module = Module(str(target), lanes or target.warp_size, warps or 4, ctas or 1)
    with LayoutServer() if server is None else nullcontext(server) as process:
        (answer,) = process.wait(process.ask(module, types=[type_of_row(row)])).answered_types()
    if isinstance(answer, LayoutRefusal):
        # `unasked`: there is no recording process on this system.
        if answer.code in ("no-triton", "unasked") and (computed := computed_map(encoding, own)) is not None:
            return replace(row, answer=computed)
        raise _refused(answer, row, module)
    return replace(row, answer=answer)


def _fitting(encoding: Encoding, what: str, own: int | None, asked: int | None, option: str, most: int) -> int | None:
    if own is not None and asked is not None and own != asked:
        raise UsageError(f"{encoding.text} is for {own} {what}, not for {asked}: write {option} {own}.")
    number = own if own is not None else asked
    if number is not None and (not 0 < number <= most or number & (number - 1)):
        raise UsageError(f"{encoding.text}: {number} {what} is not a power of two up to {most}.")
    return number


# python: …/LinearLayout.cpp:250: void …: Assertion `…' failed.   LLVM ERROR: Illegal shared layout
_LAST_WORDS = re.compile(r"Assertion [`'\"](?P<assertion>.+)[`'\"] failed|LLVM ERROR: (?P<error>.+)")


def _refused(answer: LayoutRefusal, row: LayoutRow, module: Module) -> UsageError | MissingTool:
    if answer.code == "no-triton":
        return MissingTool(
            f"Triton is not installed here, and the map of {row.encoding} is known to the compiler alone: "
            f"{installing('triton')} (on Linux; a Triton that came with PyTorch will do too)."
        )
    said = answer.message.rstrip(": .")
    last = _LAST_WORDS.search(said)
    if answer.code == "unsupported" or (answer.code == "unasked" and last is None):
        return MissingTool(f"{row.encoding}: {said}.")
    if last is not None:
        said = f"it asserts {last['assertion']}" if last["assertion"] else f"it ends with {last['error']!r}"
    sizes = "×".join(map(str, row.shape))
    return UsageError(
        f"the compiler does not take {row.encoding} for a {sizes} {row.elements[0]} with {module.num_warps} warps "
        f"of {module.warp_size} threads on {module.target}: {said}."
    )


def bank_conflicts(pairs: Sequence[tuple[str, str]], target: Target, num_warps: int = 4) -> tuple[int | None, ...]:
    """The compiler's count of bank conflicts for each (type in registers, type in shared memory).

    It is the number of accesses per wavefront above one, for plain loads and stores; None if the compiler can't be
    asked: it does not survive padded layouts, nor waves of 64 threads in 3.8 and later (earlier ones count too many).
    """
    asked = [pair for pair in pairs if target.backend == "cuda" and "padded_shared" not in pair[1]]
    if not asked:
        return (None,) * len(pairs)
    with LayoutServer() as server:
        job = server.wait(server.ask(Module.of(target, num_warps), pairs=asked))
    counts = dict(zip(asked, job.conflicts, strict=False))
    return tuple(counts.get(pair) for pair in pairs)
