"""Which writes of a register each read of it may see: values of physical registers, along the control flow.

A register holds many values in its time. A value here is a web: all writes that some read may see one of, with all
those reads. Two texts whose webs correspond compute the same under other names of registers, and only those do. Writes
under a guard, or to the lanes that are on, leave the older value visible.

On AMD a vector instruction writes the lanes that the EXEC mask has on. A write at one depth of nested masks hides no
write of an outer depth: each write keeps the least depth it was made at, and is hidden by writes of that depth or less.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush

from irscope.ir.asm.operands import Access, registers_of

_DEEPEST = 6
"""Depths of nested masks that are distinguished; a deeper write hides nothing."""

_MOST_SEEN = 64
"""Writes of one register that are kept apart until something reads it."""

_Seen = frozenset[tuple[int, int]]
"""Writes that may be visible: (write, depth)."""
_State = dict[str, _Seen]
_NOTHING: _Seen = frozenset()


@dataclass(slots=True)
class LineAccess:
    """The registers of one line, in the order of its values."""

    shown: list[str] = field(default_factory=list[str])
    """Those that the text names."""
    is_write: list[bool] = field(default_factory=list[bool])
    """One item for each of `shown` and `more`."""
    more: list[str] = field(default_factory=list[str])
    """Those it does not name: old values of what is modified in place, and implicit registers."""


def line_access(access: Access, names: list[str], everything: tuple[str, ...]) -> LineAccess:
    """The registers of a line whose holes have these names; `everything` is what an unknown instruction reads."""
    line = LineAccess()
    modified: list[str] = []
    for (width, mode), name in zip(access.holes, names, strict=True):
        covered = registers_of(name, width)
        line.shown += covered
        line.is_write += [mode != "r"] * len(covered)
        modified += covered if mode == "m" else ()
    line.more += modified
    line.is_write += [False] * len(modified)
    for name, mode in access.implicit:
        for is_write in (True, False) if mode == "m" else (mode == "w",):
            line.more.append(name)
            line.is_write.append(is_write)
    if access.is_unknown:
        line.more += everything
        line.is_write += [False] * len(everything)
    return line


def successors(accesses: list[Access | None], targets: list[int | None], labels: list[int]) -> list[list[int]]:
    """The lines that may follow each line. `targets` holds the line that each line's label or function stands at."""
    count = len(accesses)
    returns = [line + 1 for line, one in enumerate(accesses) if one and one.flow == "call" and line + 1 < count]
    following: list[list[int]] = []
    for line, access in enumerate(accesses):
        after = [line + 1] if line + 1 < count else []
        flow = access.flow if access is not None else "next"
        target = targets[line]
        known = [target] if target is not None else []
        if flow == "jump":
            after = known
        elif flow == "branch":
            after = after + known
        elif flow == "call":
            after = known or after
        elif flow == "return":
            after = (after if access is not None and access.is_partial else []) + returns
        elif flow == "anywhere":
            after = list(labels)
        elif flow == "end":
            after = []
        following.append(after)
    return following


