"""What the installed Triton is and has: its identity, architectures, passes and tools, most of it without importing it.

`python -m irscope.record.triton.identity` prints a line of JSON on this interpreter's Triton.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.metadata
import json
import mmap
import os
import re
import shutil
import struct
import sys
from collections.abc import Iterable
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from irscope.errors import IrscopeError, MissingTool, ParseError, PlanError, TargetError, UsageError, did_you_mean
from irscope.model.capture import STAGE_NAMES, Target
from irscope.plan import LLVM, PassPlan, PassRule, folded
from irscope.record.triton import api as triton_api
from irscope.record.triton import ptxas
from irscope.record.triton.api import package_folder
from irscope.record.triton.versions import triton_version, untried_note
from irscope.store.disk import default_folder, write_atomically
from irscope.target import KNOWN_TARGETS, nearest_targets
from irscope.tools import run_tool

_DIGEST_DIGITS = 16

_LARGE_BYTES = 1 << 20
_MOST_REMEMBERED = 64

_ELF_HEADER_BYTES = 64
_LOADED = 1


def digest_of_file(path: Path) -> str:
    """A digest of a file's contents, of a shared library of the loaded parts alone: stripping changes nothing."""
    state = path.stat()
    # The inode's change time cannot be set back, so it shows a file that was replaced in place.
    known = (state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino, state.st_dev)
    return _digest_of(_resolved(path), known)


@cache
def _digest_of(name: str, state: tuple[int, ...]) -> str:
    is_large = state[0] >= _LARGE_BYTES
    row = _remembered().get(name) if is_large else None
    if row is not None and row["state"] == list(state):
        return row["digest"]
    digest = _digest(Path(name), state[0])
    if is_large:
        _remember(name, {"state": state, "digest": digest})
    return digest


@cache
def _resolved(path: Path) -> str:
    return str(path.resolve())


def _digest_of_tree(path: Path) -> str:
    if path.is_file():
        return digest_of_file(path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    rows = [(str(file.relative_to(path)), digest_of_file(file)) for file in files]
    return short_digest(repr(rows).encode()) if rows else ""


def short_digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGEST_DIGITS]


def _digest(path: Path, size: int) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        if size < _LARGE_BYTES:
            return short_digest(file.read())
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data, memoryview(data) as view:
            for start, end in _loaded_ranges(data[:_ELF_HEADER_BYTES], data) or [(0, size)]:
                with view[start:end] as part:
                    digest.update(part)
    return digest.hexdigest()[:_DIGEST_DIGITS]


def _loaded_ranges(header: bytes, data: mmap.mmap) -> list[tuple[int, int]]:
    """The (start, end) of each loaded segment of a 64-bit ELF file (System V ABI); empty for any other."""
    if not header.startswith(b"\x7fELF\x02\x01"):
        return []
    (offset,) = struct.unpack_from("<Q", header, 32)
    entry_size, count = struct.unpack_from("<HH", header, 54)
    ranges: list[tuple[int, int]] = []
    for index in range(count):
        kind, _, start, _, _, length = struct.unpack_from("<IIQQQQ", data, offset + index * entry_size)
        if kind == _LOADED and length:
            # The ELF header has the position of the section headers, which strip changes.
            ranges.append((max(start, _ELF_HEADER_BYTES), start + length))
    return ranges


def _memory() -> Path:
    return default_folder() / "contents.json"


def _remembered() -> dict[str, dict[str, Any]]:
    try:
        rows = json.loads(_memory().read_text("utf-8"))
        return {key: row for key, row in rows.items() if isinstance(row["digest"], str) and row["state"]}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _remember(name: str, row: dict[str, Any]) -> None:
    rows = {key: other for key, other in _remembered().items() if key != name and os.path.exists(key)}
    kept = dict(list(rows.items())[-_MOST_REMEMBERED + 1 :])
    # Without a writable folder, the file is read again the next time.
    with contextlib.suppress(OSError):
        write_atomically(_memory(), json.dumps({**kept, name: row}).encode())


Rows = tuple[tuple[str, str], ...]

# The folders of Triton's own key (triton.runtime.cache.triton_key), without what makes the code of other targets.
_SOURCES = ("compiler/**/*.py", "language/**/*.py", "backends/*.py", "knobs.py")

