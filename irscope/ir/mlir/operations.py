"""The operation table: what each operation of each dialect is, which memory it accesses, and how its text is written.

A row of `operations.txt` has five columns: name, kind, memory effects, form, and the rule for the types of its results.

*Effects* are `reads`, `writes`, `allocates` or `frees`, a memory space, and the operand whose memory it is: `reads
global ptr`. Several are separated by a plus sign. `memory` is the space that the operand's type names. `none` has no
effect at all. `ordered` keeps its place for another reason (a barrier, a call, a wait); an empty column too.

*Forms* follow the assembly formats of the dialects' definitions: `$ptr` is an operand, `$tokens*` a list of operands,
`$a&b` a list of pairs `%x[%y]`, `@axis` an attribute outside of the dictionary (`@@callee` a symbol, `@~value` any
text), `!exact:isExact` a keyword for a unit attribute, `~` any text; braces enclose what may be absent. Operands are
numbered as MLIR's generic form numbers them: in the order of the form, unless it ends in `; order a b c`. A row
without a form has its operands in the order of the text. Attribute dictionaries, types and locations are no part of a
form.

*Rules* for the types of results: `first` or `last` type of the text; `pointee` of the first one; `boolean` of its
shape; `element` of it; `member` of a structure; `token`, for results behind those that are written; the type itself,
which begins with `!` or is `i1`, `i32` or `index`; `?TYPE`, which stands before an abbreviated last type. An empty
column reads what follows the arrow or `to`, or else the types in their order.

Sources: the definitions of MLIR's dialects and of Triton's (3.6 to 3.9). The oracle is MLIR's own generic form of
every text that the tests record (`tests/ir/mlir/test_reader_generic_form.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal, cast, get_args

OperationKind = Literal[
    "module", "function", "call", "return", "loop", "conditional", "branch", "yield", "constant", "arithmetic", "view",
    "index", "load", "store", "atomic", "copy", "prefetch", "pointer", "descriptor", "dot", "conversion", "reduction",
    "scan", "gather", "allocation", "deallocation", "memory_view", "barrier", "wait", "arrive", "commit", "fence",
    "specialization", "assembly", "debug", "hint",
]  # fmt: skip
_EffectKind = Literal["reads", "writes", "allocates", "frees"]
Space = Literal["global", "shared", "tensor", "local", "constant", "memory"]
"""`memory`: of the space that the operand's type names."""


@dataclass(frozen=True, slots=True)
class Effect:
    kind: _EffectKind
    space: Space
    operand: str = ""
    """The operand that the memory is reached through; empty for a result, or for memory that no operand names."""


@dataclass(frozen=True, slots=True)
class OperationInfo:
    opcode: str
    """The name without the dialect for Triton's own dialects, however a version spells it; else the whole name."""
    kind: OperationKind
    effects: tuple[Effect, ...] = ()
    is_pure: bool = False
    """Whether it has no effect: it may move, or be removed, if nothing uses its results."""
    form: str = ""
    order: tuple[str, ...] = ()
    """The operands as the generic form has them, where the text has another order."""
    results: str = ""
    """The rule for the types of the results."""

    def has_effect(self, kind: _EffectKind, space: Space | None = None) -> bool:
        """Whether it has an effect of a kind, on a memory space if one is given."""
        return any(effect.kind == kind and space in (None, effect.space) for effect in self.effects)


TRITON_DIALECTS = (
    "tt", "ttg", "ttng", "amdg", "nvws", "gluon", "tti", "proton", "ttn", "nvg", "triton_gpu", "triton_nvidia_gpu",
)  # fmt: skip
_RENAMED_DIALECTS = {"amdgpu": "amdg", "triton_gpu": "ttg", "triton_nvidia_gpu": "ttng"}
_RENAMED = {
    "tt.experimental_descriptor_load": "tt.descriptor_load",
    "tt.experimental_descriptor_store": "tt.descriptor_store",
    "tt.experimental_descriptor_gather": "tt.descriptor_gather",
    "tt.experimental_descriptor_scatter": "tt.descriptor_scatter",
    "tt.experimental_descriptor_reduce": "tt.descriptor_reduce",
    "tt.experimental_tensormap_create": "ttng.tensormap_create",
    "tt.experimental_tensormap_fenceproxy_acquire": "ttng.tensormap_fenceproxy_acquire",
    "ttng.tma_store_wait": "ttng.async_tma_store_wait",
    "ttg.local_barrier": "ttg.barrier",
    "gpu.barrier": "ttg.barrier",
    "module": "builtin.module",
}


