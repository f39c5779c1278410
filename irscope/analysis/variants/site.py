"""The variants of one kernel: what distinguishes them, whether the kernel uses it, and whether the code differs."""

from __future__ import annotations

import ast
import hashlib
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from irscope.analysis.resources import WRITTEN, instruction_families
from irscope.errors import ParseError
from irscope.ir.asm.resources import parse_elf
from irscope.ir.locations.strip import strip_locations
from irscope.ir.mlir.model import Operation
from irscope.ir.mlir.reader import parse_mlir
from irscope.model.capture import Capture, Kernel, Launch, stage_named
from irscope.model.plain import constant_value, python_tree
from irscope.model.telling import DIVISIBLE
from irscope.target import Target


@dataclass(frozen=True, slots=True)
class KernelText:
    """What the Python text of a kernel says of its parameters; empty where there is no text that can be read."""

    constexprs: frozenset[str] = frozenset()
    """Those annotated as `tl.constexpr`."""
    reads: tuple[tuple[str, int], ...] = ()
    """(parameter, line of the file) of each place where one is read."""
    is_known: bool = False

    def is_constexpr(self, name: str) -> bool | None:
        """Whether a parameter is declared a constant; None where that is not known."""
        return name in self.constexprs if self.is_known else None

    def lines_of(self, name: str) -> tuple[int, ...]:
        return tuple(dict.fromkeys(line for other, line in self.reads if other == name))


def read_kernel(kernel: Kernel) -> KernelText:
    """Read the text of a kernel; one that cannot be read gives an empty KernelText."""
    module = python_tree(textwrap.dedent(kernel.source))
    function = next((one for one in module.body if isinstance(one, ast.FunctionDef)), None)
    if function is None:
        return KernelText()
    spec = function.args
    parameters = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]
    names = {one.arg for one in parameters}
    before = max(kernel.first_line, 1) - 1
    constexprs = {one.arg for one in parameters if one.annotation and "constexpr" in ast.unparse(one.annotation)}
    reads = [
        (node.id, before + node.lineno)
        for statement in function.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names
    ]
    return KernelText(frozenset(constexprs), tuple(reads), True)


_Aspect = Literal["type", "equal to 1", "divisible by 16", "aligned to 16 bytes", "attribute", "constexpr", "option"]
"""What of a parameter, or of the options, decides that a launch is compiled of its own."""

Key = tuple[_Aspect, str]
"""(aspect, name of the parameter or option)."""


@dataclass(frozen=True, slots=True)
class _Specialisation:
    """Everything that Triton's cache key has of a launch, by aspect and name."""

    values: Mapping[Key, str]

    def without(self, name: str) -> tuple[tuple[Key, str], ...]:
        return tuple(sorted(row for row in self.values.items() if row[0][1] != name))

    def state_of(self, name: str) -> str:
        """One parameter or option in short: `i32 %16`, `=1`, `*fp16 unaligned`, `64`."""
        held = {aspect: value for (aspect, other), value in self.values.items() if other == name}
        if "constexpr" in held or "option" in held:
            return held.get("constexpr", held.get("option", ""))
        parts = [held.get("type", "")]
        if held.get("equal to 1") == "yes":
            parts.append("=1")
        if held.get("divisible by 16") == "yes":
            parts.append("%16")
        if held.get("aligned to 16 bytes") == "no":
            parts.append("unaligned")
        parts.append(held.get("attribute", ""))
        return " ".join(filter(None, parts))


def _specialisation_of(capture: Capture, text: KernelText, runtime: frozenset[str]) -> _Specialisation:
    """`runtime`: the parameters that are arguments of some variant's IR, so that a constant is a specialised value."""
    values: dict[Key, str] = {}
    constants = dict(capture.launch.constants)
    attributes = dict(capture.launch.attributes)
    for name, kind in capture.launch.signature:
        is_declared = text.is_constexpr(name)
        if kind == "constexpr" and name not in runtime and is_declared is not False:
            values["constexpr", name] = constants.get(name, "")
        elif kind == "constexpr":
            value = constants.get(name, "")
            if constant_value(value) == 1:
                values["equal to 1", name] = "yes"
            else:
                # None, and what else is no argument.
                values["type", name] = value
        else:
            values["type", name] = kind
            rows = [row for row in attributes.get(name, "").split(", ") if row]
            is_divisible = DIVISIBLE in rows
            if kind.startswith("*"):
                values["aligned to 16 bytes", name] = _yes(is_divisible)
            elif kind.startswith(("i", "u")) and kind not in ("i1", "u1"):
                values["equal to 1", name] = "no"
                values["divisible by 16", name] = _yes(is_divisible)
            elif is_divisible:
                values["attribute", name] = DIVISIBLE
            if others := [row for row in rows if row != DIVISIBLE]:
                values["attribute", name] = ", ".join(others)
    # Elements of tuples.
    named = dict(capture.launch.signature)
    for name, value in constants.items():
        if name not in named:
            values["constexpr", name] = value
    for name, value in attributes.items():
        if name not in named:
            values["attribute", name] = value
    for name, value in capture.launch.options:
        values["option", name] = str(value)
    return _Specialisation(values)


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