# Of the variables in Triton's cache key, those that print, time or check, and leave the code as it is:
# MLIR_ENABLE_DUMP, LLVM_ENABLE_TIMING, MLIR_ENABLE_DIAGNOSTICS, TRITON_LLVM_DEBUG_ONLY, TRITON_PLUGIN_VERSION_CHECK
_PRINTS_ONLY = re.compile(r"DUMP(?!_MIR)|TIMING|DIAGNOSTICS|LLVM_DEBUG|MULTITHREADING|VERSION_CHECK|REPRODUCER")

_IN_THE_OPTIONS = ("TRITON_DEFAULT_FP_FUSION", "TRITON_FORCE_DISABLE_FP_FUSION", "TRITON_OVERRIDE_ARCH")

_NOT_IN_TRITONS_KEY = (
    "AMDGCN_ANALYZE_SMALL_TENSOR_RANGE",
    "AMDGCN_SCALARIZE_PACKED_FOPS",
    "TRITON_FPSAN_HOMOMORPHIC_CASTS",
    "TRITON_INSTRUMENTATION_MODE",
    "TRITON_KERNEL_DUMP",
    "TRITON_KERNEL_OVERRIDE",
    "TRITON_MOCK_PTX_VERSION",
    "TRITON_SWAP_MIR",
    "TRITON_SWAP_MIR_ENABLE_MISCHED",
)
"""Variables that `triton.knobs` reads where code is made, and that Triton's cache key leaves out."""

_OF_ONE_BACKEND = {
    "hip": re.compile(r"AMDGCN_|TRITON_HIP_|TRITON_(SWAP|DUMP)_MIR"),
    "cuda": re.compile(r"DISABLE_MMA_|DISABLE_PTXAS_|TRITON_MOCK_PTX_|.*_TMEM_"),
}

# TRITON_PLUGIN_PATHS, LLVM_PASS_PLUGIN_PATH, TRITON_SWAP_MIR: the contents decide, not the path.
_NAMES_FILES = re.compile(r".*_PATHS?$|TRITON_SWAP_MIR$")

_YES, _NO = ("1", "true", "on", "yes", "y"), ("0", "false", "off", "no", "n")


def compiler_parts(target: Target, backend: Any, extern_libs: Iterable[tuple[str, str]] = ()) -> Rows:
    """(file, digest of its contents) for all that makes a target's code, bitcode of `extern_libs` (name, path) too."""
    linked = {f"bitcode {name}": Path(path) for name, path in extern_libs}
    files = _files_of(triton_api.package_folder(), backend)
    rows = {name: path for name, path in files if path not in linked.values()}
    if replaced := os.environ.get("TRITON_AMD_CODEGEN_PATH"):
        rows = {name: Path(replaced) if "amd_codegen" in name else path for name, path in rows.items()}
    if (assembler := triton_api.assembler(target)) is not None:
        rows["ptxas"] = assembler
    return tuple((name, digest_of_file(path)) for name, path in sorted({**rows, **linked}.items()) if path.is_file())


@cache
def _files_of(folder: Path, backend: Any) -> tuple[tuple[str, Path], ...]:
    """(name, path) of the files of Triton, installed in `folder`, that make the code of a backend."""
    paths = {path for pattern in _SOURCES for path in folder.glob(pattern)}
    paths |= {path for path in (folder / "_C").glob("libtriton*") if path.is_file()}
    for module in triton_api.backend_modules(backend):
        own = Path(str(module.__file__)).parent
        paths |= {*own.glob("*.py"), *(own / "lib").glob("*")}
    return tuple((_name(path, folder), path) for path in paths)


def _name(path: Path, folder: Path) -> str:
    # triton/backends/nvidia/compiler.py; a backend that was installed by itself is named by its own folder.
    root = folder.parent if path.is_relative_to(folder) else path.parent.parent
    return path.relative_to(root).as_posix()


def code_variables(backend: str) -> Rows:
    """(name, value) of the current environment variables that decide the code of a backend (`cuda`, `hip`).

    Triton's own list for its cache key, without those that only print, and with those that are missing there.
    """
    values = triton_api.cache_invalidating_environment()
    values |= {name: os.environ[name] for name in _NOT_IN_TRITONS_KEY if os.environ.get(name)}
    rows = {name: _value(name, value) for name, value in values.items() if _decides(name, backend)}
    # A switch that is off by default is not switched on by a zero.
    return tuple((name, value) for name, value in sorted(rows.items()) if (value, _is_switch(name)) != ("false", True))


