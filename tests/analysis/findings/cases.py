"""The planted kernels as cases: a cause, and its clean twin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from irscope.analysis.findings.find import needs_operations
from irscope.analysis.findings.studied import Studied
from irscope.model.capture import Capture
from irscope.model.launch_record import Argument, LaunchRecord
from irscope.model.recording_options import RecordingOptions
from irscope.record.compile.second import find_log, find_operations
from irscope.record.process.requests import RecordRequest, request_for
from irscope.record.process.session import compiled as one_capture
from irscope.record.triton.versions import triton_version

PLANTED = Path(__file__).parent / "planted.py"
_DOT = "*fp16:16, *fp16:16, *fp32:16"


@dataclass(frozen=True)
class Variant:
    """One compile of a planted kernel."""

    kernel: str
    signature: str
    constexprs: tuple[tuple[str, object], ...] = ()
    options: tuple[tuple[str, int], ...] = ()
    grid: tuple[int, int, int] | None = None
    """The programs of its launch; None if it has none."""
    sizes: tuple[tuple[str, int], ...] = ()
    """The integers that it was launched with."""
    file: Path = PLANTED


@dataclass(frozen=True)
class Case:
    """A cause, and the same kernel without it."""

    code: str
    planted: Variant
    clean: Variant
    cause: str
    """What the causes of the finding must name; the argument, as a rule."""
    targets: tuple[str, ...] = ("cuda:80", "cuda:90", "cuda:100", "hip:gfx942")
    is_of_kernel: bool = False
    """Whether it is about the whole kernel: no line is to be named."""
    helps: str = ""
    """The change of a suggestion that must have helped, or the end of one of layouts; empty if there is none to try."""
    also: tuple[str, ...] = ()
    """What else of the launch its causes may name."""

    @property
    def name(self) -> str:
        return f"{self.code}-{self.planted.kernel}-{self.cause}"


def _launched(variant: Variant, *grid: int, **sizes: int) -> Variant:
    x, y, z = (*grid, 1, 1)[:3]
    return replace(variant, grid=(x, y, z), sizes=tuple(sizes.items()))


def _variant(kernel: str, signature: str, options: tuple[tuple[str, int], ...] = (), **constexprs: object) -> Variant:
    return Variant(kernel, signature, tuple(constexprs.items()), options)


DISASSEMBLED = ("IRS504", "IRS602")
"""Kinds that SASS tells of."""
LOGGED = ("IRS201", "IRS302", "IRS303")
"""Kinds that the log tells of; of the others it only has more evidence."""
_CUDA = ("cuda:80", "cuda:90", "cuda:100")
_ROW = "*fp16:16, *fp16:16"
_WORDS = "*fp32:16, *fp32:16"
TAKES_LAST = not triton_version().startswith("3.6.")
"""Whether `coalesce` lays an access of which it knows nothing along its last dimension; Triton 3.6 takes the first."""
ROUNDS_SUMS = triton_version().startswith(("3.6.", "3.7."))
"""Whether `combine` makes a dot in TF32 of a sum of f32 products; from Triton 3.8 on the dot has no inputPrecision."""
CASES = (
    Case("IRS101", _variant("row", f"{_ROW}, i32", BLOCK=1024), _variant("row", f"{_ROW}, i32:16", BLOCK=1024),
         "stride", helps="stride divisible by 16"),
    Case("IRS101", _variant("row", "*fp16, *fp16:16, i32:16", BLOCK=1024),
         _variant("row", f"{_ROW}, i32:16", BLOCK=1024), "x", helps="x divisible by 16"),
    Case("IRS102", _variant("row_out", f"{_ROW}, i32", BLOCK=1024), _variant("row_out", f"{_ROW}, i32:16", BLOCK=1024),
         "stride", helps="stride divisible by 16"),
    Case("IRS101", _variant("two_strides", f"{_ROW}, i32:16, i32", BLOCK=1024),
         _variant("two_strides", f"{_ROW}, i32:16, i32:16", BLOCK=1024), "inner", helps="inner divisible by 16"),
    Case("IRS101", _variant("two_strides", f"{_ROW}, i32, i32:16", BLOCK=1024),
         _variant("two_strides", f"{_ROW}, i32:16, i32:16", BLOCK=1024), "outer", helps="outer divisible by 16"),
    Case("IRS101", _variant("counted", f"{_ROW}, i32", BLOCK=1024), _variant("counted", f"{_ROW}, i32:16", BLOCK=1024),
         "n", helps="n divisible by 16"),
    Case("IRS101", _variant("fixed_mask", _ROW, END=1005, BLOCK=1024),
         _variant("fixed_mask", _ROW, END=1008, BLOCK=1024), "mask", helps="END = 1008"),
    Case("IRS101", _variant("helped", f"{_ROW}, i32", BLOCK=1024), _variant("helped", f"{_ROW}, i32:16", BLOCK=1024),
         "stride", helps="stride divisible by 16"),
    Case("IRS101", _variant("stepped", f"{_ROW}, i32", BLOCK=1024), _variant("every", _ROW, STEP=1, BLOCK=1024),
         "step", helps="step = 1"),
    *(Case("IRS103", _launched(_variant(name, f"{_WORDS}, i32", LAST=not TAKES_LAST, TILE=64), 15, size=1001),
           _launched(_variant(name, f"{_WORDS}, i32", LAST=TAKES_LAST, TILE=64), 15, size=1001), "cannot derive",
           helps=f"order {'[1, 0] → [0, 1]' if TAKES_LAST else '[0, 1] → [1, 0]'}", also=("size",))
      for name in ("wrapped", "wrapped_out")),
    Case("IRS103", _variant("every", _ROW, STEP=2, BLOCK=1024), _variant("every", _ROW, STEP=1, BLOCK=1024), "stride"),
    Case("IRS103", _variant("every", _ROW, STEP=16, BLOCK=1024), _variant("every", _ROW, STEP=1, BLOCK=1024), "stride"),
    Case("IRS103", _variant("every_out", _ROW, STEP=4, BLOCK=1024), _variant("every_out", _ROW, STEP=1, BLOCK=1024),
         "stride"),
    Case("IRS201", _variant("product", f"{_DOT}, i32:16, i32", TILE=64),
         _variant("product", f"{_DOT}, i32:16, i32:16", TILE=64), "tight", _CUDA, helps="tight divisible by 16"),
    Case("IRS101", _variant("product", f"{_DOT}, i32:16, i32", TILE=64),
         _variant("product", f"{_DOT}, i32:16, i32:16", TILE=64), "tight", helps="tight divisible by 16"),
    Case("IRS302", _variant("product", f"{_DOT}, i32:16, i32", TILE=64),
         _variant("product", f"{_DOT}, i32:16, i32:16", TILE=64), "tight", ("cuda:90",), helps="tight divisible by 16"),
    Case("IRS201", _variant("tiles", f"{_DOT}, i32:16", (("num_stages", 1),), TILE=64),
         _variant("tiles", f"{_DOT}, i32:16", TILE=64), "num_stages", _CUDA, helps="num_stages=3"),
    Case("IRS201", _variant("unrolled", f"{_DOT}, i32:16", (("num_stages", 1),), TILE=32),
         _variant("unrolled", f"{_DOT}, i32:16", TILE=32), "num_stages is 1", _CUDA),
    Case("IRS201", _variant("twice", f"{_DOT}, i32:16", STAGES=1, TILE=32),
         _variant("twice", f"{_DOT}, i32:16", STAGES=3, TILE=32), "num_stages of its loop is 1", _CUDA),
    Case("IRS201", _variant("turning", f"{_DOT}, i32:16", TILE=64),
         _variant("tiles", f"{_DOT}, i32:16", TILE=64), "while", _CUDA),
    Case("IRS201", _variant("tiles", f"{_DOT}, i32:16", (("num_stages", 1),), TILE=64),
         _variant("tiles", f"{_DOT}, i32:16", (("num_stages", 2),), TILE=64), "num_stages", ("hip:gfx942",),
         helps="num_stages=2"),
    Case("IRS201", _variant("turning", f"{_DOT}, i32:16", TILE=64),
         _variant("tiles", f"{_DOT}, i32:16", TILE=64), "while", ("hip:gfx942",)),
    Case("IRS201", _variant("kept_in", f"{_DOT}, i32:16", HOW=1, TILE=64),
         _variant("kept_in", f"{_DOT}, i32:16", HOW=0, TILE=64), "barrier"),
    Case("IRS201", _variant("kept_in", f"{_DOT}, i32:16", HOW=2, TILE=64),
         _variant("kept_in", f"{_DOT}, i32:16", HOW=0, TILE=64), "another loop"),
    Case("IRS201", _variant("kept_in", f"{_DOT}, i32:16", HOW=3, TILE=64),
         _variant("kept_in", f"{_DOT}, i32:16", HOW=0, TILE=64), "yields %"),
    Case("IRS202", _variant("gathered", f"{_DOT}, *i32:16, i32:16", GATHER=True, TILE=64),
         _variant("gathered", f"{_DOT}, *i32:16, i32:16", GATHER=False, TILE=64), "another load", _CUDA,
         helps="num_stages=5"),
    Case("IRS202", _variant("gathered", f"{_DOT}, *i32:16, i32:16", (("num_stages", 3),), GATHER=True, TILE=64),
         _variant("gathered", f"{_DOT}, *i32:16, i32:16", (("num_stages", 3),), GATHER=False, TILE=64),
         "another load", ("hip:gfx942",), helps="num_stages=5"),
    Case("IRS302", _variant("used", f"{_DOT}, i32:16", SCALE=True, TILE=64),
         _variant("used", f"{_DOT}, i32:16", SCALE=False, TILE=64), "unconditionally used", ("cuda:90",)),
    Case("IRS303", _variant("serialised", f"{_DOT}, i32:16", TELL=True, TILE=64),
         _variant("serialised", f"{_DOT}, i32:16", TELL=False, TILE=64), "C7510", ("cuda:90",)),
    Case("IRS201", _variant("locked", f"{_DOT}, *i32:16, i32:16", LOCK=True, TILE=64),
         _variant("locked", f"{_DOT}, *i32:16, i32:16", LOCK=False, TILE=64), "another loop is inside", _CUDA),
    Case("IRS601", _variant("dot", "*fp32:16, *fp32:16, *fp32:16", HOW="ieee", M=64, TILE=64),
         _variant("dot", "*fp32:16, *fp32:16, *fp32:16", HOW="tf32", M=64, TILE=64), "input_precision",
         _CUDA),
    Case("IRS301", _variant("dot", _DOT, HOW="ieee", M=32, TILE=32),
         _variant("row", f"{_ROW}, i32:16", BLOCK=1024), "cuda:75", ("cuda:75",)),
    Case("IRS401", _variant("turned", _ROW, TURN=True, TILE=64), _variant("turned", _ROW, TURN=False, TILE=64),
         "store (line"),
    Case("IRS402", _variant("through", _WORDS, PHASES=1, TILE=32),
         _variant("through", _WORDS, PHASES=32, TILE=32), "wavefronts", _CUDA),
    Case("IRS501", _variant("held", "*fp32:16, *fp32:16, i32", TILE=128),
         _variant("held", "*fp32:16, *fp32:16, i32", TILE=16), "stored", _CUDA, is_of_kernel=True,
         helps="num_warps=8"),
    Case("IRS501", _variant("held", "*fp32:16, *fp32:16, i32", (("waves_per_eu", 8),), TILE=128),
         _variant("held", "*fp32:16, *fp32:16, i32", TILE=32), "of total (planted.py", ("hip:gfx942",),
         is_of_kernel=True, helps="waves_per_eu=0", also=("waves_per_eu",)),
    Case("IRS502", _variant("crowded", "*fp32:16, *fp32:16, i32", TILE=128),
         _variant("crowded", "*fp32:16, *fp32:16, i32", TILE=32), "registers", _CUDA, is_of_kernel=True,
         helps="num_warps=8"),
    # What helps differs: with num_warps=8, the LLVM of Triton 3.6 spills.
    Case("IRS502", _variant("crowded", "*fp32:16, *fp32:16, i32", TILE=256),
         _variant("crowded", "*fp32:16, *fp32:16, i32", TILE=64), "registers", ("hip:gfx942",), is_of_kernel=True),
    Case("IRS502", _variant("tiles", f"{_DOT}, i32:16", (("num_stages", 8),), TILE=64),
         _variant("tiles", f"{_DOT}, i32:16", (("num_stages", 2),), TILE=64), "shared memory", ("cuda:90",),
         is_of_kernel=True, helps="num_stages=4"),
    Case("IRS504", _variant("blended", f"{_DOT}, *fp32:16, *fp32:16, i32:16", HEAVY=True, TILE=64),
         _variant("blended", f"{_DOT}, *fp32:16, *fp32:16, i32:16", HEAVY=False, TILE=64), "are live at once",
         _CUDA, helps="num_warps=8"),
    Case("IRS602", _variant("added", "*bf16:16, *bf16:16", BLOCK=128), _variant("added", _WORDS, BLOCK=128),
         "compare-and-swap", ("cuda:80", "cuda:90", "hip:gfx942")),
    Case("IRS602", _variant("added", _ROW, BLOCK=128), _variant("added", _ROW, BLOCK=512), "adjacent pairs of f16",
         ("cuda:75", "cuda:80", "cuda:100", "hip:gfx942", "cuda:90")),
    Case("IRS603", _variant("dot", "*fp32:16, *fp32:16, *fp32:16", HOW="tf32", M=64, TILE=64),
         _variant("dot", "*fp32:16, *fp32:16, *fp32:16", HOW="ieee", M=64, TILE=64), "input_precision"),
    Case("IRS603", _variant("dot", "*fp32:16, *fp32:16, *fp32:16", HOW="tf32", M=64, TILE=64),
         _variant("dot", _DOT, HOW="tf32", M=64, TILE=64), "input_precision"),
    Case("IRS603", _variant("widened", "*bf16:16, *bf16:16, *fp32:16", MORE=True, TILE=64),
         _variant("widened", "*bf16:16, *bf16:16, *fp32:16", MORE=False, TILE=64), "operand 1 is exact"),
    Case("IRS701", _launched(_variant("far_rows", f"{_ROW}, i32", WIDE=False, BLOCK=64), 40_000, stride=1 << 16),
         _launched(_variant("far_rows", f"{_ROW}, i32", WIDE=True, BLOCK=64), 40_000, stride=1 << 16),
         "39,999 × 65,536", also=("stride",)),
    Case("IRS701", _launched(_variant("masked_far", f"{_ROW}, i32", BLOCK=1024), (1 << 21) + 1, n=(1 << 31) - 64),
         _launched(_variant("masked_far", f"{_ROW}, i32", BLOCK=1024), 1 << 21, n=(1 << 31) - 64), "wraps around",
         also=("n",)),
    Case("IRS701", _launched(_variant("summed_far", f"{_WORDS}, i32, i32", BLOCK=128), 1, size=3000, step=1_000_000),
         _launched(_variant("summed_far", f"{_WORDS}, i32, i32", BLOCK=128), 1, size=2000, step=1_000_000),
         "step is 1000000", also=("size",)),
    Case("IRS701", _launched(_variant("far_rows", f"{_ROW}, i32", WIDE=False, BLOCK=64), 40_000, stride=1 << 16),
         _launched(_variant("hashed", _ROW, BLOCK=64), 40_000), "wraps around", also=("stride",)),
    Case("IRS503", _variant("tiles", f"{_DOT}, i32:16", (("num_stages", 5),), TILE=128),
         _variant("tiles", f"{_DOT}, i32:16", (("num_stages", 2),), TILE=128), "num_stages", ("cuda:80", "cuda:90"),
         is_of_kernel=True, helps="num_stages=3"),
)  # fmt: skip
"""Two thirds of them are about accesses, which are most of what users ask about."""


Run = Callable[[RecordRequest], Capture]


@cache
def compiled(
    variant: Variant, target: str, logged: bool, disassembled: bool = False, run: Run = one_capture
) -> Capture:
    """A variant as `why` studies it: with its layouts, the operations if they matter, and, if asked for, log and SASS.

    `run` compiles.
    """
    if logged:
        capture = compiled(variant, target, False, disassembled, run)
        return replace(capture, log=find_log(capture, run)) if "ttgir" in capture.stages else capture
    asked = RecordingOptions(
        signature=variant.signature,
        constexprs=tuple((name, str(value)) for name, value in variant.constexprs),
        targets=(target,),
        options=variant.options,
        disassemble=disassembled,
    )
    capture = run(request_for(variant.file, asked, kernel=variant.kernel))
    if variant.grid is not None:
        capture = replace(capture, launch=replace(capture.launch, grid=variant.grid, record=_record(capture, variant)))
    if capture.failure is not None and "ttgir" not in capture.stages:
        return capture
    if needs_operations(Studied(capture)):
        return replace(capture, operations=find_operations(capture, run, stages=("ptx", "amdgcn")))
    return capture


def _record(capture: Capture, variant: Variant) -> LaunchRecord:
    """The launch that a variant stands for: tensors that begin at multiples of 512 bytes, and its integers."""
    sizes = dict(variant.sizes)
    return LaunchRecord(
        tuple(
            Argument(name, "scalar", "int", sizes[name])
            if name in sizes
            else Argument(name, "tensor", "float32", storage_offset=0, alignment_bytes=512)
            for name, kind in capture.launch.signature
            if kind != "constexpr"
        )
    )


def of_code(variant: Variant, target: str, code: str, logged: bool | None = None, run: Run = one_capture) -> Capture:
    """A variant with what a kind is found by; `logged` if it is to be as said."""
    logged = code in LOGGED if logged is None else logged
    return compiled(variant, target, logged, code in DISASSEMBLED and target.startswith("cuda"), run)


def marked_lines(kernel: str, code: str, file: Path = PLANTED) -> set[int]:
    """The lines of a kernel, and of the helpers that it calls, that a finding of a kind must name."""
    return {number for number, line in _lines(kernel, file).items() if "# here:" in line and code in line}


def code_lines(variant: Variant) -> set[int]:
    """The lines of a kernel, and of the helpers that it calls, that are not empty."""
    return {number for number, line in _lines(variant.kernel, variant.file).items() if line.strip()}


def _lines(kernel: str, file: Path) -> dict[int, str]:
    functions = _functions(file)
    reached, waiting = set[str](), [kernel]
    while waiting:
        reached.add(name := waiting.pop())
        text = "\n".join(functions[name].values())
        waiting += [one for one in functions if one.startswith("_") and f"{one}(" in text and one not in reached]
    return dict(row for name in reached for row in functions[name].items())


def _functions(file: Path) -> dict[str, dict[int, str]]:
    """Function → its lines by their numbers."""
    functions: dict[str, dict[int, str]] = {}
    name = ""
    for number, line in enumerate(file.read_text().split("\n"), 1):
        name = line.removeprefix("def ").partition("(")[0] if line.startswith("def ") else name
        functions.setdefault(name, {})[number] = line
    return functions
