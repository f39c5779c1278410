"""Searches the options and tiles of a launch by predicted time: from its own on, until nothing is gained."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod
from textwrap import dedent

from irscope.analysis.findings.model import FixChange
from irscope.ir.mlir.reader import parse_mlir
from irscope.model.capture import Capture, Launch
from irscope.model.plain import python_tree

Changes = tuple[FixChange, ...]
_Settings = Mapping[str, int]
_Move = tuple[tuple[str, ...], bool]
"""The settings that are changed, and whether to more."""
_Compiled = Callable[[Sequence[Changes]], Mapping[Changes, Capture]]
"""Compiles the launch with some changes each; failed compiles are left out."""

LEAST_GAIN = 0.005
"""The part of the time by which a fix must be faster."""
_OPTIONS = {"num_warps": (1, 32), "num_stages": (1, 7)}
"""The least and the most of each."""
_TILES = 16, 256
_AT_ONCE = 4
"""Steps that are compiled side by side."""


@dataclass(frozen=True, slots=True)
class Searched:
    """The fastest configuration that a search found."""

    changes: Changes
    """Empty if the launch's own is."""
    seconds: float
    names: tuple[str, ...]
    compiles: int
    is_complete: bool
    """Whether no neighbour is faster; else the compiles ended."""
    grid: tuple[int, int, int] | None
    """That of the launch with it."""

    @property
    def text(self) -> str:
        end = "until nothing was gained" if self.is_complete else "more compiles may find more (--tries N)"
        return f"searched {', '.join(self.names)} in {self.compiles} compiles, {end}"


def search(
    capture: Capture,
    compiled: _Compiled,
    predicted: Callable[[Capture], float | None],
    whole: float,
    most: int,
    *,
    with_tiles: bool,
    begun: Mapping[Changes, tuple[float, Capture]],
) -> Searched:
    """Take steps from a configuration, the same one again as long as it gains, until none does.

    From one that spills registers no step leads to more elements per thread: that spills more, and takes the assembler
    minutes.

    Args:
        compiled: compiles it with changes.
        predicted: the seconds of a compile that fits; None if it cannot be predicted.
        whole: those of the launch as it is.
        most: how many compiles there are.
        with_tiles: whether its tl.constexpr values can be changed too.
        begun: options that were compiled before, with their seconds; the search begins at the fastest.
    """
    own = best = _settings(capture, with_tiles)
    known: dict[tuple[int, ...], float] = {tuple(own.values()): whole}
    spilling = {tuple(own.values())} if capture.resources.spilled_bytes else set[tuple[int, ...]]()
    count, is_complete = 0, True

    def note(settings: _Settings, seconds: float | None, after: Capture | None) -> None:
        known[tuple(settings.values())] = inf if seconds is None else seconds
        if after is not None and after.resources.spilled_bytes:
            spilling.add(tuple(settings.values()))

    for changes, (seconds, after) in begun.items():
        values = {one.name: int(one.value) for one in changes if one.kind == "option" and one.name in own}
        if len(values) == len(changes):
            settings = own | values
            note(settings, seconds, after)
            best = min(best, settings, key=lambda one: known[tuple(one.values())])

    def fastest(near: Sequence[_Settings]) -> _Settings:
        """The fastest of some configurations, and of the best one, as far as there are compiles."""
        nonlocal count, is_complete
        wanted = [one for one in near if tuple(one.values()) not in known]
        is_complete = is_complete and len(wanted) <= most - count
        wanted = wanted[: most - count]
        count += len(wanted)
        made = compiled([_changes(capture, own, one) for one in wanted])
        for one in wanted:
            after = made.get(_changes(capture, own, one))
            note(one, predicted(after) if after is not None and after.failure is None else None, after)
        ranked = [one for one in near if tuple(one.values()) in known]
        found = min(ranked, key=lambda one: known[tuple(one.values())], default=best)
        return found if known[tuple(found.values())] < (1 - LEAST_GAIN) * known[tuple(best.values())] else best

    def step_of(move: _Move) -> _Settings | None:
        is_larger = move[1] != (move[0] == ("num_warps",)) and move[0] != ("num_stages",)
        return None if is_larger and tuple(best.values()) in spilling else _moved(best, move)

    moves = _moves(own)
    at = 0
    while at < len(moves):
        some = moves[at : at + _AT_ONCE]
        near = {move: step for move in some if (step := step_of(move)) is not None}
        found = fastest([*near.values()])
        at = at + _AT_ONCE if found is best else 0
        move = next((move for move, step in near.items() if step is found), None)
        while move is not None and found is not best:
            # What gained gains again, as a rule.
            best = found
            step = step_of(move)
            found = fastest([step]) if step is not None else best
    changes = _changes(capture, own, best)
    tiles = {one.name: str(one.value) for one in changes if one.kind == "constant"}
    grid = grid_with(capture.launch, tiles) if tiles else capture.launch.grid
    return Searched(changes, known[tuple(best.values())], tuple(own), count, is_complete, grid)


def _settings(capture: Capture, with_tiles: bool) -> dict[str, int]:
    found = {name: capture.launch.option(name) for name in _OPTIONS}
    if not any(one.kind == "loop" for one in parse_mlir(capture.texts.get("ttir", "")).walk()):
        del found["num_stages"]
    if with_tiles:
        tiles = _tiles(capture.launch)
        texts = ((name, text) for name, text in capture.launch.constants if name in tiles.names)
        found |= {name: int(text) for name, text in texts if text.isdecimal() and int(text) >= _TILES[0]}
    return {name: value for name, value in found.items() if isinstance(value, int)}


