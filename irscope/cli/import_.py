"""`irscope import`: makes captures of others' data: logs, traces, Triton's caches, TorchInductor's folders."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from irscope.cli import app
from irscope.cli.output.destination import Destination, with_destination
from irscope.cli.output.talk import say
from irscope.cli.subject.keeping import kept_captures
from irscope.device.occupancy import with_fit
from irscope.errors import ParseError, UsageError, did_you_mean
from irscope.model.capture import Capture, Environment, Resources
from irscope.render.text.failure import failure_text
from irscope.store.file import SUFFIX
from irscope.store.shelf import StoredCaptures

_MAX_LOG_BYTES = 1 << 30


@app.command("import", rich_help_panel="Record and read")
@with_destination
def import_captures(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH…",
            help="A log of MLIR_ENABLE_DUMP or LLVM_IR_ENABLE_DUMP (- for standard input), Triton's cache, one of its "
            "variants, a folder written by TRITON_KERNEL_DUMP, a trace of tritonparse (.ndjson) or a folder of them, "
            "TorchInductor's cache, or torch_compile_debug.",
            show_default=False,
        ),
    ],
    kernel: Annotated[str | None, typer.Option("--kernel", metavar="NAME", help="Only this kernel.")] = None,
    variant: Annotated[
        str | None,
        typer.Option("--variant", metavar="HASH", help="Only this variant of a cache (see 'irscope ls --cache')."),
    ] = None,
    *,
    to: Destination,
) -> int:
    """Make captures of what Triton printed or cached on another machine; needs no Triton.

    They are stored like recorded captures: 'irscope passes', 'irscope diff' and 'irscope show' read them.
    """
    from irscope.cli.dump import stages
    from irscope.cli.dump.summary import summary
    from irscope.render.capture.plain import capture_json

    saves = to.path is not None and to.path.suffix == SUFFIX
    if to.path is not None and not saves and not to.as_json:
        raise UsageError(f"-o {str(to.path)!r}: captures are written to a file that ends in {SUFFIX}.")
    captures, left_out = _read_all(paths, variant)
    captures = _of_kernel(captures, kernel)
    with kept_captures() as keep:
        for capture in captures:
            keep(capture)
    if to.path is not None and saves:
        stages.save_captures(captures, to.path)
        to = replace(to, path=None)
    to.emit(
        lambda: [capture_json(capture) for capture in captures],
        lambda width, color: summary(StoredCaptures.of(captures), color),
    )
    for capture in captures:
        if capture.status == "failed" and not to.as_json:
            say(failure_text(capture))
    return int(left_out)


def _read_all(paths: Sequence[Path], variant: str | None) -> tuple[list[Capture], bool]:
    """The captures of all paths, and whether some could not be read, which are named.

    Those of several folders of TorchInductor's are joined. Raises where nothing could be read.
    """
    from irscope.ir.logs.inductor import InductorFiles, find_inductor_files, read_inductor

    found: list[InductorFiles] = []
    read: list[Callable[[], list[Capture]]] = []
    for path in paths:
        files = find_inductor_files(path) if path.is_dir() and variant is None else None
        traces = sorted(path.glob("*.ndjson*")) if path.is_dir() and variant is None else []
        if files:
            found.append(files)
        elif traces:
            read += [partial(_read_log, trace, variant, path) for trace in traces]
        elif path.is_dir():
            read.append(partial(_read_folder, path, variant))
        else:
            read.append(partial(_read_log, path, variant))
    captures: list[Capture] = []
    errors: list[ParseError] = []
    for one in read:
        try:
            captures += one()
        except ParseError as error:
            errors.append(error)
    if found:
        captures += read_inductor(found, say)
    if errors and not captures:
        raise errors[0]
    for error in errors:
        say(f"left out: {error}")
    return [with_fit(_with_resources(capture)) for capture in captures], bool(errors)


def _read_folder(path: Path, variant: str | None) -> list[Capture]:
    from irscope.ir.logs.cache import list_cache, read_cache

    captures = list(read_cache(path, variant, say))
    if captures:
        return captures
    if variant is None:
        raise ParseError(
            f"{str(path)!r} holds no Triton kernel: give Triton's cache (~/.triton/cache), a variant's folder in it, "
            "a folder that TRITON_KERNEL_DUMP wrote, with files such as KERNEL.ttir, or one of TorchInductor's or of "
            "tritonparse's traces."
        )
    raise ParseError(
        f"{str(path)!r} holds no variant that begins with {variant!r}."
        + did_you_mean(variant, (entry.variant for entry in list_cache(path)))
    )


def _read_log(path: Path, variant: str | None, folder: Path | None = None) -> list[Capture]:
    """The captures of a log or a trace; `folder`: nothing outside of it is read, wherever a link leads."""
    from irscope.ir.logs.cache import utc_date
    from irscope.ir.logs.dump import captures_from_log
    from irscope.ir.logs.files import FileRefused, read_at_most, read_regular, unpacked
    from irscope.ir.logs.tritonparse import captures_from_trace, is_trace

    if variant is not None:
        raise UsageError(f"--variant {variant!r} chooses a variant of a cache, but {str(path)!r} is a log.")
    if str(path) == "-":
        name, data, seconds = "standard input", read_at_most(sys.stdin.buffer, _MAX_LOG_BYTES + 1), None
    else:
        try:
            data = read_regular(path, _MAX_LOG_BYTES, folder)
        except FileRefused as error:
            raise ParseError(
                f"{str(path)!r} {error}. A pipe's text is read with '-': irscope import - < LOG."
            ) from error
        name, seconds = path.name, path.stat().st_mtime
    data = unpacked(data, name, _MAX_LOG_BYTES)
    if len(data) > _MAX_LOG_BYTES:
        raise ParseError(
            f"{name} has more than {_MAX_LOG_BYTES:,} bytes of text, the most that is read: import parts of it."
        )
    text = data.decode("utf-8", "replace")
    if is_trace(text):
        captures = captures_from_trace(text, name)
        if not captures:
            raise ParseError(f"{name} is a trace of tritonparse with no compile in it: run with TRITON_TRACE=FOLDER.")
        return list(captures)
    captures = captures_from_log(text, name)
    if not captures:
        raise ParseError(
            f"{name} holds no IR dump: run the program with MLIR_ENABLE_DUMP=1 and MLIR_DUMP_PATH=FILE (and with a "
            "fresh TRITON_CACHE_DIR: on a cache hit nothing is compiled), and import FILE."
        )
    if seconds is None:
        return list(captures)
    return [replace(capture, environment=Environment(date=utc_date(seconds))) for capture in captures]


def _with_resources(capture: Capture) -> Capture:
    """The capture with the resources of its binary, if it has one."""
    if capture.resources != Resources() or not capture.artifacts:
        return capture
    from irscope.ir.asm.resources import read_resources

    stages = {artifact.stage: artifact.data for artifact in capture.artifacts}
    return replace(capture, resources=read_resources(stages, {"name": capture.name, **dict(capture.metadata)}))


def _of_kernel(captures: Sequence[Capture], kernel: str | None) -> list[Capture]:
    if kernel is None:
        return list(captures)
    named = [capture for capture in captures if capture.name == kernel]
    if not named:
        names = {capture.name for capture in captures}
        raise ParseError(f"there is no compile of a kernel {kernel!r}.{did_you_mean(kernel, names)}")
    return named
