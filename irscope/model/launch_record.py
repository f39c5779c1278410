"""What a launch was given: its arguments, its place in an autotuning, and placeholder values in place of data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from irscope.model.plain import ANY_VALUE

_MOST_PACKED = 8 << 20
"""Characters of all data of a launch before it, and as many after it: the description of a capture may have 24 MiB."""

DTYPES = {
    "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64", "i1": "bool", "i8": "int8",
    "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2", "fp8e4b8": "float8_e4m3fnuz", "fp8e5b16": "float8_e5m2fnuz",
}  # fmt: skip
"""Element types by Triton's name, as torch names them."""

ArgumentKind = Literal["tensor", "scalar", "descriptor"]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a launch, or one element of an argument that is a tuple."""

    path: str
    """The parameter, or the path of an element: `x_ptr`, `sizes[0]`."""
    kind: ArgumentKind
    dtype: str = ""
    """The element type as torch names it (`float16`); of a scalar Python's type: int, float or bool."""
    value: bool | int | float | str | None = field(default=None, metadata=ANY_VALUE)
    """A scalar's value; inf and nan as text."""
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = field(default=(), metadata=ANY_VALUE)
    """In elements; those of an object other than a torch tensor may be negative: a flipped view."""
    storage_offset: int | None = field(default=None, metadata=ANY_VALUE)
    """Elements between the beginning of the storage and the tensor's first; None where that is not known."""
    storage_bytes: int | None = None
    """The size of the whole storage; None where that is not known."""
    alignment_bytes: int | None = None
    """The greatest power of two, up to 512, that divides the address of the first element; None for a scalar."""
    least: int | None = field(default=None, metadata=ANY_VALUE)
    greatest: int | None = field(default=None, metadata=ANY_VALUE)
    """Of an integer tensor's elements, where they were known."""
    data: str = ""
    """The elements in row-major order, where they were stored: packed by zlib, as base 85."""
    drawn: str = ""
    """In place of `data` of few integers on the virtual GPU: they stand in for random ones, or follow from such."""
    result: str = ""
    """The same after the launch, on a GPU or as the CPU computed it, where the launch changed them; empty else."""
    is_unwritten: bool = False
    """Whether `torch.empty` made its memory, and nothing wrote to it before the launch; False where not known."""
    empty_storage: int = 0
    """The number of its storage, from 1, among those that `torch.empty` made and launches alone wrote to; else 0."""
    launches_before: int = 0
    """How many launches of the program wrote to that storage before."""
    shares: str = ""
    """The path of the first argument whose storage it lies in too: a view of the same tensor, or that tensor again."""
    block_shape: tuple[int, ...] = ()
    """A descriptor's block."""
    specializes: bool = True
    """Whether Triton may specialise on it (`do_not_specialize` forbids it)."""
    specializes_on_alignment: bool = True
    """Whether it may specialise on its divisibility by 16 (`do_not_specialize_on_alignment` forbids it)."""


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """The arguments of the launch that a kernel was compiled for; its grid is the Launch's own."""

    arguments: tuple[Argument, ...] = ()
    """Tensors, scalars and descriptors in the kernel's order; constants and None are among the Launch's constants."""

    def with_contents(self, contents: Iterable[tuple[str, str, str]]) -> LaunchRecord:
        """The record with (path, data before the launch, data after it if that differs) of its tensors."""
        known = {path: {"data": data, "result": result} for path, data, result in contents}
        return LaunchRecord(tuple(replace(one, **known.get(one.path, {})) for one in self.arguments))

    def without_elements(self) -> LaunchRecord:
        """The record with nothing that was read of the elements of tensors: neither their data nor their range."""
        nothing = {"data": "", "drawn": "", "result": "", "least": None, "greatest": None}
        return LaunchRecord(tuple(replace(one, **nothing) for one in self.arguments))

    def argument(self, path: str) -> Argument | None:
        """The argument of that path, or None."""
        return next((argument for argument in self.arguments if argument.path == path), None)


@dataclass(frozen=True, slots=True)
class OtherLaunch:
    """A further launch of a kernel that was compiled already."""

    grid: tuple[int, int, int]
    record: LaunchRecord


def without_largest(packed: Mapping[str, str]) -> dict[str, str]:
    """Packed data by path; the largest are empty where all together are longer than a capture's description may be."""
    left = _MOST_PACKED
    kept = dict.fromkeys(packed, "")
    for path, data in sorted(packed.items(), key=lambda row: len(row[1])):
        if len(data) <= left:
            kept[path] = data
            left -= len(data)
    return kept


_SHOWN = 4
"""How many decisions, or checks, a sentence names."""


def _shown(texts: list[str]) -> str:
    return ", ".join(texts[:_SHOWN]) + (f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else "")


DecisionKind = Literal[
    "argument", "attribute", "constexpr", "grid", "shape", "branch", "check", "loop", "conversion", "error"
]