def _decides(name: str, backend: str) -> bool:
    if name == "TRITON_KERNEL_DUMP":
        return triton_api.dumping_changes_llvm_ir()
    if _PRINTS_ONLY.search(name) or name in _IN_THE_OPTIONS:
        return False
    return not any(of != backend and pattern.match(name) for of, pattern in _OF_ONE_BACKEND.items())


def _value(name: str, value: str) -> str:
    if name == "TRITON_KERNEL_OVERRIDE" and value.lower() in _YES:
        home = os.environ.get("TRITON_HOME") or os.path.expanduser("~/")
        folder = os.environ.get("TRITON_OVERRIDE_DIR") or os.path.join(home, ".triton", "override")
        return _digest_of_tree(Path(folder)) or "true"
    if name == "TRITON_DUMP_MIR":
        # It keeps the kernel's arguments out of registers on AMD; the file that it prints to decides nothing.
        return "true"
    if _NAMES_FILES.match(name):
        found = [_digest_of_tree(Path(path)) for path in value.split(os.pathsep)]
        return short_digest(repr(found).encode()) if any(found) else value
    return "true" if value.lower() in _YES else "false" if value.lower() in _NO else value


def _is_switch(name: str) -> bool:
    return any(word in name for word in ("DISABLE", "ENABLE", "EXTRACT", "ALLOW")) or name in _NOT_IN_TRITONS_KEY


_VARIABLES = (
    "TRITON_", "MLIR_", "LLVM_", "AMDGCN_", "AMD_", "ALLOW_", "DISABLE_", "ENABLE_", "NVPTX_", "PTXAS_",
)  # fmt: skip
_DECIDE_NOTHING = ("TRITON_CACHE_DIR", "TRITON_HOME", "TRITON_ALWAYS_COMPILE")


def _compiler_variables() -> dict[str, str]:
    return {
        name: value for name, value in os.environ.items() if name.startswith(_VARIABLES) and name not in _DECIDE_NOTHING
    }


def compiler_fingerprint() -> str:
    """A text that changes with the installed Triton: its Python, its libraries, its tools, and what it is told."""
    rows = {
        row
        for backend in triton_api.backend_classes()
        for arch in ("90", "100")
        for row in compiler_parts(Target("cuda", arch, 32), backend)
    }
    folder = triton_api.package_folder()
    rows |= {(_name(path, folder), digest_of_file(path)) for path in folder.rglob("*.py")}
    rows |= {(name, _value(name, value)) for name, value in _compiler_variables().items()}
    return short_digest(repr(sorted(rows)).encode())


_FILES = (
    "*.py", "_C/libtriton*", "compiler/**/*.py", "language/**/*.py", "backends/*.py", "backends/*/*.py",
    "backends/*/lib/*", "backends/*/bin/*",
)  # fmt: skip


def installed_identity() -> str:
    """A text that changes with each installation, and with the variables and files that it reads; empty where one of
    these is a folder. Raises MissingTool without a Triton.
    """
    variables = sorted(_compiler_variables().items())
    named = [Path(value) for _, value in variables if os.sep in value]
    if not all(path.is_file() for path in named):
        return ""
    folder = package_folder()
    files = sorted({path for pattern in _FILES for path in folder.glob(pattern)})
    rows = [(str(path), (stat := path.stat()).st_size, stat.st_mtime_ns) for path in (*files, *named)]
    return hashlib.sha256(repr((triton_version(), rows, variables)).encode()).hexdigest()


# --gpu-name …  Allowed values for this option:  'sm_100','sm_100a','sm_100f','sm_103', …
_GPU_NAME = re.compile(r"'sm_(\d+)[af]?'")
# \0gfx1250\0, an entry of LLVM's table of processors
_PROCESSOR = re.compile(rb"\0(gfx[0-9a-f]{3,4})(?=\0)")


def check_architecture(target: Target) -> None:
    """Raise TargetError for an architecture that neither irscope knows nor the installed Triton's own tools list."""
    if target in KNOWN_TARGETS or target.backend not in ("cuda", "hip"):
        return
    taken = _listed_by_ptxas(target) if target.backend == "cuda" else _named_in_libraries(target)
    arch = target.arch.partition(":")[0]
    if not taken or arch in taken or "generic" in arch:
        # Where the tools name none, the compile itself will fail.
        return
    near = " or ".join(map(str, nearest_targets(target)))
    others = sorted(taken - {known.arch for known in KNOWN_TARGETS}, key=lambda arch: (len(arch), arch))
    raise TargetError(
        f"{str(target)!r} is an architecture that Triton {triton_version()} does not support. The "
        f"nearest: {near}. irscope knows {', '.join(str(known) for known in KNOWN_TARGETS)}; "
        f"the installed tools take {', '.join(others)} too."
    )


