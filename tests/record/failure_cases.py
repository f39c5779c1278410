"""The table of failures: what fails, how, and what a reader must find in the first three lines of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from irscope.model.capture import Capture

KERNELS = Path(__file__).parent / "kernels" / "failing.py"
POINTER = "*fp32"
PRODUCT = "*fp16:16, *fp16:16, *fp32:16, i32:16"
SMALL = {"M": 32, "N": 32, "K": 32}


@dataclass(frozen=True, slots=True)
class Case:
    """One failure."""

    name: str
    kind: str
    """Of the failure; several with `|` between, where versions differ."""
    said: tuple[str, ...]
    """All of them stand in the first three lines."""
    where: str
    """How `Failure.where` begins."""
    kernel: str = ""
    signature: str = POINTER
    constexprs: dict[str, Any] = field(default_factory=lambda: {"BLOCK": 64})
    how: dict[str, Any] = field(default_factory=dict)
    text: Callable[[Capture], tuple[str, str]] | None = None
    """(text, stage) of an IR file, made of the compile of `product`; in place of a kernel."""
    before: bool = False
    """Whether it fails in a pass, so that the IR before it is kept."""
    versions: tuple[str, ...] = ()
    """Where not every version fails so: those that do."""


def _product(**how: Any) -> dict[str, Any]:
    return {"kernel": "product", "signature": PRODUCT, "how": how}


def _edited(stage: str, old: str, new: str) -> Callable[[Capture], tuple[str, str]]:
    def text(product: Capture) -> tuple[str, str]:
        assert old in product.text(stage)
        return product.text(stage).replace(old, new, 1), stage

    return text


def _written(text: str) -> Callable[[Capture], tuple[str, str]]:
    return lambda _: (text, "ttir")


_POWER = """module {
  tt.func public @k(%p: !tt.ptr<i32>) {
    %x = tt.load %p : !tt.ptr<i32>
    %y = math.ipowi %x, %x : i32
    tt.store %p, %y : !tt.ptr<i32>
    tt.return
  }
}
"""
_NEGATION = """module {
  tt.func public @k(%p: !tt.ptr<f32>) {
    %x = tt.load %p : !tt.ptr<f32>
    %s = tt.splat %x : f32 -> tensor<128xf32>
    %y = arith.negf %s : tensor<128xf32>
    %q = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
    tt.store %q, %y : tensor<128x!tt.ptr<f32>>
    tt.return
  }
}
"""
_RANGE = """module {
  tt.func public @k(%p: !tt.ptr<i32>) {
    %x = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<32xi32>
    tt.return
  }
}
"""

FRONT_END, PTXAS = "the front end", "ptxas"

CASES: tuple[Case, ...] = (
    # The front end
    Case(
        "undefined",
        "compile",
        ("NameError: nowhere is not defined", "in undefined", "+ nowhere)"),
        FRONT_END,
        "undefined",
    ),
    Case(
        "odd_range",
        "compile",
        ("range must be a power of 2", "in odd_range"),
        FRONT_END,
        "odd_range",
        "*i32",
        {"BLOCK": 100},
    ),
    Case("helper", "compile", ("NameError: missing_in_helper", "in chain", "middle("), FRONT_END, "chain"),
    Case("combine", "compile", ("NameError: missing_in_combine", "in scans"), FRONT_END, "scans"),
    Case(
        "static_assert",
        "compile",
        ("BLOCK is too small for this kernel", "in static_assert"),
        FRONT_END,
        "static_assert",
        "*i32",
    ),
    Case(
        "loop",
        "compile",
        ("Loop-carried variable total", "in untyped_loop"),
        FRONT_END,
        "untyped_loop",
        "*fp32, i32",
        {"BLOCK": 1},
    ),
    Case(
        "arguments", "compile", ("TypeError", "missing", "in one_argument_too_few"), FRONT_END, "one_argument_too_few"
    ),
    Case("pack", "compile", ("failing.py:", "packed_element attribute, 3", "^"), FRONT_END, "wrong_pack"),
    Case(
        "pack_in_helper",
        "compile",
        ("failing.py:", "packed_element attribute, 3", "^"),
        FRONT_END,
        "wrong_pack_in_helper",
    ),
    # Reading an IR file
    Case(
        "ttir_syntax",
        "parse",
        ("case.ttir", "error:", "scf.fro"),
        "stage ttir",
        text=_edited("ttir", "scf.for", "scf.fro"),
    ),
    Case("ttir_junk", "parse", ("case.ttir", ":1:1", "error:"), "stage ttir", text=_written("this is no IR\n")),
    Case(
        "ttir_operation",
        "parse",
        ("case.ttir", "error:", "tt.dott"),
        "stage ttir",
        text=_edited("ttir", "tt.dot", "tt.dott"),
    ),
    Case(
        "attribute",
        "parse",
        ("case.ttgir", "unexpected key: sizePerTread"),
        "stage ttgir",
        text=_edited("ttgir", "sizePerThread", "sizePerTread"),
    ),
    Case(
        "llir_syntax",
        "parse",
        ("expected top-level entity", "defin "),
        "stage llir",
        text=_edited("llir", "\ndefine ", "\ndefin "),
    ),
    # The verifier
    Case(
        "doubled_warps",
        "parse",
        ("error:", "invalid layout", "requires 8 warps"),
        "stage ttgir",
        text=_edited("ttgir", '"ttg.num-warps" = 4', '"ttg.num-warps" = 8'),
    ),
    Case("range", "parse", ("case.ttir", "returned tensor, 32", "64 elements"), "stage ttir", text=_written(_RANGE)),
    # A pass, and what cannot be legalised
    Case(
        "no_warps",
        "pass",
        ("failing.py:", "specifies the number of warps"),
        "ttgir:coalesce#1",
        **_product(plan="-ttgir:convert_to_ttgpuir"),
        constexprs=SMALL,
        before=True,
    ),
    Case(
        "not_inlined",
        "pass",
        ("error:", "tt.call", "^"),
        "ttgir:",
        **_product(plan="-inliner"),
        constexprs=SMALL,
        before=True,
        versions=("3.9",),
    ),
    Case(
        "not_lowered",
        "pass",
        ("cannot be converted to LLVM IR", "tt.func"),
        "stage llir",
        **_product(plan="-llir:to_llvmir"),
        constexprs=SMALL,
    ),
    Case("power", "pass", ("cannot be converted to LLVM IR", "math.ipowi"), "stage llir", text=_written(_POWER)),
    Case(
        "negation",
        "pass",
        ("failed to legalize operation 'arith.negf'",),
        "ttgir:convert_to_ttgpuir#1",
        text=_written(_NEGATION),
        before=True,
        versions=("3.6",),
    ),
    Case(
        "rule_not_reached",
        "pass",
        ("failed to legalize operation 'arith.negf'",),
        "ttgir:convert_to_ttgpuir#1",
        text=_written(_NEGATION),
        how={"plan": "-ttgir:accelerate_matmul"},
        before=True,
        versions=("3.6",),
    ),
    # Assertions, aborts, LLVM's errors
    Case(
        "assertion",
        "pass",
        ("Assertion `aElem.getType() == tgtTy' failed", "FMA.cpp"),
        "llir:to_llvmir#1",
        **_product(plan="-accelerate_matmul"),
        constexprs=SMALL,
        before=True,
    ),
    Case(
        "constraint",
        "abort",
        ("Assertion `", "Copying to an illegal type!", "SIGABRT"),
        "stage ptx",
        "bogus_constraint",
    ),
    Case(
        "constraints",
        "abort",
        ("number of input constraints does not match", "SIGABRT"),
        "stage llir",
        "too_few_constraints",
    ),
    Case(
        "amd_constraint",
        "abort",
        ("couldn't allocate output register for constraint 'q'",),
        "stage amdgcn",
        "bogus_constraint",
        how={"target": "hip:gfx942"},
        versions=("3.6", "3.7"),
    ),
    Case("abort", "abort", ("SIGABRT",), FRONT_END, "signalled", "*i32", {"NUMBER": 6}),
    # The assemblers
    Case(
        "instruction",
        "assembler",
        ("ptxas", "Not a name of any known instruction: 'bogus'", "bogus.f32", "failing.py:", "inline_asm_elementwise"),
        PTXAS,
        "bogus_instruction",
    ),
    Case("extern", "assembler", ("ptxas", "Unresolved extern function 'no_such_function'"), PTXAS, "unresolved"),
    Case(
        "ptx_file",
        "assembler",
        ("ptxas", "Unknown modifier '.pram'", "ld.pram"),
        PTXAS,
        text=_edited("ptx", "ld.param", "ld.pram"),
    ),
    Case(
        "amd_instruction",
        "assembler",
        ("invalid instruction",),
        "the AMD assembler",
        "amd_bogus",
        how={"target": "hip:gfx942"},
    ),
    # It hangs
    Case("endless", "timeout", ("took longer than 2 s",), FRONT_END, "hangs", "*i32", {"NUMBER": 1}, {"timeout_s": 2}),
    Case(
        "sort",
        "timeout",
        ("took longer than 4 s",),
        "",
        "sorted_block",
        POINTER,
        {"BLOCK": 262144},
        {"timeout_s": 4},
        before=True,
    ),
    # It does not fit
    Case(
        "shared",
        "fit",
        ("failed to fit", "shared memory: 131072 bytes", "101376", "limit exceeded by 29696"),
        PTXAS,
        **_product(target="cuda:86", options={"num_stages": 5}),
        constexprs={"M": 64, "N": 64, "K": 128},
    ),
    Case(
        "amd_shared",
        "fit",
        ("failed to fit", "shared memory: 98304 bytes", "65536", "limit exceeded by 32768"),
        "the AMD assembler",
        **_product(target="hip:gfx942", options={"num_stages": 4}),
        constexprs={"M": 64, "N": 64, "K": 128},
    ),
    Case(
        "threads",
        "fit",
        ("failed to fit", "threads: 2048", "limit exceeded by 1024"),
        PTXAS,
        "wide",
        how={"options": {"num_warps": 64}},
    ),
    Case(
        "amd_threads",
        "fit",
        ("failed to fit", "threads: 2048", "limit exceeded by 1024"),
        "the AMD assembler",
        "wide",
        how={"target": "hip:gfx942", "options": {"num_warps": 32}},
    ),
    Case(
        "cluster",
        "fit",
        ("failed to fit", "cluster: 32 CTAs", "limit exceeded by 16"),
        PTXAS,
        "wide",
        how={"options": {"num_ctas": 32}},
    ),
    Case(
        "registers",
        "fit",
        ("failed to fit", "registers: ", "65536 available"),
        PTXAS,
        **_product(target="cuda:80", options={"num_warps": 16, "maxnreg": 255, "num_stages": 1}),
        constexprs={"M": 256, "N": 256, "K": 16},
    ),
    # Memory runs out, which where the exception leaves LLVM's own code may end in an assertion of that code; a signal
    # from elsewhere
    Case(
        "memory",
        "abort|pass|resources",
        ("out of memory | was ended by SIGABRT",),
        "",
        "hungry",
        POINTER,
        {"BLOCK": 1 << 17, "MEGABYTES": 16},
    ),
    Case(
        "killed",
        "abort",
        ("SIGKILL", "when the system is out of memory"),
        FRONT_END,
        "signalled",
        "*i32",
        {"NUMBER": 9},
    ),
    Case("segmentation", "abort", ("SIGSEGV",), FRONT_END, "signalled", "*i32", {"NUMBER": 11}),
)

EVERY_VERSION = frozenset(
    (
        "helper", "pack_in_helper", "ttir_operation", "attribute", "doubled_warps", "no_warps", "not_inlined",
        "not_lowered", "negation", "rule_not_reached", "assertion", "constraint", "amd_constraint", "instruction",
        "amd_instruction", "memory",
    )
)  # fmt: skip
"""The names of the cases that are run under every version: their words are the compiler's own."""

LIKE_OTHERS = frozenset(
    ("odd_range", "combine", "loop", "pack", "range", "power", "threads", "amd_threads", "ptx_file", "segmentation")
)
"""The names of the cases that fail as another one does, at the same place: `make exhaustive` runs them."""
