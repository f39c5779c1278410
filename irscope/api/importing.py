"""Captures of files: of IR, and of what Triton, torch, tritonparse, vLLM or SGLang printed or cached."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from irscope.device.occupancy import with_fit
from irscope.errors import ParseError, RecordingError, UsageError, did_you_mean
from irscope.ir.mlir.reader import parse_mlir
from irscope.model.capture import (
    STAGE_NAMES,
    Artifact,
    Capture,
    Environment,
    Kernel,
    Launch,
    Resources,
    Target,
    stage_named,
)
from irscope.record.variants.completing import tell
from irscope.target import KNOWN_TARGETS

_MAX_LOG_BYTES = 1 << 30


def imported(
    paths: Sequence[Path], *, kernel: str | None = None, variant: str | None = None
) -> tuple[list[Capture], bool]:
    """The captures of all paths, and whether some could not be read, which are named.

    Those of several folders of TorchInductor's are joined.

    Args:
        paths: logs, traces, caches and folders; `-` is standard input.
        variant: only the variant of a cache whose name begins so.

    Raises ParseError where nothing could be read, or there is no such kernel, and UsageError for a variant of a log.
    """
    from irscope.ir.logs.inductor import InductorFiles, find_inductor_files, read_inductor

    inductor: list[InductorFiles] = []
    read: list[Callable[[], list[Capture]]] = []
    for path in paths:
        files = find_inductor_files(path) if path.is_dir() and variant is None else None
        traces = sorted(path.glob("*.ndjson*")) if path.is_dir() and variant is None else []
        if files:
            inductor.append(files)
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
    if inductor:
        of_inductor = list(read_inductor(inductor, tell))
        captures += of_inductor if read else _with_kernels(of_inductor, ", ".join(str(one.root) for one in inductor))
    if errors and not captures:
        raise errors[0]
    for error in errors:
        tell(f"left out: {error}")
    whole = [with_fit(_with_resources(capture)) for capture in captures]
    return _of_kernel(whole, kernel), bool(errors)


def _read_folder(path: Path, variant: str | None) -> list[Capture]:
    from irscope.ir.logs.cache import list_cache, read_cache

    captures = list(read_cache(path, variant, tell))
    if captures:
        return captures
    if variant is None:
        raise ParseError(
            f"{str(path)!r} holds no Triton kernel: give Triton's cache (~/.triton/cache), a variant's folder in it, "
            "a folder that TRITON_KERNEL_DUMP wrote, with files such as KERNEL.ttir, or one of TorchInductor's, of "
            "TORCH_TRACE, of tlparse, or of tritonparse's traces."
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
    from irscope.ir.logs.inductor import traced_captures
    from irscope.ir.logs.jit_monitor import captures_of_jit_log
    from irscope.ir.logs.torch_trace import is_torch_trace
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
    if is_torch_trace(text):
        return _with_kernels(traced_captures(text), name)
    if is_trace(text):
        captures = captures_from_trace(text, name)
        if not captures:
            raise ParseError(f"{name} is a trace of tritonparse with no compile in it: run with TRITON_TRACE=FOLDER.")
        return list(captures)
    captures = captures_from_log(text, name) or captures_of_jit_log(text, name)
    if not captures:
        raise ParseError(
            f"{name} holds no IR dump, and no kernel of vLLM's or SGLang's JIT monitor: "
            "run the program with MLIR_ENABLE_DUMP=1 and MLIR_DUMP_PATH=FILE (and with a "
            "fresh TRITON_CACHE_DIR: on a cache hit nothing is compiled), and import FILE."
        )
    if seconds is None:
        return list(captures)
    return [replace(capture, environment=Environment(date=utc_date(seconds))) for capture in captures]


def _with_kernels(captures: Iterable[Capture], name: str) -> list[Capture]:
    found = list(captures)
    if not found:
        raise ParseError(
            f"{name} is of torch, with no Triton kernel of TorchInductor's in it: it has one where torch.compile made "
            "code for a GPU (TORCH_TRACE=FOLDER, TORCH_COMPILE_DEBUG=1), and not what the FX graph cache held already "
            "(TORCHINDUCTOR_FORCE_DISABLE_CACHES=1)."
        )
    return found


def _with_resources(capture: Capture) -> Capture:
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


IR_SUFFIXES = (".source", ".ttir", ".ttgir", ".glir", ".llir", ".ptx", ".sass", ".amdgcn", ".mlir", ".ll")


def capture_of_folder(folder: Path) -> Capture:
    """The capture of a folder with the stages of one kernel; raises RecordingError and UsageError."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and _stage_of(path))
    if not files:
        raise RecordingError(f"{str(folder)!r} holds no stages: its files must end in .ttir, .ttgir, .llir, .ptx, ….")
    stems = sorted({path.stem for path in files})
    if len(stems) > 1:
        raise UsageError(
            f"{str(folder)!r} holds the stages of {len(stems)} kernels ({', '.join(stems)}): name one's files."
        )
    return capture_of_files(stems[0], files)


def _stage_of(path: Path) -> str:
    suffix = path.suffix.removeprefix(".")
    stage = {"mlir": "ttgir", "ll": "llir"}.get(suffix, suffix)
    return stage if stage in STAGE_NAMES else ""


def capture_of_files(name: str, files: Sequence[Path]) -> Capture:
    """A capture that holds the texts of files as its stages, and no passes."""
    artifacts: list[Artifact] = []
    for path in files:
        stage = _stage_of(path)
        data = path.read_bytes()
        if not data.strip():
            raise UsageError(f"{str(path)!r} is empty: give a file with the text of a stage.")
        artifacts.append(Artifact(stage, data if stage_named(stage).is_binary else data.decode("utf-8", "replace")))
    return Capture(Launch(Kernel(name)), _target_in(artifacts), artifacts=tuple(artifacts))


def _target_in(artifacts: Sequence[Artifact]) -> Target:
    modules = (one.text for one in artifacts if stage_named(one.stage).kind == "mlir")
    stated = {str(parse_mlir(text).option("target")) for text in modules}
    known = next((target for target in KNOWN_TARGETS if str(target) in stated), None)
    if known is not None:
        return known
    amd = any(artifact.stage in ("amdgcn", "hsaco") for artifact in artifacts)
    return Target("hip", "unknown", 64) if amd else Target("cuda", "unknown", 32)