def _listed_by_ptxas(target: Target) -> set[str]:
    ptxas = triton_api.assembler(target)
    if ptxas is None:
        return set()
    try:
        answer = run_tool([str(ptxas), "--help"])
    except OSError:
        return set()
    return set(_GPU_NAME.findall(answer.stdout.decode("utf-8", "replace")))


def _named_in_libraries(target: Target) -> set[str]:
    folder = triton_api.package_folder()
    # From Triton 3.9 on the code generator is a library of its own, beside the backend.
    libraries = [*folder.glob("backends/amd/lib/libtriton_amd_codegen*"), triton_api.compiler_library()[0]]
    with open(libraries[0], "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return {name.decode() for name in _PROCESSOR.findall(data)}


_BACKENDS = {"cuda": "nvidia", "hip": "amd"}
_OPTIMISERS = ("llvm-opt", "ptxas-opt")
"""Passes by names of irscope's own: whole optimisers, which are no pass of MLIR's."""
_PLUGINS = ("TRITON_PASS_PLUGIN_PATH", "TRITON_PLUGIN_PATHS")
"""Variables that add passes that are in no file of Triton's."""


def refuse_unknown_passes(plan: PassPlan, backends: Iterable[str] = ()) -> None:
    """Raise PlanError for a rule that no pass of this Triton, for `backends` if they are known, can match."""
    rules = [rule for rule in (*plan.disabled, *plan.only) if rule.name != "*"]
    if not rules or any(name in os.environ for name in _PLUGINS):
        return
    try:
        folder = triton_api.package_folder()
    except (ImportError, MissingTool):
        return
    wanted = {_BACKENDS.get(name, name) for name in backends}
    if not (by_backend := _builders(folder)) or not wanted <= by_backend.keys():
        return
    names = frozenset[str]().union(*(by_backend[name] for name in wanted or by_backend))
    for rule in rules:
        _refuse_stage(rule)
        if rule.stage == LLVM:
            # One without an argument goes by its description: GPU_Load_and_Store_Vectorizer. The name of a template's
            # instance, InvalidateAnalysisPass<llvm::AAManager>, is made while LLVM runs.
            if "<" not in rule.name and not _has_argument(folder, rule.name, rule.name.replace("_", " ")):
                raise PlanError(
                    f"no pass of this LLVM is named '{rule}'. 'irscope passes FILE --llvm' lists a kernel's."
                )
            continue
        name = folded(rule.name)
        having = {backend for backend, builders in by_backend.items() if name in builders}
        if wanted and having and not wanted & having:
            raise PlanError(f"no pass of {' or '.join(sorted(wanted))} is named '{rule}': {', '.join(having)} has one.")
        if rule.name.startswith(ptxas.PREFIX) and rule.name not in _OPTIMISERS:
            _refuse_unknown_step(folder, rule)
            continue
        if not (having or rule.name in _OPTIMISERS or _has_argument(folder, rule.name)):
            near = did_you_mean(_without_prefix(name), names, or_all=False)
            raise PlanError(f"no pass of this Triton is named '{rule}'.{near} 'irscope passes FILE' lists a kernel's.")


def _refuse_unknown_step(folder: Path, rule: PassRule) -> None:
    name = rule.name.removeprefix(ptxas.PREFIX)
    if name in ptxas.KNOWN or (tool := triton_api.nvidia_tools().get("ptxas")) is None:
        return
    # --maxrregcount <archmax/archmin/N>   ['--regAllocOptLevel=2']
    texts = [run_tool([str(tool), "--help"]).stdout.decode("utf-8", "replace")]
    texts += [path.read_text("utf-8") for path in folder.glob("backends/nvidia/compiler.py")]
    words = [word.strip("[]',\"") for text in texts for word in text.split()]
    options = {word[2:].partition("=")[0] for word in words if word.startswith("--")}
    if name not in options:
        near = did_you_mean(name, (*ptxas.KNOWN, *options), or_all=False)
        raise PlanError(f"no step of ptxas is named '{rule}'.{near} 'irscope passes FILE' lists a kernel's.")


def _without_prefix(name: str) -> str:
    """`coalesc` of `tritongpu_coalesc`: the builders' names have none of the arguments' prefixes."""
    return re.sub(r"^(triton_nvidia_gpu|triton_nvidia|tritongpu|tritonamdgpu|triton|nvgpu|convert)_", "", name)


def _refuse_stage(rule: PassRule) -> None:
    if rule.stage is not None and rule.stage not in (*STAGE_NAMES, LLVM):
        raise PlanError(f"'{rule}': there is no stage {rule.stage!r}.{did_you_mean(rule.stage, (*STAGE_NAMES, LLVM))}")


@cache
def _builders(folder: Path) -> dict[str, frozenset[str]]:
    """Backend → the names of the builders of passes that its pipelines call, without `add_`."""
    found: dict[str, frozenset[str]] = {}
    for path in folder.glob("backends/*/compiler.py"):
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        # passes.ttgpuir.add_coalesce(pm)   nvidia.passes.ttnvgpuir.add_plan_cta(pm, …)
        calls = (node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))
        found[path.parent.name] = frozenset(
            folded(name.removeprefix("add_")) for name in calls if name.startswith("add_")
        )
    return found


