"""The planted kernels as cases: a cause, and its clean twin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from irscope.analysis.findings.find import findings_of
from irscope.analysis.findings.model import Finding
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.record.compile.compiler_log import find_log
from irscope.record.compile.operations import find_operations
from irscope.record.process.requests import RecordRequest, request_for
from irscope.record.process.session import Recording, record_request

PLANTED = Path(__file__).parent / "planted.py"
_DOT = "*fp16:16, *fp16:16, *fp32:16"


@dataclass(frozen=True)
class Variant:
    """One compile of a planted kernel."""

    kernel: str
    signature: str
    constexprs: tuple[tuple[str, object], ...] = ()
    options: tuple[tuple[str, int], ...] = ()
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
    """The change of a suggestion that must have helped; empty if there is none to try."""
    also: tuple[str, ...] = ()
    """What else of the launch its causes may name."""

    @property
    def name(self) -> str:
        return f"{self.code}-{self.planted.kernel}-{self.cause}"


def _variant(kernel: str, signature: str, options: tuple[tuple[str, int], ...] = (), **constexprs: object) -> Variant:
    return Variant(kernel, signature, tuple(constexprs.items()), options)


LOGGED = ("IRS201", "IRS302", "IRS303")
"""Kinds that the log tells of; of the others it only has more evidence."""
_CUDA = ("cuda:80", "cuda:90", "cuda:100")
_ROW = "*fp16:16, *fp16:16"
_WORDS = "*fp32:16, *fp32:16"
CASES = (
    Case("IRS101", _variant("row", f"{_ROW}, i32", BLOCK=1024), _variant("row", f"{_ROW}, i32:16", BLOCK=1024),
         "stride", _CUDA, helps="stride divisible by 16"),
    Case("IRS101", _variant("row", "*fp16, *fp16:16, i32:16", BLOCK=1024),
         _variant("row", f"{_ROW}, i32:16", BLOCK=1024), "x", _CUDA, helps="x divisible by 16"),
    Case("IRS102", _variant("row_out", f"{_ROW}, i32", BLOCK=1024), _variant("row_out", f"{_ROW}, i32:16", BLOCK=1024),
         "stride", _CUDA, helps="stride divisible by 16"),
    Case("IRS101", _variant("two_strides", f"{_ROW}, i32:16, i32", BLOCK=1024),
         _variant("two_strides", f"{_ROW}, i32:16, i32:16", BLOCK=1024), "inner", _CUDA,
         helps="inner divisible by 16"),
    Case("IRS101", _variant("two_strides", f"{_ROW}, i32, i32:16", BLOCK=1024),
         _variant("two_strides", f"{_ROW}, i32:16, i32:16", BLOCK=1024), "outer", _CUDA,
         helps="outer divisible by 16"),
    Case("IRS101", _variant("counted", f"{_ROW}, i32", BLOCK=1024), _variant("counted", f"{_ROW}, i32:16", BLOCK=1024),
         "n", _CUDA, helps="n divisible by 16"),
    Case("IRS101", _variant("fixed_mask", _ROW, END=1001, BLOCK=1024),
         _variant("fixed_mask", _ROW, END=1008, BLOCK=1024), "mask", _CUDA),
    Case("IRS101", _variant("helped", f"{_ROW}, i32", BLOCK=1024), _variant("helped", f"{_ROW}, i32:16", BLOCK=1024),
         "stride", _CUDA, helps="stride divisible by 16"),
    Case("IRS101", _variant("stepped", f"{_ROW}, i32", BLOCK=1024), _variant("every", _ROW, STEP=1, BLOCK=1024),
         "step", helps="step = 1"),
    Case("IRS103", _variant("every", _ROW, STEP=2, BLOCK=1024), _variant("every", _ROW, STEP=1, BLOCK=1024), "apart"),
    Case("IRS103", _variant("every", _ROW, STEP=16, BLOCK=1024), _variant("every", _ROW, STEP=1, BLOCK=1024), "apart"),
    Case("IRS103", _variant("every_out", _ROW, STEP=4, BLOCK=1024), _variant("every_out", _ROW, STEP=1, BLOCK=1024),
         "apart"),
    Case("IRS201", _variant("product", f"{_DOT}, i32:16, i32", TILE=64),
         _variant("product", f"{_DOT}, i32:16, i32:16", TILE=64), "tight", _CUDA, helps="tight divisible by 16"),
    Case("IRS101", _variant("product", f"{_DOT}, i32:16, i32", TILE=64),
         _variant("product", f"{_DOT}, i32:16, i32:16", TILE=64), "tight", _CUDA, helps="tight divisible by 16"),
    Case("IRS302", _variant("product", f"{_DOT}, i32:16, i32", TILE=64),
         _variant("product", f"{_DOT}, i32:16, i32:16", TILE=64), "tight", ("cuda:90",), helps="tight divisible by 16"),
    Case("IRS201", _variant("tiles", f"{_DOT}, i32:16", (("num_stages", 1),), TILE=64),
         _variant("tiles", f"{_DOT}, i32:16", TILE=64), "num_stages", _CUDA, helps="num_stages=3"),
    Case("IRS201", _variant("turning", f"{_DOT}, i32:16", TILE=64),
         _variant("tiles", f"{_DOT}, i32:16", TILE=64), "while", _CUDA),
    Case("IRS302", _variant("used", f"{_DOT}, i32:16", SCALE=True, TILE=64),
         _variant("used", f"{_DOT}, i32:16", SCALE=False, TILE=64), "unconditionally used", ("cuda:90",)),
    Case("IRS303", _variant("serialised", f"{_DOT}, i32:16", TELL=True, TILE=64),
         _variant("serialised", f"{_DOT}, i32:16", TELL=False, TILE=64), "C7510", ("cuda:90",)),
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
         _variant("held", "*fp32:16, *fp32:16, i32", TILE=32), "stored", _CUDA, is_of_kernel=True,
         helps="num_warps=8"),
    Case("IRS503", _variant("tiles", f"{_DOT}, i32:16", (("num_stages", 5),), TILE=128),
         _variant("tiles", f"{_DOT}, i32:16", (("num_stages", 2),), TILE=128), "num_stages", ("cuda:80", "cuda:90"),
         is_of_kernel=True, helps="num_stages=2"),
)  # fmt: skip
"""Two thirds of them are about accesses, which are most of what users ask about."""


Run = Callable[[RecordRequest], Recording]


@cache
def compiled(variant: Variant, target: str, logged: bool, run: Run = record_request) -> Capture:
    """A variant as `why` studies it: with its layouts, operations and, if asked for, log; `run` compiles."""
    asked = RecordingOptions(
        signature=variant.signature,
        constexprs=tuple((name, str(value)) for name, value in variant.constexprs),
        targets=(target,),
        options=variant.options,
        disassemble=False,
    )
    capture = run(request_for(variant.file, asked, kernel=variant.kernel)).captures[0]
    if capture.failure is not None and "ttgir" not in capture.stages:
        return capture
    capture = replace(capture, operations=find_operations(capture, run, stages=("ptx", "amdgcn")))
    return replace(capture, log=find_log(capture, run)) if logged else capture


def found_in(variant: Variant, target: str, code: str) -> list[Finding]:
    """The findings of one kind."""
    return [one for one in findings_of(compiled(variant, target, code in LOGGED)) if one.code == code]


def marked_lines(kernel: str, code: str, file: Path = PLANTED) -> set[int]:
    """The lines of a kernel, and of the helpers that it calls, that a finding of a kind must name."""
    functions = _functions(file)
    reached, waiting = set[str](), [kernel]
    while waiting:
        reached.add(name := waiting.pop())
        text = "\n".join(functions[name].values())
        waiting += [one for one in functions if one.startswith("_") and f"{one}(" in text and one not in reached]
    lines = [row for name in reached for row in functions[name].items()]
    return {number for number, line in lines if "# here:" in line and code in line}


def _functions(file: Path) -> dict[str, dict[int, str]]:
    """Function → its lines by their numbers."""
    functions: dict[str, dict[int, str]] = {}
    name = ""
    for number, line in enumerate(file.read_text().split("\n"), 1):
        name = line.removeprefix("def ").partition("(")[0] if line.startswith("def ") else name
        functions.setdefault(name, {})[number] = line
    return functions
