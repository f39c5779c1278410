"""`irscope import`: logs of MLIR_ENABLE_DUMP, Triton's cache and its dump folders → captures."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from irscope.analysis.fit import with_fit
from irscope.capture import Capture, Environment, Resources
from irscope.cli import app, options
from irscope.cli.output import colored, emit, emit_json
from irscope.cli.subject import failure_text
from irscope.cli.talk import say
from irscope.errors import ParseError, UsageError, did_you_mean
from irscope.recent import CaptureStore
from irscope.store import SUFFIX

_MAX_LOG_BYTES = 1 << 30


@app.command("import", rich_help_panel="Record and read")
def import_captures(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH…",
            help="A log of MLIR_ENABLE_DUMP or LLVM_IR_ENABLE_DUMP (- for standard input), Triton's cache, one of its "
            "variants, or a folder that TRITON_KERNEL_DUMP wrote.",
            show_default=False,
        ),
    ],
    kernel: Annotated[
        str | None, typer.Option("--kernel", metavar="NAME", help="Only this kernel's.", show_default=False)
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(
            "--variant",
            metavar="HASH",
            help="Only this variant of a cache (see 'irscope ls --cache').",
            show_default=False,
        ),
    ] = None,
    output: options.Output = None,
    as_json: options.AsJson = False,
    color: options.Color = None,
) -> int:
    """Make captures of what Triton printed or cached, with no Triton: for logs of a machine that is out of reach.

    They are stored as any other: 'irscope passes', 'irscope diff' and 'irscope show' read them.
    """
    from irscope.cli import stages

    if output is not None and output.suffix != SUFFIX and not as_json:
        raise UsageError(f"-o {str(output)!r}: captures are written to a file that ends in {SUFFIX}.")
    captures = [capture for path in paths for capture in _read(path, variant)]
    captures = _of_kernel(captures, kernel)
    store = CaptureStore()
    for capture in captures:
        store.add(capture)
    if output is not None and output.suffix == SUFFIX:
        stages.save_captures(captures, output)
    if as_json:
        target = None if output is not None and output.suffix == SUFFIX else output
        emit_json([stages.as_json(capture) for capture in captures], target)
        return 0
    emit(stages.summary(captures, color), painted=colored(color))
    for capture in captures:
        if capture.status == "failed":
            say(failure_text(capture))
    return 0


def _read(path: Path, variant: str | None) -> list[Capture]:
    captures = _read_folder(path, variant) if path.is_dir() else _read_log(path, variant)
    return [with_fit(_with_resources(capture)) for capture in captures]


def _read_folder(path: Path, variant: str | None) -> list[Capture]:
    from irscope.ir.cache import list_cache, read_cache

    captures = list(read_cache(path, variant, say))
    if captures:
        return captures
    if variant is None:
        raise ParseError(
            f"{str(path)!r} holds no kernel of Triton's: give its cache (~/.triton/cache), a variant's folder in it, "
            "or a folder that TRITON_KERNEL_DUMP wrote, with files such as KERNEL.ttir."
        )
    raise ParseError(
        f"{str(path)!r} holds no variant that begins with {variant!r}."
        + did_you_mean(variant, (entry.variant for entry in list_cache(path)))
    )


def _read_log(path: Path, variant: str | None) -> list[Capture]:
    from irscope.ir.dump import captures_from_log
    from irscope.ir.regular_file import FileRefused, read_regular

    if variant is not None:
        raise UsageError(f"--variant {variant!r} chooses among a cache's variants; {str(path)!r} is a log.")
    if str(path) == "-":
        name, data, seconds = "standard input", sys.stdin.buffer.read(_MAX_LOG_BYTES + 1), None
    else:
        try:
            data = read_regular(path, _MAX_LOG_BYTES)
        except FileRefused as error:
            raise ParseError(
                f"{str(path)!r} {error}. A pipe's text is read with '-': irscope import - < LOG."
            ) from error
        name, seconds = path.name, path.stat().st_mtime
    if data[:2] == b"\x1f\x8b":
        data = _unpacked(data, name)
    if len(data) > _MAX_LOG_BYTES:
        raise ParseError(
            f"{name} has more than {_MAX_LOG_BYTES:,} bytes of text, the most that is read: import parts of it."
        )
    captures = captures_from_log(data.decode("utf-8", "replace"), name)
    if not captures:
        raise ParseError(
            f"{name} holds no IR dump: run the program with MLIR_ENABLE_DUMP=1 and MLIR_DUMP_PATH=FILE (and with a "
            "fresh TRITON_CACHE_DIR: on a cache hit nothing is compiled), and import FILE."
        )
    if seconds is None:
        return list(captures)
    date = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat(timespec="seconds")
    return [replace(capture, environment=Environment(date=date)) for capture in captures]


def _unpacked(data: bytes, name: str) -> bytes:
    import zlib

    try:
        # Logs compress a hundredfold: what it unpacks to is bounded.
        return zlib.decompressobj(wbits=31).decompress(data, _MAX_LOG_BYTES + 1)
    except zlib.error as error:
        raise ParseError(f"{name} begins as a gzip file, but cannot be unpacked ({error}).") from error


def _with_resources(capture: Capture) -> Capture:
    """A capture with what its binary takes, where it holds one."""
    if capture.resources != Resources() or not capture.artifacts:
        return capture
    from irscope.record.resources import read_resources

    stages = {artifact.stage: artifact.data for artifact in capture.artifacts}
    return replace(capture, resources=read_resources(stages, {"name": capture.name, **dict(capture.metadata)}))


def _of_kernel(captures: Sequence[Capture], kernel: str | None) -> list[Capture]:
    if kernel is None:
        return list(captures)
    named = [capture for capture in captures if capture.name == kernel]
    if not named:
        names = {capture.name for capture in captures}
        raise ParseError(f"no compile of a kernel {kernel!r} is there.{did_you_mean(kernel, names)}")
    return named