@cache
def _has_argument(folder: Path, *names: str) -> bool:
    """Whether the compiler's library holds one of the names, as the argument of a pass: `tritongpu-coalesce`."""
    # The usual spelling first: each that is not there costs a search of everything.
    both = ((name.replace("_", "-"), name.replace("-", "_")) for name in names)
    spellings = [f"{name}\0".encode() for name in dict.fromkeys((*chain(*both), *names))]
    for path in (*folder.glob("_C/libtriton*.*"), *folder.glob("backends/amd/lib/libtriton_amd_codegen*")):
        try:
            with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                for start, end in _loaded_ranges(data[:_ELF_HEADER_BYTES], data) or [(0, len(data))]:
                    if any(data.find(spelling, start, end) >= 0 for spelling in spellings):
                        return True
        except (OSError, ValueError):
            return True
    return False


def probe() -> dict[str, Any]:
    answer: dict[str, Any] = dict.fromkeys(("error", "triton", "untried", "torch", "gpu"), "")
    answer |= {"backends": [], "targets": [], "refused": [], "tools": {}}
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        answer["torch"] = importlib.metadata.version("torch")
    try:
        triton_api.silence_known_noise()
        triton_api.require_triton()
    except IrscopeError as error:
        return answer | {"error": str(error)}
    answer["triton"] = triton_version()
    answer["untried"] = untried_note()
    answer["backends"] = triton_api.backend_names()
    for target in KNOWN_TARGETS:
        try:
            triton_api.make_backend(target)
            answer["targets"].append(str(target))
        except IrscopeError:
            answer["refused"].append(str(target))
    gpu = triton_api.present_gpu()
    answer["gpu"] = "" if gpu is None else str(gpu)
    answer["tools"] = {name: str(path) for name, path in triton_api.nvidia_tools().items()}
    return answer


if __name__ == "__main__":
    print(json.dumps(probe()))
    sys.stdout.flush()
    # Without the messages that the compiler prints at exit.
    os._exit(0)


def filecheck_program() -> Path:
    """FileCheck: that of the installed Triton (3.6 to 3.9 carry it), else one on the PATH; raises MissingTool."""
    try:
        program = package_folder() / "FileCheck"
        if program.is_file() and os.access(program, os.X_OK):
            return program
        where = f"Triton's package in {str(program.parent)!r} has none"
    except MissingTool:
        where = "Triton, whose wheels carry it, is not installed"
    if (found := shutil.which("FileCheck")) is not None:
        return Path(found)
    raise MissingTool(f"--filecheck needs FileCheck: {where}, and there is none on the PATH. pip install triton.")


def run_filecheck(patterns: str, text: str) -> str:
    """What FileCheck says against a text by a file of patterns; empty if it accepts it.

    Raises UsageError for a file that cannot be read, ParseError for one without patterns, or with
    wrong ones, and ToolTooSlow where FileCheck does not end.
    """
    if not Path(patterns).is_file():
        raise UsageError(f"--filecheck: the file {patterns!r} does not exist.")
    command = [str(filecheck_program()), "--color=0", "--dump-input=never", "--allow-empty", patterns]
    done = run_tool(command, text.encode("utf-8", "replace"))
    said = done.stderr.decode("utf-8", "replace").strip().replace("<stdin>", "<ir>")
    if done.returncode not in (0, 1):
        said = said or done.stdout.decode("utf-8", "replace").strip()
        raise ParseError(f"--filecheck {patterns!r}: FileCheck cannot use the file: {said}")
    return said or "FileCheck printed nothing." if done.returncode else ""