class Webs:
    """The values of a text's physical registers."""

    def __init__(
        self, accesses: list[Access | None], lines: list[LineAccess | None], following: list[list[int]]
    ) -> None:
        self._accesses, self._lines = accesses, lines
        self._following = following
        self.writers: list[int] = []
        """Per write, its line."""
        self._writes: list[list[tuple[str, int]]] = []
        """Per line, (register, write)."""
        for number, line in enumerate(lines):
            registers = zip(line.shown + line.more, line.is_write, strict=True) if line is not None else ()
            written = [register for register, is_write in registers if is_write]
            self._writes.append(
                list(zip(written, range(len(self.writers), len(self.writers) + len(written)), strict=True))
            )
            self.writers += [number] * len(written)
        self._parents = list(range(len(self.writers)))
        self.webs: list[list[int | str]] = self._joined()
        """Per line, the web of each of its registers: a write that stands for it, or the name of what nothing wrote."""

    @property
    def first_writers(self) -> dict[int, int]:
        """Web -> the first line of the text that writes it."""
        first: dict[int, int] = {}
        for write, line in enumerate(self.writers):
            first.setdefault(self._root(write), line)
        return first

    def _root(self, write: int) -> int:
        parents = self._parents
        while parents[write] != write:
            parents[write] = parents[parents[write]]
            write = parents[write]
        return write

    def _joined(self) -> list[list[int | str]]:
        blocks = _blocks(self._following)
        entries = self._entries(blocks)
        found: list[list[int | str]] = [[] for _ in self._lines]
        for start, end in blocks:
            # A line that nothing reaches is read as the beginning of a text.
            state, depth = entries.get(start, ({}, (0, 0)))
            state = dict(state)
            for line in range(start, end):
                access, own = self._accesses[line], self._lines[line]
                if access is None or own is None:
                    continue
                webs: list[int | str] = []
                writes = iter(self._writes[line])
                for register, is_write in zip(own.shown + own.more, own.is_write, strict=True):
                    if is_write:
                        webs.append(next(writes)[1])
                        continue
                    seen = [one for one, _ in state.get(register, _NOTHING)]
                    for other in seen[1:]:
                        self._parents[self._root(other)] = self._root(seen[0])
                    if len(seen) > _DEEPEST:
                        state[register] = self._as_one(state[register])
                    webs.append(seen[0] if seen else register)
                found[line] = webs
                depth = self._step(line, state, depth)
        return [[self._root(web) if isinstance(web, int) else web for web in webs] for webs in found]

    def _entries(self, blocks: list[tuple[int, int]]) -> dict[int, tuple[_State, tuple[int, int]]]:
        """What may be visible at the beginning of each block, and at which depths of masks it may begin."""
        ends = dict(blocks)
        entries: dict[int, tuple[_State, tuple[int, int]]] = {}
        into = {target for end in ends.values() for target in self._following[end - 1]}
        waiting = sorted(start for start in ends if start not in into)
        for start in waiting:
            entries[start] = ({}, (0, 0))
        if blocks and blocks[0][0] not in entries:
            entries[blocks[0][0]] = ({}, (0, 0))
            waiting.insert(0, blocks[0][0])
        queued = set(waiting)
        while waiting:
            # In the order of the text, which is nearly that of the control flow: few blocks are seen more than twice.
            start = heappop(waiting)
            queued.discard(start)
            state, depth = entries[start]
            state = dict(state)
            for line in range(start, ends[start]):
                depth = self._step(line, state, depth)
            for target in self._following[ends[start] - 1]:
                merged = _merged(entries.get(target), state, depth)
                if merged is not None:
                    entries[target] = merged
                    if target not in queued:
                        queued.add(target)
                        heappush(waiting, target)
        return entries

    def _step(self, line: int, state: _State, depth: tuple[int, int]) -> tuple[int, int]:
        """Change the state as a line does, and return the depth behind it."""
        access = self._accesses[line]
        if access is None:
            return depth
        least, most = depth
        keeps_all = access.is_partial or (access.is_vector and most == _DEEPEST)
        for register, write in self._writes[line]:
            own = frozenset({(write, least)})
            if keeps_all:
                seen = state.get(register, _NOTHING)
                own |= seen if len(seen) < _MOST_SEEN else self._as_one(seen)
            elif access.is_vector and most > 0:
                own |= {one for one in state.get(register, _NOTHING) if one[1] < most}
            state[register] = own
        if not access.exec_change:
            return depth
        return _changed_depth(access.exec_change, state, depth)

    def _as_one(self, seen: _Seen) -> _Seen:
        """Join all writes that a read would join here, so that no text makes the set grow with each line."""
        kept: dict[int, int] = {}
        for write, depth in sorted(seen):
            self._parents[self._root(write)] = self._root(kept.setdefault(depth, write))
        return frozenset((write, depth) for depth, write in kept.items())


def _changed_depth(change: str, state: _State, depth: tuple[int, int]) -> tuple[int, int]:
    least, most = depth
    if change == "shrinks":
        return min(least + 1, _DEEPEST), min(most + 1, _DEEPEST)
    # Lanes come back, of one depth or of several: what was written inside is now a write of some of the lanes.
    for register, seen in state.items():
        if any(level for _, level in seen):
            state[register] = frozenset((write, 0) for write, _ in seen)
    if change == "fills":
        return 0, 0
    return 0, max(most - 1, 0) if change == "grows" and most < _DEEPEST else most


def _merged(
    known: tuple[_State, tuple[int, int]] | None, state: _State, depth: tuple[int, int]
) -> tuple[_State, tuple[int, int]] | None:
    """Both together; None where nothing is new."""
    if known is None:
        return dict(state), depth
    old, (least, most) = known
    # A depth that grows around a loop goes to the deepest at once.
    high = most if depth[1] <= most else _DEEPEST
    range_of_both = (min(least, depth[0]), high)
    changed = range_of_both != (least, most)
    merged = old
    for register, seen in state.items():
        before = old.get(register, _NOTHING)
        if seen is before or seen <= before:
            continue
        if merged is old:
            merged = dict(old)
        merged[register] = before | seen
        changed = True
    return (merged, range_of_both) if changed else None


def _blocks(following: list[list[int]]) -> list[tuple[int, int]]:
    """Runs of lines, from first to behind the last, that are entered at their beginning and left at their end."""
    count = len(following)
    starts = {0}
    for line, after in enumerate(following):
        if after != [line + 1]:
            starts.add(line + 1)
            starts.update(target for target in after if target != line + 1)
        if len(after) > 1:
            starts.update(after)
    ordered = sorted(start for start in starts if start < count)
    return list(zip(ordered, [*ordered[1:], count], strict=False))