Use = Literal["used", "not in the IR", "never read", "unknown", "option"]
"""What the kernel does with a parameter: `never read` in its Python, or read, but `not in the IR` of any variant."""

_NOT_OPTIONS = frozenset({"arch", "backend_name", "warp_size"})


@dataclass(frozen=True, slots=True)
class KernelVariant:
    id: str
    launch: Launch
    specialisation: _Specialisation
    code: str
    """A digest of its machine code and how it is launched, without debug information; empty if it has none."""
    unused: frozenset[str]
    """The parameters that are arguments of the front end's IR, and that nothing there uses."""
    arguments: frozenset[str]
    """The parameters that are arguments of the front end's IR."""
    figures: tuple[tuple[str, int], ...] = ()
    """Its resources, and its instructions that matter, as of the assembly that Triton made."""


@dataclass(frozen=True, slots=True)
class VariantCause:
    """One parameter or option that tells variants apart."""

    name: str
    keys: tuple[Key, ...]
    """Those of its aspects that differ."""
    states: tuple[str, ...]
    """Its value in each variant: `i32 %16`, `=1`, `64`."""
    use: Use
    lines: tuple[int, ...]
    """The lines of the kernel's file that read it."""
    pairs: int
    """How many pairs of variants differ in nothing else."""
    same_code: int
    """How many of these have the same machine code."""
    is_tuned: bool
    """Whether it is a setting of `@triton.autotune`."""
    remaining: int
    """How many variants there would be without it."""

    @property
    def aspects(self) -> tuple[str, ...]:
        return tuple(aspect for aspect, _ in self.keys)


@dataclass(frozen=True, slots=True)
class Site:
    """A kernel on one target, and all its variants."""

    kernel: Kernel
    target: Target
    plan: str
    triton_version: str
    variants: tuple[KernelVariant, ...]
    causes: tuple[VariantCause, ...]


def sites_of(captures: Iterable[Capture]) -> tuple[Site, ...]:
    """The kernels of captures, those with the most variants first; each capture is looked at once, in order."""
    groups: dict[tuple[object, ...], list[tuple[KernelVariant, Capture]]] = {}
    for capture in captures:
        kernel = capture.launch.kernel
        key = (kernel, capture.target, str(capture.plan), capture.environment.triton_version)
        rows = groups.setdefault(key, [])
        variant = _variant(capture)
        # The same compile may be named twice.
        if all(variant.id != other.id for other, _ in rows):
            light = replace(capture, artifacts=(), snapshots=(), layouts=(), operations=(), sources=(), log=None)
            rows.append((variant, light))
    sites = [_site([one for one, _ in rows], rows[0][1], [light for _, light in rows]) for rows in groups.values()]
    return tuple(sorted(sites, key=lambda one: -len(one.variants)))


def _variant(capture: Capture) -> KernelVariant:
    source = capture.texts.get("source", "")
    kernel = parse_mlir(source).kernel
    names = _argument_names(capture, kernel) if kernel is not None else []
    used: set[str] = set()
    if kernel is not None:
        own = {value: name for (value, _, _), name in zip(kernel.parameters, names, strict=False)}
        for operation in kernel.walk():
            read = [*operation.operands, *(first for _, first in operation.carried)]
            used.update(own[value] for value in read if value in own)
    return KernelVariant(
        capture.id,
        capture.launch,
        _Specialisation({}),
        code_of(capture),
        frozenset(names) - used,
        frozenset(names),
        figures_of(capture),
    )


def figures_of(capture: Capture) -> tuple[tuple[str, int], ...]:
    """(name, number) of the resources of a capture and of the instructions that matter in its PTX or AMDGCN."""
    resources = capture.resources
    rows = [
        ("registers", resources.registers),
        ("instructions", resources.instruction_count),
        ("bytes spilled", resources.spilled_bytes),
        ("bytes of shared memory", resources.shared_bytes),
    ]
    known = [(name, number) for name, number in rows if number is not None]
    return (*known, *instruction_families(capture, WRITTEN).items())


