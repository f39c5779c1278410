"""The requests for recording processes, made of what a user names: a file, a kernel, a capture."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from irscope.errors import RecordingError, UsageError, did_you_mean
from irscope.model.capture import COMPILED_STAGES, STAGES, Capture, Launch, PassSnapshot, Target
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan
from irscope.record.triton.identity import refuse_unknown_passes

_WITHOUT_KERNELS = frozenset(sys.stdlib_module_names) | {"torch", "triton", "numpy", "pytest", "irscope"}
"""Modules from outside of the program that launch no kernel of their own, unless torch compiles one."""
_DYNAMIC = frozenset({
    "exec", "eval", "compile", "__import__", "importlib", "runpy", "inductor", "flex_attention", "__name__",
    "__qualname__", "setattr", "globals", "TritonTemplate", "subprocess", "system", "popen", "execv", "execvp",
})  # fmt: skip
"""Names that a program which makes or renames functions uses."""
_MOST_FILES = 200


def _refuse_unknown_kernel(path: Path, kernel: str) -> None:
    """Raise RecordingError where no function of a program has a kernel's name, as far as reading it decides that."""
    functions: dict[str, bool] = {}
    waiting, seen = [path], set[Path]()
    while waiting:
        file = waiting.pop().resolve()
        if file in seen:
            continue
        seen.add(file)
        try:
            tree = ast.parse(file.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                functions[node.name] = functions.get(node.name, False) or any(map(_is_jit, node.decorator_list))
            elif _name_of(node) in _DYNAMIC and not _is_main_test(node, tree):
                return
        for module, found in imports_beside(tree, file, path.resolve().parent):
            if not found and module.partition(".")[0] not in _WITHOUT_KERNELS:
                return
            waiting += found
        if len(seen) > _MOST_FILES:
            return
    if kernel not in functions:
        jitted = sorted(name for name, is_kernel in functions.items() if is_kernel)
        known = f" Its kernels are {', '.join(jitted)}." if jitted else " It has no kernel."
        raise RecordingError(f"{path} holds no kernel {kernel!r}.{did_you_mean(kernel, jitted, or_all=False)}{known}")


def _name_of(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _is_main_test(node: ast.AST, tree: ast.Module) -> bool:
    tests = (one.test for one in tree.body if isinstance(one, ast.If))
    return any(isinstance(test, ast.Compare) and test.left is node for test in tests)


def _is_jit(decorator: ast.expr) -> bool:
    text = ast.unparse(decorator)
    return text.partition("(")[0].rpartition(".")[2] in ("jit", "autotune", "heuristics")


def imports_beside(tree: ast.Module, file: Path, root: Path) -> Iterator[tuple[str, list[Path]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, list(_module_files(root, alias.name))) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = root if not node.level else file.parents[min(node.level, len(file.parents)) - 1]
            module = node.module or ""
            names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
            yield module, [path for name in names for path in _module_files(base, name)]


def _module_files(root: Path, name: str) -> Iterator[Path]:
    folder = root
    for part in filter(None, name.split(".")):
        for file in (folder / f"{part}.py", folder / part / "__init__.py"):
            if file.is_file():
                yield file
        folder /= part


_COMPUTED_BYTES = 4 << 20
"""Of a tensor of a virtual GPU that computes: the data of a larger one are recorded only where that is asked for."""
_MLIR_SUFFIXES = ("mlir", *(stage.name for stage in STAGES if stage.kind == "mlir"))


Way = Literal["file", "module", "tests", "notebook", "stdin", "command"]
"""What a program is: a Python file; a module, as `python -m` runs it; tests of pytest's; a notebook; the text of
standard input; any command, whose Python processes are recorded."""


@dataclass(frozen=True, slots=True)
class KnownCompile:
    """A compile of which a capture is stored, and what a launch of its kernel needs."""

    front: str
    """A digest of all that decides the compile, with what the front end reads in place of the IR that it makes."""
    key: str
    """In Triton's cache."""
    id: str = ""
    """Of the capture."""
    stage: str = ""
    text: str = ""
    """The first stage that tells which arguments the kernel writes."""

    def of(self, capture: Capture) -> KnownCompile:
        stage = next((name for name in ("ttir", "ttgir") if name in capture.stages), "")
        return replace(self, id=capture.id, stage=stage, text=capture.text(stage) if stage else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRequest(RecordingOptions):
    """Which launches to record, and how: the options of the recording, and what they apply to."""

    mode: Literal["script", "signature", "text"]
    """Run a script; compile a kernel from a signature; or resume a compile from the text of a stage."""
    way: Way = "file"
    """What `path` names."""
    path: str = ""
    """The script, the file of the kernel, or the IR file; or the module, or nothing, as `way` says."""
    kernel: str = ""
    stage: str = ""
    """`text`: the stage whose artifact the text is."""
    text: str = ""
    """The stage's text, or the program of standard input."""
    compiled_launch: Launch | None = None
    """`text`: the launch of the capture that the text comes from."""
    compiled_target: str = ""
    """`text`: the target the text was made for."""
    resume_stage: str = ""
    """`text`: the text is a snapshot within this stage, which runs again from the pass after it."""
    resume_after: int = 0
    """How many passes of `resume_stage` are behind the text already."""
    reprinted: Literal["", "plain", "generic"] = ""
    """`text`: read and verify it, and print it without locations, in MLIR's custom or generic form; compile nothing."""
    last_stage: str = ""
    """`text`: the stage after which the compile stops; empty if it makes them all."""
    log_path: str = ""
    """Where the process's standard error goes, from which the diagnostics of each compile are read."""
    limit_s: float = 0.0
    mlir_dump_path: str = ""
    """Where `MLIR_ENABLE_DUMP` prints to; with it, that stands in for the tap."""
    compiler_log: bool = False
    """Whether the compiler prints its reasons, pass by pass, which the captures then hold."""
    log_parts: tuple[str, ...] = ()
    """The parts of Triton that print them; empty for all."""
    lists_llvm: bool = False
    """Whether the captures name the passes of LLVM that may be left out."""
    stored: tuple[str, ...] = ()
    """The ids of captures that need not be recorded again."""
    known: tuple[KnownCompile, ...] = ()
    """Those of which not even the front end is to be run again."""
    verifies_log: bool = False
    """Whether it verifies the IR before it prints an operation of it: slow, and safe."""
    began: str = ""
    """When the recording began, the same for all of its processes; empty for now."""
    is_trusted: bool = True
    """Whether the code of its captures may be run: the user's own is, and that of a trusted capture."""

    @property
    def watches_llvm(self) -> bool:
        """Whether LLVM's own passes are named, timed or left out one by one."""
        return self.times or self.llvm_passes or self.lists_llvm or self.plan.names_llvm

    @staticmethod
    def of_options(record_options: RecordingOptions, **others: Any) -> RecordRequest:
        return RecordRequest(
            **{item.name: getattr(record_options, item.name) for item in fields(RecordingOptions)}, **others
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileJob:
    """A compile that a script's process began, for a worker to go on with."""

    number: int
    target: str
    name: str
    extension: str
    language: str
    source_key: str
    """What Triton's cache knows the source by."""
    key: str
    options: dict[str, Any]
    """As the backend has parsed them."""
    texts: dict[str, str]
    """The source, and what the stages before `stage` made of it."""
    module: str
    """The module that goes into `stage`, in MLIR's generic form, which has the locations of block arguments too."""
    stage: str
    metadata: dict[str, Any]
    passes: int
    """How many passes they had."""
    environment: dict[str, str]
    survived: tuple[str, ...]
    """The errors that do not end the program, as the autotuner goes on after them."""
    cache: str
    """The folder of Triton's cache, in which the script finds the kernel if it reads it."""
    request: RecordRequest = RecordRequest(mode="script")
    """That of the recording; the parent adds it."""


def default_jobs() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def one_for_each_target(request: RecordRequest) -> tuple[RecordRequest, ...]:
    """The requests, each for a process of its own, that a request for several targets stands for.

    A program may ask which GPU it is on, Triton specialises a launch for one backend, and LLVM's flags are the
    process's: nothing of one target's compile is there in another's.
    """
    return tuple(replace(request, targets=(target,)) for target in dict.fromkeys(request.targets)) or (request,)


def request_for(
    source: str | Path | Any, record_options: RecordingOptions | None = None, *, kernel: str = "", **keywords: Any
) -> RecordRequest:
    """The request for a script, a kernel with a signature, or an IR file; raises UsageError where they don't fit.

    `source`: the file, or a `@triton.jit` function. `keywords`: in place of `record_options`, as its `of` takes them.
    """
    record_options = record_options or RecordingOptions.of(keywords)
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise RecordingError(
            "the working folder, in which a script runs, is gone: change to one that exists."
        ) from error
    function = getattr(source, "fn", None)
    if function is not None:
        kernel = kernel or function.__name__
        source = str(function.__code__.co_filename)
    _refuse_wrong_names(record_options)
    if record_options.computes and not record_options.data_limit_bytes:
        record_options = replace(record_options, data_limit_bytes=_COMPUTED_BYTES)
    if record_options.test_filter is not None and not record_options.tests:
        raise UsageError("-k chooses among tests: give --pytest PATH too.")
    if (request := _other_program(str(source), record_options, kernel)) is not None:
        return _checked(request, request.path or str(source))
    path = Path(source)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise RecordingError(f"{str(source)!r} {what}: give a Python file with Triton kernels, or an IR file.")
    suffix = path.suffix.removeprefix(".")
    # As Python itself does it: the locations of what runs as __main__ hold absolute paths.
    request = RecordRequest.of_options(record_options, mode="script", path=os.path.abspath(path), kernel=kernel)
    if kernel and suffix == "py":
        _refuse_unknown_kernel(path, kernel)
    is_ir = record_options.into is not None or suffix in COMPILED_STAGES
    if record_options.assume and (is_ir or record_options.signature is not None):
        raise UsageError("--assume is for scripts: nothing is assumed of a signature, or of IR.")
    if record_options.into is not None:
        if suffix not in _MLIR_SUFFIXES:
            raise UsageError(f"--into is for files of MLIR ({', '.join(_MLIR_SUFFIXES)}), not for {path.name}.")
        suffix = record_options.into
        request = replace(request, resume_stage=suffix)
    if is_ir:
        if record_options.signature is not None or record_options.constexprs:
            raise UsageError(
                f"{path.name} is IR: its signature and constants are in it. Leave out --signature and --constexpr."
            )
        text = path.read_text("utf-8", "replace")
        if not text.strip():
            raise UsageError(f"{str(source)!r} is empty: give a file with the text of a stage.")
        return replace(request, mode="text", stage=suffix, text=text)
    return _checked(request, path.name)


def request_for_command(record_options: RecordingOptions) -> RecordRequest:
    """The request to record the Python processes of a command, which is the options' arguments; raises UsageError."""
    if not record_options.arguments:
        raise UsageError("no command is given: irscope record -- python train.py --steps 3.")
    _refuse_wrong_names(record_options)
    return RecordRequest.of_options(record_options, mode="script", way="command")


def _refuse_wrong_names(record_options: RecordingOptions, *backends: str) -> None:
    targets = [Target.parse(text) for text in record_options.targets]
    if record_options.interpreter is None:
        refuse_unknown_passes(record_options.plan, [one.backend for one in targets] or backends)


def _other_program(source: str, record_options: RecordingOptions, kernel: str) -> RecordRequest | None:
    """The request for a program that is no Python file, or None; raises UsageError and RecordingError."""
    request = RecordRequest.of_options(record_options, mode="script", kernel=kernel)
    if record_options.module is not None and record_options.tests:
        raise UsageError("-m and --pytest do not go together: give one.")
    if record_options.module is not None:
        module, _, named = record_options.module.partition("::")
        if not all(part.isidentifier() for part in module.split(".")):
            raise UsageError(f"-m {record_options.module!r}: write the name of a module, as package.module.")
        return replace(request, way="module", path=module, kernel=kernel or named)
    if record_options.tests:
        for path in record_options.tests:
            if not Path(path.partition("::")[0]).exists():
                raise RecordingError(
                    f"--pytest {path!r} does not exist: give a file or a folder of tests, or FILE::TEST."
                )
        return replace(request, way="tests")
    if source == "-":
        return replace(request, way="stdin", path="<stdin>", text=_standard_input())
    if Path(source).suffix == ".ipynb" and Path(source).is_file():
        return replace(request, way="notebook", path=os.path.abspath(source))
    return None


@cache
def _standard_input() -> str:
    # Read once: a program may be run for several targets.
    return "" if sys.stdin is None else sys.stdin.read()  # pyright: ignore[reportUnnecessaryComparison]


def _checked(request: RecordRequest, name: str) -> RecordRequest:
    if request.signature is not None:
        if request.way not in ("file", "module"):
            raise UsageError("--signature compiles a kernel of a FILE.py or of -m MODULE.")
        if not request.kernel:
            raise UsageError(f"--signature needs a kernel: {name}::KERNEL.")
        return replace(request, mode="signature")
    if request.constexprs:
        raise UsageError("--constexpr goes with --signature: a script's launch has its own constants.")
    if request.options:
        names = ", ".join(dict(request.options))
        raise UsageError(
            f"{names} cannot be set for a script's launches: they bring their own. Record it, then change the capture."
        )
    return request


def request_from_capture(
    capture: Capture, record_options: RecordingOptions | None = None, **keywords: Any
) -> RecordRequest:
    """The request to compile a capture's own `source` again; raises RecordingError where it holds none."""
    record_options = record_options or RecordingOptions.of(keywords)
    is_planned = record_options.plan != capture.plan
    _refuse_wrong_names(
        record_options if is_planned else replace(record_options, plan=PassPlan()), capture.target.backend
    )
    stage = capture.begun_from
    if not stage:
        raise RecordingError(
            f"{capture.name} ({capture.target}, {capture.id[:8]}) holds no source stage, so it cannot be compiled again"
            f"{f': it {capture.failure.verdict}' if capture.failure else ''}. Record the script again."
        )
    return RecordRequest.of_options(
        replace(record_options, targets=record_options.targets or (str(capture.target),)),
        mode="text",
        path=capture.launch.kernel.file,
        kernel=capture.name,
        stage=stage,
        text=capture.text(stage),
        compiled_launch=capture.launch,
        compiled_target=str(capture.target),
        is_trusted=capture.environment.is_trusted,
    )


def request_resumed(
    capture: Capture, after: PassSnapshot, edited: str, record_options: RecordingOptions
) -> RecordRequest:
    behind = sum(1 for other in capture.passes() if other.stage == after.stage and other.index <= after.index)
    request = request_from_capture(capture, record_options)
    return replace(request, stage=after.stage, text=edited, resume_stage=after.stage, resume_after=behind)
