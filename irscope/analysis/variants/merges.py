"""What would make one variant of several, or else Python that compiles every variant before it is needed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from irscope.analysis.variants.site import KernelVariant, Key, Site, VariantCause, alike_without
from irscope.ir.mlir import edits
from irscope.ir.mlir.reader import parse_mlir
from irscope.model.launch_record import DTYPES
from irscope.model.plain import constant_value
from irscope.model.telling import DIVISIBLE

How = Literal["do_not_specialize", "do_not_specialize_on_alignment", "remove", "runtime", "one value", "warm up"]
"""The two arguments of `@triton.jit`; the parameter removed; a constant made an argument, which was compiled; one value
of a constant or an option in the launches where it makes no difference; or nothing, but all variants compiled before
they are needed."""

_SPECIALISED: tuple[str, ...] = ("equal to 1", "divisible by 16", "aligned to 16 bytes", "attribute")
_ALIGNMENT: tuple[str, ...] = ("divisible by 16", "aligned to 16 bytes")
_ERASED: dict[How, Sequence[str]] = {
    "do_not_specialize": _SPECIALISED,
    "do_not_specialize_on_alignment": _ALIGNMENT,
}
"""The aspects that no longer count; of the other ways, all."""


@dataclass(frozen=True, slots=True)
class Group:
    """Variants that a merge makes one of."""

    members: tuple[str, ...]
    """Their ids."""
    base: str
    """The one whose IR, without the parameter's attributes, is that of the merged kernel; empty if none is."""


