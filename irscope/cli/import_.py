"""`irscope import`: makes captures of others' data: logs, traces, Triton's caches, torch's folders."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from irscope.api.importing import imported
from irscope.cli.captures import say_failures
from irscope.cli.keeping import kept_captures
from irscope.cli.output import Destination
from irscope.cli.show import summary
from irscope.cli.texts import save_captures
from irscope.errors import UsageError
from irscope.render.capture import capture_json
from irscope.store.file import SUFFIX
from irscope.store.shelf import StoredCaptures


def import_(paths: list[Path], kernel: str | None = None, variant: str | None = None, *, to: Destination) -> int:
    """Make captures from logs, dumps and caches of another machine; needs no Triton.

    They are stored like recorded captures: irscope passes, diff and show read them.

    Options:
        paths = PATH…: A log of MLIR_ENABLE_DUMP or LLVM_IR_ENABLE_DUMP (- for standard input), Triton's cache, one of
            its variants, a folder written by TRITON_KERNEL_DUMP, a trace of tritonparse (.ndjson) or a folder of them,
            TorchInductor's cache, torch_compile_debug, a trace of TORCH_TRACE or its folder, tlparse's output, or a log
            of vLLM or SGLang with kernels compiled while they served.
        --kernel NAME: Only this kernel.
        --variant HASH: Only this variant of a cache (see irscope ls --cache).
    """
    saves = to.path is not None and to.path.suffix == SUFFIX
    if to.path is not None and not saves and not to.as_json:
        raise UsageError(f"-o {str(to.path)!r}: captures are written to a file that ends in {SUFFIX}.")
    captures, left_out = imported(paths, kernel=kernel, variant=variant)
    with kept_captures() as keep:
        for capture in captures:
            keep(capture)
    if to.path is not None and saves:
        save_captures(captures, to.path)
        to = replace(to, path=None)
    to.emit(
        lambda: [capture_json(capture) for capture in captures],
        lambda width, color: summary(StoredCaptures.of(captures), color),
    )
    if not to.as_json:
        say_failures(captures)
    return int(left_out)
