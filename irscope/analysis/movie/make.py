"""Makes the movie of a capture: the operations that give its main values, followed, and read off after each pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Literal

from irscope.analysis.lives.identity import Compared, Lot, Place, Trail
from irscope.analysis.lives.operations import Lives, OperationLife, operation_lives
from irscope.analysis.movie.model import Counts, Held, MainValue, Movie, MovieChange, MovieFrame, Role, Tile
from irscope.ir.asm.opcodes import classify
from irscope.ir.columns import operation_counts
from irscope.ir.locations.model import Chain, line_text, place_of
from irscope.ir.locations.stages import read_locations
from irscope.ir.mlir.operations import opcode_of
from irscope.ir.mlir.reader import MlirModule, Operation, Value, parse_mlir
from irscope.ir.mlir.tokens import python_name
from irscope.layout.rows import own_shape
from irscope.memory.machine import ACCESSES
from irscope.model.capture import Capture

_Family = Literal["dot", "load", "store"]
_OF_ACTION: dict[str, _Family] = {"load": "load", "copy": "load", "store": "store"}
_DOTS = ("dot", "dot_scaled", "warp_group_dot", "tc_gen5_mma", "tc_gen5_mma_scaled")
_FAMILIES: dict[str, _Family] = {
    **dict.fromkeys(_DOTS, "dot"),
    **{opcode: _OF_ACTION[action] for opcode, action in ACCESSES.items() if action in _OF_ACTION},
    # Copies by a descriptor, whose instructions nothing counts yet.
    "async_tdm_copy_global_to_local": "load",
    "async_tdm_copy_local_to_global": "store",
}
_ROLES: dict[_Family, tuple[Role, ...]] = {
    "dot": ("first operand", "second operand", "result"),
    "load": ("loaded",),
    "store": ("stored",),
}
_IN_TENSOR_MEMORY = ("tc_gen5_mma", "tc_gen5_mma_scaled")
"""Dots whose third operand is where their result goes."""


def _family_of(name: str) -> _Family | None:
    return _FAMILIES.get(opcode_of(name))


def _counts_of(text: str, families: Mapping[str, int] | None = None) -> Counts:
    """The operations of an MLIR text by kind; `families`: of one in the dialects of LLVM those of its instructions."""
    found = operation_counts(text, "mlir")
    own = {family: sum(count for name, count in found.items() if _family_of(name) == family)
           for family in _ROLES}  # fmt: skip
    syncs = sum(count for name, count in found.items() if SYNCS.intersection(name.rpartition(".")[2].split("_")))
    accesses, dots = own["load"] + own["store"], own["dot"]
    if families is not None:
        # What Triton's operations became: some of them may be left.
        accesses += sum(families.get(one, 0) for one in _GLOBAL)
        dots += sum(families.get(one, 0) for one in _MATRIX_FAMILIES)
        syncs = sum(count for name, count in found.items() if SYNCS.intersection(_words(name)))
        syncs += _syncs_in_assembly(text)
    conversions = sum(count for name, count in found.items() if opcode_of(name) == "convert_layout")
    return Counts(found.total(), conversions, accesses, dots, syncs)


@dataclass(frozen=True)
class _RoleText:
    """The operations of one text that give main values."""

    text: str

    @cached_property
    def _module(self) -> MlirModule:
        return parse_mlir(self.text)

    @cached_property
    def operations(self) -> Mapping[int, Operation]:
        return {one.first_line: one for one in self._module.walk() if one.opcode in _FAMILIES}

    def roles_at(self, line: int) -> tuple[Role, ...]:
        operation = self.operations[line]
        family = _FAMILIES[operation.opcode]
        return tuple(role for role in _ROLES[family] if self.tile_of(line, role) is not None)

    def tile_of(self, line: int, role: Role) -> Tile | None:
        value = self._value(self.operations[line], role)
        return None if value is None else self._tile(value)

    def name_of(self, line: int, role: Role) -> str:
        value = self._value(self.operations[line], role)
        return python_name(value.name) if value is not None else ""

    def _value(self, operation: Operation, role: Role) -> Value | None:
        operands = operation.operands
        if role == "first operand":
            return operation.operand("a")
        if role == "second operand":
            return operation.operand("b")
        if role == "result" and operation.opcode in _IN_TENSOR_MEMORY:
            return operation.operand("d")
        if role in ("result", "loaded"):
            shaped = next((one for one in operation.results if self._tile(one) is not None), None)
            return self._largest(operands, "memdesc") if shaped is None and role == "loaded" else shaped
        stored = operation.operand("value")
        return stored or self._largest(operands, "tensor") or self._largest(operands, "memdesc")

    def _largest(self, values: tuple[Value, ...], form: str) -> Value | None:
        """The value of a form with most elements: barriers and indices have fewer than what is copied."""
        ours = [one for one in values if self._module.type_of(one).form == form]
        shaped = [(one, tile) for one in ours if (tile := self._tile(one)) is not None]
        return max(shaped, key=lambda pair: prod(pair[1].shape), default=(None, None))[0]

    def _tile(self, value: Value) -> Tile | None:
        kind = self._module.type_of(value)
        if kind.form not in ("tensor", "memdesc") or not kind.shape or not all(kind.shape):
            return None
        encoding = self._module.encoding_of(kind)
        if encoding is None:
            return Tile(kind.shape, str(kind.element))
        covered, _ = own_shape(encoding, kind)
        alias = kind.encoding if "<" not in kind.encoding else ""
        return Tile(kind.shape, str(kind.element), encoding.text, alias, covered)


_GLOBAL = ("ld.global", "st.global", "cp.async", "tma.load", "tma.store", "tma.copy", "tma.reduce")
"""Families that load from global memory or store to it."""
_MATRIX_FAMILIES = ("wgmma", "mma", "tcgen05.mma", "mfma", "wmma")
SYNCS = frozenset({"barrier", "wait"})
"""A part of the name of what waits or is a barrier."""
_TOLD = (
    *_MATRIX_FAMILIES, "ldmatrix", "stmatrix", "tcgen05.ld", "tcgen05.st", "tcgen05.cp", *_GLOBAL, "cp.async.wait",
    "ld.shared", "st.shared", "atomic.global", "atomic.shared", "shuffle", "warp.reduce", "warp.vote", "mbarrier",
    "barrier", "wait", "fence",
)  # fmt: skip
"""Families that are told, in their order; arithmetic and moves are not, nor functions, which LLVM chooses later."""
_SPACES = ("global", "shared")
"""Memories that families are of; an access to another one is generic."""
_AMD_SHUFFLES = ("update_dpp", "permlane", "ds_bpermute", "ds_permute", "ds_swizzle", "mov_dpp")


def _families_of(text: str) -> Mapping[str, int]:
    """_Family -> how many instructions of it the code of one thread has, in the order of the families.

    `text`: in the dialects of LLVM. What it holds as inline assembly is counted by its opcodes.
    """
    found: Counter[str] = Counter()
    for operation in parse_mlir(text).walk():
        for family in filter(None, _families(operation)):
            name, _, width = family.rpartition(".")
            found[name if width.isdecimal() else family] += 1
    return {name: found[name] for name in _TOLD if found[name]}


def _syncs_in_assembly(text: str) -> int:
    assembly = (one for one in parse_mlir(text).walk() if one.kind == "assembly")
    opcodes = (opcode for one in assembly for opcode in _opcodes(one))
    return sum(bool(SYNCS.union({"bar"}).intersection(_words(opcode))) for opcode in opcodes)


def _words(name: str) -> list[str]:
    return name.replace("_", ".").split(".")


def _families(operation: Operation) -> Iterator[str | None]:
    name = operation.name
    if operation.kind == "assembly":
        yield from map(classify, _opcodes(operation))
    elif name in ("llvm.load", "llvm.store", "llvm.atomicrmw", "llvm.cmpxchg"):
        what = {"llvm.load": "ld", "llvm.store": "st"}.get(name, "atomic")
        yield f"{what}.{next((one.space for one in operation.effects if one.space in _SPACES), 'generic')}"
    elif name == "llvm.call_intrinsic":
        # llvm.call_intrinsic "llvm.nvvm.barrier0"() …
        dialect, _, own = str(operation.attribute("intrin")).removeprefix("llvm.").partition(".")
        yield _of_nvidia(own) if dialect == "nvvm" else _of_amd(own) if dialect == "amdgcn" else None
    elif name == "nvg.wgmma":
        # Of Triton's own dialect, between the two.
        yield "wgmma"
    elif name.startswith("nvvm."):
        yield _of_nvidia(name.removeprefix("nvvm."))
    elif name.startswith("rocdl."):
        yield _of_amd(name.removeprefix("rocdl."))


def _opcodes(operation: Operation) -> Iterator[str]:
    """`cp.async.cg.shared.global` of each statement of inline assembly, `@$5 cp.async.cg.shared.global [ $0 ], …`."""
    for line in str(operation.attribute("asm_string")).split("\n"):
        for statement in line.partition("//")[0].split(";"):
            words = [word for word in statement.strip(" {}\t").split() if word[0] != "@"]
            if words and words[0][0].islower():
                yield words[0]


def _of_nvidia(name: str) -> str | None:
    """`shfl.sync`, `cp.async.wait.group`: named as the instructions of PTX, with dots."""
    name = name.replace(".group", "_group")
    return None if name.startswith("read.") else classify(f"{name}.")


def _of_amd(name: str) -> str | None:
    """`raw.ptr.buffer.load`, `mfma.f32.32x32x8f16`: named as the instructions, some without what stands before."""
    plain = name.replace(".", "_").removeprefix("raw_ptr_").removeprefix("raw_")
    if plain.startswith(_AMD_SHUFFLES):
        return "shuffle"
    if plain.startswith(("buffer_load_lds", "buffer_load_async_lds", "global_load_lds", "global_load_async_lds")):
        return "cp.async"
    if plain == "barrier":
        return "barrier"
    return classify(
        f"v_{plain}" if plain.startswith(("mfma", "wmma", "smfma", "swmma", "exp2", "rcp", "rsq")) else plain
    )


MOST_VALUES = 6
_WITHOUT_LAYOUTS = "ttir"


def movie_of(capture: Capture, followed: FollowedOperations | None = None) -> Movie:
    """The movie of a capture with the texts of its passes; without frames where none was kept."""
    followed = followed or follow(capture)
    trail = followed.lives.trail
    not_kept = tuple(one.label for one in (*trail.before, *trail.behind))
    if trail.first is None:
        return Movie((), (), "", not_kept)
    texts = [trail.first, *(step.right for step in trail.steps)]
    # In the last text of TTIR, where functions are inlined and loops are whole.
    early = [at for at, step in enumerate(trail.steps) if step.passes[-1].stage == _WITHOUT_LAYOUTS]
    chosen_at = early[-1] if early else -1
    roles = _RoleText(texts[chosen_at + 1])
    file = capture.launch.kernel.file
    chosen = _chosen(roles)
    locations = read_locations(roles.text, "mlir")
    values = tuple(
        MainValue(
            role,
            roles.name_of(line, role),
            roles.operations[line].name,
            line_text(place_of(locations.chain_at(line), file)),
        )
        for line, role in chosen
    )
    sights = [followed.sights(chosen_at, line) for line, _ in chosen]
    changes = _changes(followed.lives.lives, len(trail.steps), file)
    frames: list[MovieFrame] = []
    before: Counter[str] = Counter()
    for index, text in enumerate(texts):
        seen = _RoleText(text)
        held = [
            _held(seen, role, at[index], is_early=index <= chosen_at)
            for (_, role), at in zip(chosen, sights, strict=True)
        ]
        if frames:
            held = [_marked(now, was) for now, was in zip(held, frames[-1].held, strict=True)]
        counted = operation_counts(text, "mlir")
        frames.append(_frame(trail, index - 1, text, held, changes, counted - before, before - counted))
        before = counted
    label = trail.steps[chosen_at].passes[-1].label if chosen_at >= 0 else ""
    return Movie(values, tuple(frames), label, not_kept)


def of_stages(movie: Movie, stages: Collection[str]) -> Movie:
    """A movie from the first to the last pass of some stages; its first frame is what the first pass found."""
    at = [index for index, frame in enumerate(movie.frames) if index and frame.stage in stages]
    return replace(movie, frames=movie.frames[at[0] - 1 : at[-1] + 1] if at else ())


# ── the main values ───────────────────────────────────────────────────────────────────────────────────────────────


def _chosen(roles: _RoleText) -> list[tuple[int, Role]]:
    """(line, role) of the main values: of the dots in the innermost loops, of the largest loads and stores."""
    ranked: dict[str, list[int]] = {"dot": [], "load": [], "store": []}
    for line, operation in roles.operations.items():
        if (family := _family_of(operation.name)) is not None and roles.roles_at(line):
            ranked[family].append(line)

    def rank(line: int) -> tuple[int, int, int]:
        size = max(prod(tile.shape) for role in roles.roles_at(line) if (tile := roles.tile_of(line, role)))
        return -roles.operations[line].loops, -size, line

    for lines in ranked.values():
        lines.sort(key=rank)

    def named(family: str) -> list[tuple[int, Role]]:
        return [(line, role) for line in ranked[family] for role in roles.roles_at(line)]

    loads, stores, first = named("load"), named("store"), ranked["dot"][:1]
    dots = [one for one in named("dot") if one[0] in first or one[1] == "result"]
    order = [*dots[:4], *loads[:2], *stores[:1], *loads[2:], *stores[1:]]
    if len(order) > MOST_VALUES and order[MOST_VALUES] in stores[:1]:
        # What leaves the kernel is worth more than a second dot.
        order.insert(MOST_VALUES - 1, order.pop(MOST_VALUES))
    order = order[:MOST_VALUES]
    # As data goes: loaded, multiplied, stored.
    rows: dict[Role, int] = {"loaded": 0, "stored": 2}
    return sorted(order, key=lambda one: (rows.get(one[1], 1), order.index(one)))


def _held(seen: _RoleText, role: Role, sight: _Sight, *, is_early: bool) -> Held:
    lines = tuple(line for line in sight.lines if line in seen.operations)
    if not lines:
        return Held("not yet" if is_early else "gone")
    tiles = tuple(dict.fromkeys(tile for line in lines if (tile := seen.tile_of(line, role)) is not None))
    names = tuple(dict.fromkeys(seen.operations[line].name for line in lines))
    state = "unclear" if not sight.is_certain else "several" if len(lines) > 1 else "there"
    return Held(state, names, lines, tiles)


def _marked(now: Held, was: Held) -> Held:
    return replace(now, is_new=bool(now.tiles) and _kinds(now.tiles) != _kinds(was.tiles))


def _kinds(tiles: Iterable[Tile]) -> set[tuple[object, ...]]:
    return {(tile.shape, tile.element, tile.encoding) for tile in tiles}


# ── operations added and removed ───────────────────────────────────────────────────────────────────────────────


def _frame(
    trail: Trail,
    step: int,
    text: str,
    held: Sequence[Held],
    changes: Mapping[int, Sequence[MovieChange]],
    more: Counter[str],
    fewer: Counter[str],
) -> MovieFrame:
    families = _families_of(text) if "llvm.func" in text else None
    counts = _counts_of(text, families)
    told = tuple((families or {}).items())
    if step < 0:
        stage = trail.passes[0].stage if trail.passes else ""
        return MovieFrame((), stage, "", counts, tuple(held), families=told)
    passes = trail.steps[step].passes
    own = tuple(changes.get(step, ()))
    net = Counter(more)
    net.subtract(fewer)
    for one in own:
        net[one.operation] -= one.made - one.removed
    return MovieFrame(
        tuple(one.label for one in passes),
        passes[-1].stage,
        passes[-1].name,
        counts,
        tuple(held),
        own,
        tuple(sorted((name, change) for name, change in net.items() if change)),
        told,
    )


def _changes(lives: Iterable[OperationLife], steps: int, file: str) -> dict[int, list[MovieChange]]:
    made: list[Counter[tuple[str, str]]] = [Counter() for _ in range(steps)]
    removed: list[Counter[tuple[str, str]]] = [Counter() for _ in range(steps)]
    unclear: set[tuple[int, str]] = set()

    def key(name: str, chain: Chain) -> tuple[str, str]:
        return name, line_text(place_of(chain, file))

    for life in lives:
        if life.counted_from >= 0:
            made[life.counted_from][key(life.first.name, life.first.chain)] += 1
            if len(life.births) > 1:
                unclear.add((life.counted_from, life.first.name))
        if life.removal is not None:
            removed[life.removal.step][key(life.last.name, life.last.chain)] += 1
            if life.removal.among > 1:
                unclear.add((life.removal.step, life.last.name))
    found: dict[int, list[MovieChange]] = {}
    for step in range(steps):
        keys = sorted(made[step] | removed[step], key=lambda one: (-made[step][one] - removed[step][one], one))
        found[step] = [
            MovieChange(*one, made[step][one], removed[step][one], (step, one[0]) not in unclear) for one in keys
        ]
    return found


_LOWERED = ("llvm", "nvvm", "rocdl", "builtin")
"""Dialects whose operations are not followed: they are many, and their passes name none for a reader to look for."""


@dataclass(frozen=True, slots=True)
class _Sight:
    """The operations of a text that stand for one that is followed."""

    lines: tuple[int, ...] = ()
    """1-based; empty where there are none."""
    is_certain: bool = True
    """Whether all of them do; else it is one of them, or several."""


@dataclass(frozen=True, slots=True)
class FollowedOperations:
    """A capture's operations followed through its passes."""

    lives: Lives
    links: dict[int, list[Lot]] = field(default_factory=dict[int, list[Lot]])
    """Step -> which operations of loads, stores and dots become which."""

    def sights(self, at: int, line: int) -> list[_Sight]:
        """What stands for the operation on a line of the text after a step: before the first step, and after each."""
        before: list[_Sight] = []
        sight = _Sight((line,))
        for step in range(at, -1, -1):
            lots = [lot for lot in self.links.get(step, ()) if not set(lot.rights).isdisjoint(sight.lines)]
            lefts = tuple(sorted({line for lot in lots for line in lot.lefts}))
            # Of several before, it is not known which one became it.
            sight = _Sight(lefts, sight.is_certain and len(lefts) <= 1)
            before.append(sight)
        after: list[_Sight] = []
        sight = _Sight((line,))
        for step in range(at + 1, len(self.lives.trail.steps)):
            lots = [lot for lot in self.links.get(step, ()) if not set(lot.lefts).isdisjoint(sight.lines)]
            own = set(sight.lines)
            is_certain = sight.is_certain and all(own.issuperset(lot.lefts) for lot in lots)
            sight = _Sight(tuple(sorted({line for lot in lots for line in lot.rights})), is_certain)
            after.append(sight)
        return [*reversed(before), _Sight((line,)), *after]