@dataclass(frozen=True, slots=True)
class _Tiles:
    """The tl.constexpr values that a kernel's Python uses as tiles."""

    of_axis: tuple[tuple[int, str], ...]
    """(axis of the grid, the value that its program id is multiplied by)."""
    of_size: tuple[tuple[str, str], ...]
    """(integer argument, the value that it is divided by, rounded up)."""
    steps: tuple[str, ...]
    """The steps of loops."""
    extents: tuple[str, ...]
    """The sizes of ranges of elements."""

    @property
    def names(self) -> frozenset[str]:
        return frozenset((*(name for _, name in (*self.of_axis, *self.of_size)), *self.steps))


def _tiles(launch: Launch) -> _Tiles:
    tree = python_tree(dedent(launch.kernel.source))
    constants = {name for name, _ in launch.constants}
    axes: dict[str, int] = {}
    of_axis: list[tuple[int, str]] = []
    of_size: list[tuple[str, str]] = []
    steps: list[str] = []
    extents: list[str] = []
    for one in ast.walk(tree):
        if isinstance(one, ast.Assign):
            # m, n = tl.program_id(0), tl.program_id(1)
            for target, value in zip(_parts(one.targets[0]), _parts(one.value), strict=False):
                if (axis := _axis(value, {})) is not None:
                    axes[ast.unparse(target)] = axis
    for one in ast.walk(tree):
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult):
            for this, other in ((one.left, one.right), (one.right, one.left)):
                if (axis := _axis(this, axes)) is not None and isinstance(other, ast.Name) and other.id in constants:
                    of_axis.append((axis, other.id))
        if not isinstance(one, ast.Call):
            continue
        names = [each.id if isinstance(each, ast.Name) else "" for each in one.args]
        called = one.func.attr if isinstance(one.func, ast.Attribute) else getattr(one.func, "id", "")
        if called == "cdiv" and len(names) == 2 and names[0] and names[1] in constants:
            of_size.append((names[0], names[1]))
        if called in ("range", "static_range") and len(names) == 3 and names[2] in constants:
            steps.append(names[2])
        if called == "arange" and names[-1:] and names[-1] in constants:
            extents.append(names[-1])
    return _Tiles(tuple(dict.fromkeys(of_axis)), tuple(dict.fromkeys(of_size)), tuple(steps), tuple(extents))


def _parts(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _axis(node: ast.expr, known: Mapping[str, int]) -> int | None:
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith("program_id"):
        return None
    value = next((one for one in (*node.args, *(word.value for word in node.keywords))), None)
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, int) else None


def grid_with(launch: Launch, constants: Mapping[str, str]) -> tuple[int, int, int] | None:
    """The grid of a launch with other tiles, as its kernel's Python tells it; None where it does not."""
    tiles = _tiles(launch)
    own = {name: int(text) for name, text in launch.constants if text.isdecimal()}
    after = own | {name: int(text) for name, text in constants.items()}
    if launch.grid is None or not {*constants} <= tiles.names:
        return None
    grid = list(launch.grid)
    for axis, name in tiles.of_axis:
        grid[axis] = -(-launch.grid[axis] * own[name] // after[name])
    placed = {name for _, name in tiles.of_axis}
    arguments = {one.path: one.value for one in (launch.record.arguments if launch.record else ())}
    pairs = [(arguments.get(size), name) for size, name in tiles.of_size if name not in placed]
    counts = [[-(-size // values[name]) for size, name in pairs if isinstance(size, int)] for values in (own, after)]
    if pairs and prod(counts[0]) == grid[0]:
        # One axis for all tiles, in an order that the kernel makes.
        grid[0] = prod(counts[1])
    elif not {*constants} <= {*placed, *tiles.steps}:
        return None
    return grid[0], grid[1], grid[2]


def smaller(capture: Capture) -> tuple[Changes, ...]:
    """Fewer stages, and each tile halved: what may fit where the launch does not."""
    stages, tiles = capture.launch.option("num_stages"), _tiles(capture.launch)
    fewer = range(stages - 1, 0, -1) if isinstance(stages, int) else ()
    names = {*tiles.names, *tiles.extents}
    sizes = [(name, int(text)) for name, text in capture.launch.constants if name in names and text.isdecimal()]
    halved = [FixChange("constant", name, size // 2) for name, size in sizes if size >= 2 * _TILES[0]]
    return tuple((one,) for one in (*(FixChange("option", "num_stages", count) for count in fewer), *halved))


def _moves(settings: _Settings) -> list[_Move]:
    """All tiles at once, which change the time most, then each setting, to more and to less."""
    tiles = tuple(name for name in settings if name not in _OPTIONS)
    names = dict.fromkeys([tiles, *((name,) for name in settings)] if tiles else [(name,) for name in settings])
    return [(one, is_more) for one in names for is_more in (True, False)]


def _moved(settings: _Settings, move: _Move) -> _Settings | None:
    names, is_more = move
    found = dict(settings)
    for name in names:
        low, high = _OPTIONS.get(name, _TILES)
        value = found[name]
        if name == "num_stages":
            found[name] = value + 1 if is_more else value - 1
        else:
            found[name] = value * 2 if is_more else value // 2
        if not low <= found[name] <= high:
            return None
    return found


def _changes(capture: Capture, own: _Settings, settings: _Settings) -> Changes:
    constants = dict(capture.launch.constants)
    return tuple(
        FixChange("constant" if name in constants else "option", name, value)
        for name, value in settings.items()
        if value != own[name]
    )