@dataclass(frozen=True, slots=True)
class Decision:
    """What an assumed value decided."""

    kind: DecisionKind
    """`check`: an assert, or a test before a raise, taken to pass. `conversion`: the value was not followed further.
    `error`: an exception that the value led to."""
    what: str
    """The parameter (`n`), its attribute or constant (`n: tt.divisibility=16`), or the text of the statement."""
    place: str = ""
    """FILE:LINE of a branch, check or loop, without the folder."""

    @property
    def text(self) -> str:
        """`n: tt.divisibility=16`; `if n == 0 (item3.py:4)`; `the shape in y = torch.empty(n) (item3.py:5)`."""
        prefix = _PREFIXES.get(self.kind, "")
        return f"{prefix}{self.what} ({self.place})" if self.place else f"{prefix}{self.what}"


_PREFIXES: dict[DecisionKind, str] = {
    "shape": "the shape in ",
    "error": "the error in ",
    "conversion": "data of the host, not followed further, in ",
}


@dataclass(frozen=True, slots=True)
class Assumption:
    """A placeholder value of the virtual GPU, and what it decided."""

    name: str
    """Its name for `--assume`: the variable that it was assigned to, the kernel's parameter, or FILE:LINE."""
    value: str
    """As Python prints it."""
    file: str = ""
    line: int = 0
    """1-based line of the read."""
    expression: str = ""
    """The text of what was read."""
    given: bool = False
    """Whether the user set the value with `--assume`."""
    decided: tuple[Decision, ...] = ()

    @property
    def place(self) -> str:
        """FILE:LINE of the read, without the folder."""
        return f"{self.file.replace(chr(92), '/').rpartition('/')[2]}:{self.line}" if self.file else ""

    @property
    def only_checked(self) -> bool:
        """Whether it decided nothing but checks that were taken to pass."""
        return bool(self.decided) and all(decision.kind == "check" for decision in self.decided)

    @property
    def text(self) -> str:
        """`n: assumed 0, from item3.py:16, which decided n: tt.divisibility=16; --assume n=VALUE sets it`."""
        whats = list(dict.fromkeys(decision.text for decision in self.decided if decision.kind != "check"))
        # An argument's attribute or constant says more than its name.
        whats = [what for what in whats if not any(other.startswith((f"{what}: ", f"{what}=")) for other in whats)]
        decided = f", which decided {_shown(whats)}" if whats else ""
        how = f"set by --assume, read at {self.place}" if self.given else f"assumed {self.value}, from {self.place}"
        value = f"{self.value}, " if self.given else ""
        return f"{self.name}: {value}{how}{decided}" + ("" if self.given else f"; --assume {self.name}=VALUE sets it")


def joined(assumptions: Iterable[Assumption]) -> tuple[Assumption, ...]:
    """Merge assumptions: each once, with all that it decided."""
    found: dict[tuple[str, str, int], Assumption] = {}
    for item in assumptions:
        held = found.setdefault((item.name, item.file, item.line), item)
        found[item.name, item.file, item.line] = replace(
            held, decided=tuple(dict.fromkeys((*held.decided, *item.decided)))
        )
    return tuple(found.values())


def notes_of(assumptions: Iterable[Assumption]) -> tuple[str, ...]:
    """Assumptions as sentences, all checks in one."""
    assumptions = tuple(assumptions)
    notes = [f"{item.text}." for item in assumptions if item.decided and not item.only_checked]
    checks = [check for item in assumptions for check in item.decided if check.kind == "check"]
    texts = list(dict.fromkeys(f"{check.place} ({check.what})" for check in checks))
    if texts:
        notes.append(f"Assumed to pass (no result was computed): {_shown(texts)}.")
    undecided = [f"{item.name}={item.value}" for item in assumptions if not item.decided]
    if undecided:
        notes.append(f"Placeholder values read, without a known effect: {_shown(undecided)}.")
    return tuple(notes)


@dataclass(frozen=True, slots=True)
class Autotuning:
    """Where a launch stands among the configurations of its `@triton.autotune`, or of TorchInductor's heuristic."""

    index: int = field(metadata=ANY_VALUE)
    """0-based among all configurations, in the order they were given; -1 for one that the script's `prune_configs_by`
    made itself."""
    count: int
    config: str
    """The configuration, as Triton prints it."""
    winner: bool | None = None
    """Whether it was the fastest; None where nothing was timed (on the virtual GPU)."""
    median_ms: float | None = None
    """The time Triton took for it."""
    kept: int | None = None
    """How many configurations the script's own pruning (`prune_configs_by`) left; None where that is not known."""

    candidates: tuple[str, ...] = ()
    """All configurations of a heuristic of TorchInductor's; empty for `@triton.autotune`, whose script has them."""

    @property
    def number_text(self) -> str:
        """`3 of 8`, or that it is none of these."""
        return f"{self.index} of {self.count}" if self.index >= 0 else f"another than the {self.count} given"

    def is_named(self, text: str) -> bool:
        """Whether `--config TEXT` means this configuration: its index, or KEY=VALUE, one of its settings."""
        if text.isdecimal() and len(text) < 10:
            return self.index == int(text)
        # BLOCK_M: 64, num_warps: 4, num_ctas: 1, …
        name, _, value = text.partition("=")
        return f"{name}: {value}" in self.config.split(", ")