_CACHES_FORM = "{ cacheModifier = @cache}{ evictionPolicy = @evict}"
"""What `CACHES` stands for in a form."""

_BOTH = (Effect("reads", "global"), Effect("writes", "global"))
# What a dialect has so many of that the family decides.
_FAMILIES: tuple[tuple[str, OperationInfo], ...] = (
    ("rocdl.mfma.", OperationInfo("rocdl.mfma", "dot", is_pure=True, form="$a, $b, $c{, @cbsz}{, @abid}{, @blgp}{~}")),
    ("rocdl.wmma.", OperationInfo("rocdl.wmma", "dot", is_pure=True)),
    ("rocdl.smfmac.", OperationInfo("rocdl.smfmac", "dot", is_pure=True)),
    ("rocdl.cvt.", OperationInfo("rocdl.cvt", "arithmetic", is_pure=True)),
    ("rocdl.raw.ptr.buffer.atomic.", OperationInfo("rocdl.buffer.atomic", "atomic", _BOTH)),
)


def _effects(text: str) -> tuple[Effect, ...]:
    effects: list[Effect] = []
    for part in text.split(" + "):
        words = part.split()
        if words and words[0] in get_args(_EffectKind):
            operand = words[2] if len(words) > 2 else ""
            effects.append(Effect(cast(_EffectKind, words[0]), cast(Space, words[1]), operand))
    return tuple(effects)


def _opcode(name: str) -> str:
    dialect, _, rest = name.partition(".")
    return rest if dialect in TRITON_DIALECTS else name


def _rows() -> Iterator[tuple[str, OperationInfo]]:
    table = Path(__file__).with_name("operations.txt").read_text("utf-8")
    for row in table.replace("\n    ", " ").splitlines():
        if not row or row.startswith("#"):
            continue
        names, kind, effects, form, results = (part.strip() for part in row.split("|"))
        form, _, order = form.replace("CACHES", _CACHES_FORM).partition(" ; order ")
        first, *others = names.split()
        dialect = first.partition(".")[0]
        prefix = first[: first.index("mlir.") + 5] if "mlir." in first else f"{dialect}."
        prefix = "llvm.intr." if first.startswith("llvm.intr.") else prefix
        for name in (first, *(prefix + other for other in others)):
            is_pure = effects == "none"
            own_kind = cast(OperationKind, kind)
            operands = tuple(order.split())
            yield name, OperationInfo(_opcode(name), own_kind, _effects(effects), is_pure, form, operands, results)


@cache
def _table() -> dict[str, OperationInfo]:
    return dict(_rows())


@lru_cache(maxsize=4096)
def operation_info(name: str) -> OperationInfo | None:
    """The row of an operation, by its name with the dialect as any version spells it; None if there is none."""
    table = _table()
    info = table.get(name)
    if info is not None:
        return info
    renamed = _RENAMED.get(name, name)
    dialect, dot, rest = renamed.partition(".")
    info = table.get(f"{_RENAMED_DIALECTS.get(dialect, dialect)}{dot}{rest}")
    if info is not None:
        return info
    return next((family for prefix, family in _FAMILIES if name.startswith(prefix)), None)


def intrinsic_info(name: str) -> OperationInfo | None:
    """The row of an intrinsic of LLVM IR, by its name without `llvm.`: `exp2.f32`, `amdgcn.workitem.id.x`."""
    dialect, _, rest = name.partition(".")
    full = f"{_INTRINSICS[dialect]}.{rest}" if dialect in _INTRINSICS else f"llvm.intr.{name}"
    while full and operation_info(full) is None:
        # The types of overloaded operands end a name.
        full = full.rpartition(".")[0]
    return operation_info(full)


_INTRINSICS = {"nvvm": "nvvm", "amdgcn": "rocdl"}
"""The dialect that has an intrinsic's operation, by the first word of its name."""


def opcode_of(name: str) -> str:
    """The opcode of an operation's name; the name itself if the table does not know it."""
    info = operation_info(name)
    return info.opcode if info is not None else name


def is_of_dialect(name: str) -> bool:
    """Whether a name has the form of an operation's: that of a dialect of Triton's IR, as `tt.dot_scaled`."""
    dialect, dot, rest = name.partition(".")
    return bool(dot and rest) and dialect in (*TRITON_DIALECTS, *_RENAMED_DIALECTS, "scf", "arith", "math")
