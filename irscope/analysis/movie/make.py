"""Makes the movie of a capture: its main values chosen, followed, and read off the text after each pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from irscope.analysis.lives.identity import Compared, Lot, Place, Trail
from irscope.analysis.lives.operations import Lives, OperationLife, operation_lives
from irscope.analysis.movie.model import Held, MainValue, Movie, MovieChange, MovieFrame, Role, Tile
from irscope.analysis.movie.roles import Family, RoleText, counts_of, families_of, family_of, is_lowered
from irscope.ir.columns import operation_counts
from irscope.ir.locations.model import Chain, line_text, place_of
from irscope.ir.locations.stages import read_locations
from irscope.model.capture import Capture

MOST_VALUES = 6
"""Main values that are chosen."""
_WITHOUT_LAYOUTS = "ttir"


def movie_of(capture: Capture, followed: FollowedOperations | None = None) -> Movie:
    """The movie of a capture; without frames where it holds no text of a pass.

    Args:
        capture: with the texts of its passes, as far as they were kept.
    """
    followed = followed or follow(capture)
    trail = followed.lives.trail
    not_kept = tuple(one.label for one in (*trail.before, *trail.behind))
    if trail.first is None:
        return Movie((), (), "", not_kept)
    texts = [trail.first, *(step.right for step in trail.steps)]
    chosen_at = _choice(trail)
    roles = RoleText(texts[chosen_at + 1])
    file = capture.launch.kernel.file
    chosen = _chosen(roles)
    locations = read_locations(roles.text, "mlir")
    values = tuple(
        MainValue(
            role,
            roles.name_of(line, role),
            roles.operations[line][0].name,
            line_text(place_of(locations.chain_at(line), file)),
        )
        for line, role in chosen
    )
    sights = [followed.sights(chosen_at, line) for line, _ in chosen]
    changes = _changes(followed.lives.lives, len(trail.steps), file)
    frames: list[MovieFrame] = []
    before: Counter[str] = Counter()
    for index, text in enumerate(texts):
        seen = RoleText(text)
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


def _choice(trail: Trail) -> int:
    """The step in whose text values are chosen: the last of TTIR, where functions are inlined and loops are whole."""
    early = [at for at, step in enumerate(trail.steps) if step.passes[-1].stage == _WITHOUT_LAYOUTS]
    return early[-1] if early else -1


def _chosen(roles: RoleText) -> list[tuple[int, Role]]:
    """(line, role) of the main values: of the dots in the innermost loops, of the largest loads and stores."""
    ranked: dict[str, list[int]] = {"dot": [], "load": [], "store": []}
    for line, (operation, _) in roles.operations.items():
        if (family := family_of(operation.name)) is not None and roles.roles_at(line):
            ranked[family].append(line)

    def rank(line: int) -> tuple[int, int, int]:
        size = max(prod(tile.shape) for role in roles.roles_at(line) if (tile := roles.tile_of(line, role)))
        return -roles.operations[line][1], -size, line

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


def _held(seen: RoleText, role: Role, sight: _Sight, *, is_early: bool) -> Held:
    lines = tuple(line for line in sight.lines if line in seen.operations)
    if not lines:
        return Held("not yet" if is_early else "gone")
    tiles = tuple(dict.fromkeys(tile for line in lines if (tile := seen.tile_of(line, role)) is not None))
    names = tuple(dict.fromkeys(seen.operations[line][0].name for line in lines))
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
    families = families_of(text) if is_lowered(text) else None
    counts = counts_of(text, families)
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
    """Step -> what it made and removed."""
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
            sight = self._before(step, sight)
            before.append(sight)
        after: list[_Sight] = []
        sight = _Sight((line,))
        for step in range(at + 1, len(self.lives.trail.steps)):
            sight = self._after(step, sight)
            after.append(sight)
        return [*reversed(before), _Sight((line,)), *after]

    def _after(self, step: int, sight: _Sight) -> _Sight:
        lots = [lot for lot in self.links.get(step, ()) if not set(lot.lefts).isdisjoint(sight.lines)]
        own = set(sight.lines)
        is_certain = sight.is_certain and all(own.issuperset(lot.lefts) for lot in lots)
        return _Sight(tuple(sorted({line for lot in lots for line in lot.rights})), is_certain)

    def _before(self, step: int, sight: _Sight) -> _Sight:
        lots = [lot for lot in self.links.get(step, ()) if not set(lot.rights).isdisjoint(sight.lines)]
        lefts = tuple(sorted({line for lot in lots for line in lot.lefts}))
        # Of several before, it is not known which one became it.
        return _Sight(lefts, sight.is_certain and len(lefts) <= 1)


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
    alone: dict[tuple[Family, Place], tuple[list[int], list[int]]] = {}
    for lot in lots:
        name, place = compared.sign((lot.lefts or lot.rights)[0], is_right=not lot.lefts)
        if (family := family_of(name)) is None:
            continue
        if lot.lefts and lot.rights:
            found.append(lot)
        elif place:
            lefts, rights = alone.setdefault((family, place), ([], []))
            lefts += lot.lefts
            rights += lot.rights
    return found + [Lot(tuple(lefts), tuple(rights)) for lefts, rights in alone.values() if lefts and rights]
