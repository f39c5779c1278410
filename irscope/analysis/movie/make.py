"""Makes the movie of a capture: its main values chosen, followed, and read off the text after each pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

from irscope.analysis.lives.identity import Trail
from irscope.analysis.lives.operations import OperationLife
from irscope.analysis.movie.follow import Followed, Sight, follow
from irscope.analysis.movie.lowered import families_of, is_lowered
from irscope.analysis.movie.model import Change, Frame, Held, MainValue, Movie, Role, Tile
from irscope.analysis.movie.roles import RoleText, counts_of, family_of
from irscope.ir.columns import operation_counts
from irscope.ir.locations.model import Chain, line_text, place_of
from irscope.ir.locations.stages import read_locations
from irscope.model.capture import Capture

__all__ = ["MOST_VALUES", "movie_of", "of_stages"]

MOST_VALUES = 6
"""Main values that are chosen."""
_WITHOUT_LAYOUTS = "ttir"


def movie_of(capture: Capture, followed: Followed | None = None) -> Movie:
    """The movie of a capture; without frames where it holds no text of a pass.

    Args:
        capture: with the texts of its passes, as far as they were kept.
        followed: its operations, if they were followed already.
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
    frames: list[Frame] = []
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


def _held(seen: RoleText, role: Role, sight: Sight, *, is_early: bool) -> Held:
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
    """Types without the numbers of their aliases."""
    return {(tile.shape, tile.element, tile.encoding) for tile in tiles}


# ── what came and went ────────────────────────────────────────────────────────────────────────────────────────────


def _frame(
    trail: Trail,
    step: int,
    text: str,
    held: Sequence[Held],
    changes: Mapping[int, Sequence[Change]],
    more: Counter[str],
    fewer: Counter[str],
) -> Frame:
    families = families_of(text) if is_lowered(text) else None
    counts = counts_of(text, families)
    told = tuple((families or {}).items())
    if step < 0:
        stage = trail.passes[0].stage if trail.passes else ""
        return Frame((), stage, "", counts, tuple(held), families=told)
    passes = trail.steps[step].passes
    own = tuple(changes.get(step, ()))
    net = Counter(more)
    net.subtract(fewer)
    for one in own:
        net[one.operation] -= one.made - one.removed
    return Frame(
        tuple(one.label for one in passes),
        passes[-1].stage,
        passes[-1].name,
        counts,
        tuple(held),
        own,
        tuple(sorted((name, change) for name, change in net.items() if change)),
        told,
    )


def _changes(lives: Iterable[OperationLife], steps: int, file: str) -> dict[int, list[Change]]:
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
    found: dict[int, list[Change]] = {}
    for step in range(steps):
        keys = sorted(made[step] | removed[step], key=lambda one: (-made[step][one] - removed[step][one], one))
        found[step] = [Change(*one, made[step][one], removed[step][one], (step, one[0]) not in unclear) for one in keys]
    return found
