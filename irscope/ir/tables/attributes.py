"""Attributes of operations: the words of enumerations, and what holds if a text leaves an attribute out."""

from __future__ import annotations

__all__ = ["DEFAULTS", "ENUMERATIONS", "NUM_STAGES"]

NUM_STAGES = "tt.num_stages"
"""What `tl.range(…, num_stages=…)` asks for, on its loop."""

_CACHES = ("", "none", "ca", "cg", "wb", "cs", "wt", "cv")
_COMPARISONS = "eq ne slt sle sgt sge ult ule ugt uge"
_FLOAT_COMPARISONS = "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true"
ENUMERATIONS: dict[str, tuple[str, ...]] = {
    "cache": _CACHES,
    "evict": ("", "evict_normal", "evict_first", "evict_last"),
    **dict.fromkeys(("tt.get_program_id:axis", "tt.get_num_programs:axis"), ("x", "y", "z")),
    "sem": ("", "relaxed", "acquire", "release", "acq_rel"),
    "scope": ("", "gpu", "cta", "sys"),
    "atomic_rmw_op": ("", "and", "or", "xor", "add", "fadd", "max", "min", "umax", "umin", "exch"),
    "inputPrecision": ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"),
    "propagateNan": ("none", "all"),
    "rounding": ("rtz", "rtne", "rs"),
    "arith.cmpi:predicate": tuple(_COMPARISONS.split()),
    "arith.cmpf:predicate": tuple(_FLOAT_COMPARISONS.split()),
    "llvm.icmp:predicate": tuple(_COMPARISONS.split()),
    "llvm.fcmp:predicate": ("_false", *_FLOAT_COMPARISONS.split()[1:15], "_true"),
    "asm_dialect": ("att", "intel"),
    "kind": ("", "add", "min", "max", "inc", "dec", "and", "or", "xor"),
    "ordering": ("not_atomic", "unordered", "monotonic", "", "acquire", "release", "acq_rel", "seq_cst"),
    "bin_op": (
        "xchg",
        "add",
        "sub",
        "_and",
        "nand",
        "_or",
        "_xor",
        "max",
        "min",
        "umax",
        "umin",
        "fadd",
        "fsub",
        "fmax",
        "fmin",
    ),
    "addrSpace": (
        "none",
        "local",
        "global_read",
        "local|global_read",
        "global_write",
        "local|global_write",
        "global_read|global_write",
        "all",
    ),
    "a_elem_type": ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "bf16", "fp16"),
    "b_elem_type": ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "bf16", "fp16"),
    "overflowFlags": ("none", "nsw", "nuw", "nsw, nuw"),
    "noWrapFlags": (
        "none",
        "inbounds_flag",
        "nusw",
        "inbounds",
        "nuw",
        "inbounds_flag|nuw",
        "nusw|nuw",
        "inbounds|nuw",
    ),
    "ttng.tmem_wait:kind": ("load", "store"),
    "roundingmode": ("to_nearest_even", "downward", "upward", "toward_zero", "to_nearest_away"),
}
"""The words of an attribute that the generic form prints as a number; by attribute, or by operation and attribute."""

DEFAULTS: dict[str, str] = {
    "fastmath": "none", "fastmathFlags": "none", "overflowFlags": "none", "isVolatile": "false", "cache": "none",
    "evict": "evict_normal", "maxNumImpreciseAcc": "0 : i32", "CConv": "ccc", "TailCallKind": "none",
    "tail_call_kind": "none", "ordering": "not_atomic", "inputPrecision": "ieee", "padding": "1 : i32",
    "noWrapFlags": "none", "contiguity": "1 : i32", "isAsync": "false", "linkage": "external",
    "unnamed_addr": "0 : i64", "visibility_": "0 : i64", "aligned": "true", "abs": "false", "nan": "false",
    "boundaryCheck": "array<i32>",
    "ub.poison:value": "#ub.poison",
    "ttng.tmem_subslice:dim": "1 : i32", "ttg.global_scratch_alloc:backend": "default",
}  # fmt: skip
"""The value of an attribute that a text leaves out, for the operations that have such an attribute."""