def follow(capture: Capture) -> FollowedOperations:
    """Follow a capture's operations, but those of the LLVM dialects, through the passes of MLIR."""
    links: dict[int, list[Lot]] = {}

    def watch(step: int, compared: Compared, lots: list[Lot]) -> None:
        links[step] = _links(compared, lots)

    lives = operation_lives(capture, lambda name: name.partition(".")[0] not in _LOWERED, explains=False, watch=watch)
    return FollowedOperations(lives, links)


def _links(compared: Compared, lots: Sequence[Lot]) -> list[Lot]:
    """The lots of loads, stores and dots.

    Those that are alone on either side are one lot where they come from one line and column of Python, by the same
    calls, and do the same: a copy to shared memory is a load.
    """
    found: list[Lot] = []
    alone: dict[tuple[_Family, Place], tuple[list[int], list[int]]] = {}
    for lot in lots:
        name, place = compared.sign((lot.lefts or lot.rights)[0], is_right=not lot.lefts)
        if (family := _family_of(name)) is None:
            continue
        if lot.lefts and lot.rights:
            found.append(lot)
        elif place:
            lefts, rights = alone.setdefault((family, place), ([], []))
            lefts += lot.lefts
            rights += lot.rights
    return found + [Lot(tuple(lefts), tuple(rights)) for lefts, rights in alone.values() if lefts and rights]