def _argument_names(capture: Capture, kernel: Operation) -> list[str]:
    """The parameter of each argument of the IR, as far as every parameter is one argument; else by the IR's names."""
    declared = [name for name, kind in capture.launch.signature if kind != "constexpr"]
    written = [value.name.removeprefix("%") for value, _, _ in kernel.parameters]
    if len(declared) == len(written):
        return declared
    # A descriptor is several arguments, a tuple one for each element.
    return [name if name in declared else "" for name in written]


def code_of(capture: Capture) -> str:
    """A digest of the kernel's machine code; where there is none, of its assembly."""
    found: bytes | None = None
    for artifact in capture.artifacts:
        if isinstance(artifact.data, bytes):
            try:
                found = parse_elf(artifact.data).function(capture.name) or artifact.data
            except ParseError:
                found = artifact.data
    if found is None:
        assembly = next((one for one in reversed(capture.artifacts) if one.stage in ("ptx", "amdgcn")), None)
        if assembly is None or capture.failure is not None:
            return ""
        found = strip_locations(assembly.text, stage_named(assembly.stage).kind).encode("utf-8", "surrogatepass")
    held = capture.resources
    launched = [capture.launch.option(name) for name in ("num_warps", "num_ctas")]
    head = repr((launched, held.registers, held.shared_bytes, held.stack_bytes, held.tensor_memory_columns))
    return hashlib.sha256(head.encode() + found).hexdigest()


def _site(variants: list[KernelVariant], first: Capture, captures: Sequence[Capture]) -> Site:
    text = read_kernel(first.launch.kernel)
    runtime = frozenset(name for one in variants for name, kind in one.launch.signature if kind != "constexpr")
    rows = tuple(
        replace(one, specialisation=_specialisation_of(capture, text, runtime))
        for one, capture in zip(variants, captures, strict=True)
    )
    causes = tuple(_causes(rows, text))
    return Site(first.launch.kernel, first.target, str(first.plan), first.environment.triton_version, rows, causes)


def _causes(variants: Sequence[KernelVariant], text: KernelText) -> list[VariantCause]:
    keys = dict.fromkeys(key for one in variants for key in one.specialisation.values)
    differing: dict[str, list[Key]] = {}
    for key in keys:
        if key[0] == "option" and key[1] in _NOT_OPTIONS:
            continue
        values = {one.specialisation.values.get(key) for one in variants}
        # What a parameter lacks because it is a constant there is another aspect's difference.
        if len(values - {None}) > 1 or (len(values) > 1 and key[0] in ("type", "attribute", "constexpr")):
            differing.setdefault(key[1], []).append(key)
    # A type that one variant lacks since the value is 1 there is no difference of types.
    for name, rows in differing.items():
        types = {one.specialisation.values.get(("type", name)) for one in variants} - {None}
        if len(types) < 2 and ("type", name) in rows:
            rows.remove(("type", name))
    return [_cause(name, rows, variants, text) for name, rows in differing.items() if rows]


def alike_without(variants: Iterable[KernelVariant], name: str) -> Collection[list[KernelVariant]]:
    """The variants in groups that differ in nothing but one parameter or option, with all of its aspects."""
    groups: dict[object, list[KernelVariant]] = {}
    for one in variants:
        groups.setdefault(one.specialisation.without(name), []).append(one)
    return groups.values()


def _cause(name: str, keys: list[Key], variants: Sequence[KernelVariant], text: KernelText) -> VariantCause:
    groups = alike_without(variants, name)
    pairs = [(a, b) for rows in groups for at, a in enumerate(rows) for b in rows[:at]]
    tuned = [one.launch.autotuning for one in variants]
    is_tuned = all(one is not None for one in tuned) and all(
        f"{name}: " in (one.config if one else "") for one in tuned
    )
    return VariantCause(
        name,
        tuple(keys),
        tuple(one.specialisation.state_of(name) for one in variants),
        "option" if all(aspect == "option" for aspect, _ in keys) else _use(name, variants, text),
        text.lines_of(name),
        len(pairs),
        sum(a.code == b.code != "" for a, b in pairs),
        is_tuned,
        len(groups),
    )


def _use(name: str, variants: Sequence[KernelVariant], text: KernelText) -> Use:
    if text.is_known and not text.lines_of(name):
        return "never read"
    held = [one for one in variants if name in one.arguments]
    if held and all(name in one.unused for one in held):
        return "not in the IR"
    return "used" if text.is_known else "unknown"