@dataclass(frozen=True, slots=True)
class MergeProof:
    """What compiling the merged kernel gave, against one of the variants that it is in place of."""

    variant: str
    """The id."""
    same_code: bool
    effects: tuple[str, ...] = ()
    """`10 → 14 registers`; of what is the same, nothing."""
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Merge:
    """The change that removes one cause."""

    cause: VariantCause
    how: How
    remaining: int
    groups: tuple[Group, ...] = ()
    proofs: tuple[MergeProof, ...] = field(default=())
    """Of those that were compiled; empty where nothing was tried."""
    as_argument: tuple[Group, ...] = ()
    """Of a constant that may be a plain argument: what would be one variant then. Only a compile tells."""
    along: tuple[VariantCause, ...] = ()
    """Others of the same kind that tell the same variants apart, and are merged with it."""

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters or options that it is about."""
        return (self.cause.name, *(one.name for one in self.along))


def merges_of(site: Site) -> tuple[Merge, ...]:
    """For each cause what would merge its variants, those that leave the fewest first.

    Causes that tell the same variants apart (two strides of equal tensors) are one merge: each alone changes nothing.
    """
    alike: dict[object, list[Merge]] = {}
    for cause in site.causes:
        one = _merge(site, cause)
        apart = tuple(cause.states.index(state) for state in cause.states)
        alike.setdefault((one.how, cause.use, cause.is_tuned, cause.aspects, apart), []).append(one)
    found = [_joined(site, rows) for rows in alike.values()]
    return tuple(sorted(found, key=lambda one: one.remaining))


def _joined(site: Site, merges: Sequence[Merge]) -> Merge:
    first, *rest = merges
    if not rest:
        return first
    along = tuple(one.cause for one in rest)
    if first.how in ("warm up", "one value"):
        return replace(first, along=along, as_argument=())
    return replace(_with_groups(site, [one.cause for one in merges], first.how), along=along)


def _merge(site: Site, cause: VariantCause) -> Merge:
    aspects = {aspect for aspect, _ in cause.keys}
    if cause.use in ("never read", "not in the IR"):
        return _with_groups(site, [cause], "remove")
    if aspects <= {*_ALIGNMENT}:
        return _with_groups(site, [cause], "do_not_specialize_on_alignment")
    if aspects & {*_SPECIALISED}:
        return _with_groups(site, [cause], "do_not_specialize")
    equal = _equal_code(site, cause) if aspects <= {"constexpr", "option"} and not cause.is_tuned else ()
    left = len(site.variants) - sum(len(group.members) - 1 for group in equal)
    if equal and cause.same_code == cause.pairs:
        return Merge(cause, "one value", left, equal)
    candidates = () if cause.is_tuned or not _may_be_argument(site, cause) else _apart_from(site, cause)
    if equal:
        return Merge(cause, "one value", left, equal, as_argument=candidates)
    return Merge(cause, "warm up", len(site.variants), as_argument=candidates)


def _apart_from(site: Site, cause: VariantCause) -> tuple[Group, ...]:
    """The groups of variants that differ in nothing but a cause."""
    rows = (members for members in alike_without(site.variants, cause.name) if len(members) > 1)
    return tuple(Group(tuple(one.id for one in members), members[0].id) for members in rows)


def _equal_code(site: Site, cause: VariantCause) -> tuple[Group, ...]:
    """The groups of variants that differ in nothing but a cause, and have the same code all the same.

    A constant may be read only where another one leaves a branch out.
    """
    groups: list[Group] = []
    for members in alike_without(site.variants, cause.name):
        by_code: dict[str, list[str]] = {}
        for variant in members:
            if variant.code:
                by_code.setdefault(variant.code, []).append(variant.id)
        groups += [Group(tuple(ids), "") for ids in by_code.values() if len(ids) > 1]
    return tuple(groups)


def _may_be_argument(site: Site, cause: VariantCause) -> bool:
    if cause.aspects != ("constexpr",):
        return False
    values = [dict(variant.launch.constants).get(cause.name, "") for variant in site.variants]
    return len({argument_type(value) for value in values}) == 1 and argument_type(values[0]) != ""


def argument_type(value: str) -> str:
    """The type that a constant has as an argument, as Triton names it: `i32`; empty for what is no number."""
    number = constant_value(value)
    if isinstance(number, bool):
        return "i1"
    if isinstance(number, int):
        return "i32" if -(1 << 31) <= number < 1 << 31 else "i64"
    return "fp32" if isinstance(number, float) else ""


def without_constexpr(text: str, kernel: str, name: str) -> str | None:
    """The Python text of a kernel in which a parameter is no tl.constexpr; None if it is not declared so there."""
    module = ast.parse(text)
    for function in ast.walk(module):
        if isinstance(function, ast.FunctionDef) and function.name == kernel:
            spec = function.args
            for parameter in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
                if parameter.arg == name and parameter.annotation is not None:
                    parameter.annotation = None
                    return ast.unparse(module) + "\n"
    return None


def with_argument_proofs(site: Site, merge: Merge, proofs: Sequence[MergeProof]) -> Merge:
    """A merge whose constant was compiled as a plain argument: that is what to do, unless it fails."""
    if not proofs or any(proof.failure for proof in proofs):
        return replace(merge, proofs=(*merge.proofs, *proofs))
    left = len(site.variants) - sum(len(group.members) - 1 for group in merge.as_argument)
    return replace(merge, how="runtime", remaining=left, groups=merge.as_argument, proofs=tuple(proofs))


def _with_groups(site: Site, causes: Sequence[VariantCause], how: How) -> Merge:
    names = [one.name for one in causes]
    rows = _merged(site, [(name, how) for name in names])
    groups: list[Group] = []
    for members in rows.values():
        if len(members) > 1:
            base = next((one.id for one in members if one.arguments.issuperset(names)), "")
            groups.append(Group(tuple(one.id for one in members), base))
    return Merge(causes[0], how, len(rows), tuple(groups))


def remaining(site: Site, merges: Iterable[Merge]) -> int:
    """How many variants there are after several merges."""
    chosen = list(merges)
    every: list[tuple[str, How]] = [(name, one.how) for one in chosen if one.how != "one value" for name in one.names]
    rows = list(_merged(site, every).values())
    # One value in the launches of a group: whatever else is merged, these are one.
    for group in (group for one in chosen if one.how == "one value" for group in one.groups):
        members = [row for row in rows if any(variant.id in group.members for variant in row)]
        if len(members) > 1:
            rows = [row for row in rows if row not in members]
            rows.append([variant for row in members for variant in row])
    return len(rows)


def _merged(site: Site, merges: Sequence[tuple[str, How]]) -> dict[object, list[KernelVariant]]:
    """The variants by what is left of their specialisation."""
    rows: dict[object, list[KernelVariant]] = {}
    for one in site.variants:
        key: dict[Key, str] = dict(one.specialisation.values)
        for name, how in merges:
            is_one = key.get(("equal to 1", name)) == "yes"
            erased = _ERASED.get(how)
            stays = {row for row in key if row[1] != name or (erased is not None and row[0] not in erased)}
            key = {row: value for row, value in key.items() if row in stays}
            if how == "do_not_specialize" and is_one:
                # An argument like any other.
                key["type", name] = "i32"
        rows.setdefault(tuple(sorted(key.items())), []).append(one)
    return rows


def without_attributes(source: str, names: Sequence[str], name: str, *, only_alignment: bool) -> str | None:
    """The front end's IR as it is without what a parameter was specialised on; None if it cannot be found there.

    `only_alignment`: whether all but the divisibility stays.
    """
    kernel = parse_mlir(source).kernel
    if kernel is None or names.count(name) != 1 or len(names) != len(kernel.parameters):
        return None
    return edits.without_attributes(source, names.index(name), only_alignment=only_alignment)


def effects(before: Sequence[tuple[str, int]], after: Sequence[tuple[str, int]]) -> Iterator[str]:
    """`10 → 14 registers`, for each figure that differs."""
    was, now = dict(before), dict(after)
    for name in dict.fromkeys([*was, *now]):
        if was.get(name, 0) != now.get(name, 0):
            yield f"{was.get(name, 0)} → {now.get(name, 0)} {name}"


_SET_BY_TRITON = frozenset({"debug", "instrumentation_mode", "fpsan_homomorphic_casts", "arch", "backend_name"})

_HEAD = '''"""Compiles what was compiled while this was recorded, before the first launch needs it."""

import torch
import triton
from triton.runtime.jit import MockTensor


class Unaligned(MockTensor):
    """A tensor whose address 16 does not divide."""

    data_ptr = staticmethod(lambda: 1)


def jit_function(kernel):
    """The function below @triton.autotune and @triton.heuristics."""
    while not isinstance(kernel, triton.JITFunction):
        kernel = kernel.fn
    return kernel
'''


def warmup_code(sites: Iterable[Site]) -> str:
    """A module that warms up all variants; what cannot be written as code stands in a comment."""
    parts: list[str] = [_HEAD]
    named: set[tuple[str, str]] = set()
    for site in sites:
        kernel = site.kernel
        module = Path(kernel.file).stem
        if not kernel.file:
            parts.append(_of_a_log(site))
            continue
        if not (module.isidentifier() and kernel.name.isidentifier()):
            parts.append(f"\n# {kernel.name} of {kernel.file}: not a module that can be imported.")
            continue
        lines = ["", f"# {kernel.file}:{kernel.line}, for {site.target}: {len(site.variants)} variants"]
        if (kernel.name, module) not in named:
            lines.append(f"from {module} import {kernel.name}  # noqa: E402")
            named.add((kernel.name, module))
        lines += [_call(kernel.name, one) for one in site.variants]
        parts.append("\n".join(lines))
    return "\n".join(parts) + "\n"


def _of_a_log(site: Site) -> str:
    """What is known of a kernel that a log of a server names: neither its module nor, often, its arguments."""
    name = site.kernel.name
    known = [one for one in site.variants if one.launch.signature]
    if not known:
        return f"\n# {name}: its module and its arguments are not known (vLLM: --jit-monitor-verbose)."
    calls = (_call(name, one) for one in known)
    return "\n".join(["", f"# from … import {name}  # its module is not known", *map(_commented, calls)])


def _commented(call: str) -> str:
    return call if call.startswith("#") else f"# {call}"


def _call(name: str, variant: KernelVariant) -> str:
    launch = variant.launch
    # A log has the parameters in the order of their names, or without names.
    by_name = not launch.kernel.source and not launch.signature[0][0].startswith("arg0")
    constants, attributes = dict(launch.constants), dict(launch.attributes)
    words: list[str] = []
    unknown: list[str] = []
    for parameter, kind in launch.signature:
        text = _argument(variant, parameter, kind, constants.get(parameter), attributes.get(parameter, ""))
        if text is None:
            unknown.append(f"{parameter}: {kind} {constants.get(parameter, '')}".rstrip())
        words.append(f"{parameter}={text or '...'}" if by_name else text or "...")
    options = dict(launch.set_options or ())
    if launch.set_options is None or launch.autotuning is not None:
        options |= {key: value for key, value in launch.options if key in ("num_warps", "num_stages", "num_ctas")}
    words += [
        f"{key}={value!r}" for key, value in options.items() if key not in _SET_BY_TRITON and key not in constants
    ]
    call = f"jit_function({name}).warmup({', '.join([*words, 'grid=(1,)'])})"
    return f"# {call}  # {'; '.join(unknown)}" if unknown else call


def _argument(variant: KernelVariant, name: str, kind: str, constant: str | None, attributes: str) -> str | None:
    """A value that Triton specialises as it did this one; None if none can be written."""
    if kind == "constexpr":
        return _constant(constant)
    aligned = DIVISIBLE in attributes
    if kind.startswith("*"):
        dtype = DTYPES.get(kind.removeprefix("*").removeprefix("k"))
        if dtype is None:
            return None
        return f"torch.{dtype}" if aligned else f"Unaligned(torch.{dtype})"
    record = variant.launch.record.argument(name) if variant.launch.record is not None else None
    if record is not None and isinstance(record.value, (bool, int, float)):
        return repr(record.value)
    known: dict[str, Any] = {"i1": True, "u1": True, "fp32": 1.5, "fp64": 1.5}
    if kind in known:
        return repr(known[kind])
    least = {"i32": 16, "i64": 1 << 40, "u64": 1 << 63}.get(kind)
    return None if least is None else str(least if aligned else least + 1)


def _constant(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return repr(ast.literal_eval(text))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        pass
    # fp16: an element type
    dtype = DTYPES.get(text.removeprefix("triton.language."))
    return f"triton.language.{dtype}" if dtype else None
