"""The values of physical registers in machine code: which writes each read may see, their columns, their live ranges.

A register holds many values in its time. A value here is a web: all writes that some read may see one of, with all
those reads. Two texts whose webs correspond compute the same under other names of registers, and only those do. Writes
under a guard, or to the lanes that are on, leave the older value visible.

On AMD a vector instruction writes the lanes that the EXEC mask has on. A write at one depth of nested masks hides no
write of an outer depth: each write keeps the least depth it was made at, and is hidden by writes of that depth or less.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

from irscope.ir.asm.operands import RegisterAccess, registers_of
from irscope.ir.reach import Unions
from irscope.ir.syntax import Body, Shape, shape_of

_DEEPEST = 6
"""Depths of nested masks that are distinguished; a deeper write hides nothing."""

_MOST_SEEN = 64
"""Writes of one register that are kept apart until something reads it."""

_Seen = frozenset[tuple[int, int]]
"""Writes that may be visible: (write, depth)."""
_State = dict[str, _Seen]
_NOTHING: _Seen = frozenset()


@dataclass(slots=True)
class _LineAccess:
    """The registers of one line, in the order of its values."""

    shown: list[str] = field(default_factory=list[str])
    """Those that the text names."""
    is_write: list[bool] = field(default_factory=list[bool])
    """One item for each of `shown` and `more`."""
    more: list[str] = field(default_factory=list[str])
    """Those it does not name: old values of what is modified in place, and implicit registers."""


def line_access(access: RegisterAccess, names: list[str], everything: tuple[str, ...]) -> _LineAccess:
    """The registers of a line whose holes have these names; `everything` is what an unknown instruction reads."""
    line = _LineAccess()
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


def successors(accesses: list[RegisterAccess | None], targets: list[int | None], labels: list[int]) -> list[list[int]]:
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


class _Webs:
    """The values of a text's physical registers."""

    def __init__(
        self, accesses: list[RegisterAccess | None], lines: list[_LineAccess | None], following: list[list[int]]
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
        self._unions = Unions(len(self.writers))
        self.webs: list[list[int | str]] = self._joined()
        """Per line, the web of each of its registers: a write that stands for it, or the name of what nothing wrote."""

    @property
    def first_writers(self) -> dict[int, int]:
        """Web -> the first line of the text that writes it."""
        first: dict[int, int] = {}
        for write, line in enumerate(self.writers):
            first.setdefault(self._unions.root(write), line)
        return first

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
                        self._unions.join(other, seen[0])
                    if len(seen) > _DEEPEST:
                        state[register] = self._as_one(state[register])
                    webs.append(seen[0] if seen else register)
                found[line] = webs
                depth = self._step(line, state, depth)
        return [[self._unions.root(web) if isinstance(web, int) else web for web in webs] for webs in found]

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
            self._unions.join(write, kept.setdefault(depth, write))
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


# ── Reads assembly on physical registers for the comparison: a value is a set of writes that share readers ──────────

# CALL.REL.NOINC `($__internal_0_$__cuda_sm20_div_s64)
_FUNCTION = re.compile(r"`\((?P<name>[^)`]+)\)")
# More than any GPU has per thread; a hostile text may name any number.
_MOST_REGISTERS = 1000
_MOST_READS = 1_000_000
"""Of all unknown instructions of a text together."""


class RegisterReader:
    """Fills the columns of a `Body` from the templates of its lines."""

    def __init__(self, body: Body, found: list[str]) -> None:
        self._body = body
        self._found = found
        self._labels: dict[tuple[int, str], int] = {}
        """(function, label) -> line of the label."""
        self._functions: list[int] = []
        """Per line, the number of functions that began before it."""
        self._own: list[list[str]] = []
        """Per line, the registers and labels in its holes."""
        self._by_name: dict[str, int] = {}
        """Register that is never written -> value."""
        self._of_web: dict[int, int] = {}
        self._of_label: dict[tuple[int, str], int] = {}
        self._value_keys: list[int] = []
        self._first_writers: dict[int, int] = {}

    def read(self, templates: list[str]) -> None:
        self._read_shapes(templates)
        accesses = [shape.access for shape in self._body.shapes]
        lines = self._registers(accesses)
        following = successors(accesses, self._targets(), sorted(self._labels.values()))
        self._body.following.extend(following)
        webs = _Webs(accesses, lines, following)
        self._first_writers = webs.first_writers
        for line, shape in enumerate(self._body.shapes):
            self._read_line(line, shape, lines[line], webs.webs[line])
        self._body.parents.extend([-1] * len(templates))
        self._body.openers.extend([-1] * len(templates))

    def _read_shapes(self, templates: list[str]) -> None:
        known: dict[str, tuple[Shape, int]] = {}
        position = functions = 0
        for line, template in enumerate(templates):
            template = template.lstrip()
            entry = known.get(template)
            if entry is None:
                shape = shape_of(template, self._body.kind)
                entry = known[template] = (shape, self._body.resolver.key(shape))
            shape, key = entry
            functions += shape.is_function
            own = self._found[position : position + shape.holes]
            position += shape.holes
            if shape.access is not None and shape.access.is_unknown:
                key = hash((key, *own))
            if shape.defines and shape.access is None:
                self._labels.setdefault((functions, own[0]), line)
            self._body.shapes.append(shape)
            self._body.keys.append(key)
            self._functions.append(functions)
            self._own.append(own)

    def _registers(self, accesses: list[RegisterAccess | None]) -> list[_LineAccess | None]:
        lines = [access and line_access(access, own, ()) for access, own in zip(accesses, self._own, strict=True)]
        unknown = sum(access is not None and access.is_unknown for access in accesses)
        if not unknown:
            return lines
        named = {register for line in lines if line is not None for register in line.shown + line.more}
        everything = tuple(sorted(named)[: min(_MOST_REGISTERS, _MOST_READS // unknown)])
        return [
            access and line_access(access, own, everything) for access, own in zip(accesses, self._own, strict=True)
        ]

    def _targets(self) -> list[int | None]:
        shapes = self._body.shapes
        functions = {shape.template[:-1]: line for line, shape in enumerate(shapes) if shape.template[-1:] == ":"}
        anywhere = {label: line for (_, label), line in reversed(self._labels.items())}
        targets: list[int | None] = []
        for line, shape in enumerate(shapes):
            flow = shape.access.flow if shape.access is not None else "next"
            target = None
            if flow == "call":
                called = _FUNCTION.search(shape.template)
                target = functions.get(called["name"]) if called else None
            elif flow in ("branch", "jump"):
                label = next((name for name in reversed(self._own[line]) if name[0] == "."), "")
                target = self._labels.get((self._functions[line], label), anywhere.get(label))
            targets.append(target)
        return targets

    def _read_line(self, line: int, shape: Shape, access: _LineAccess | None, webs: list[int | str]) -> None:
        names = access.shown + access.more if access is not None else []
        registers = [self._value(name, web, line) for name, web in zip(names, webs, strict=True)]
        values: list[int] = []
        taken = 0
        for span, name in zip(shape.spans, self._own[line], strict=True):
            if name[0] == ".":
                values.append(self._label(line, name))
            elif access is None:
                values.append(self._unwritten(name))
            else:
                values += registers[taken : taken + span]
                taken += span
        values += registers[taken:]
        defines = shape.defines
        defined = set(defines)
        used = tuple([value for place, value in enumerate(values) if place not in defined])
        deep = hash((self._body.keys[line], *[self._value_keys[value] for value in used]))
        for place, index in enumerate(defines):
            self._value_keys[values[index]] = deep + place
        self._body.deep_keys.append(deep)
        self._body.values.append(tuple(values))
        self._body.uses.append(used)

    def _new(self, name: str, definer: int, key: int) -> int:
        self._body.names.append(name)
        self._body.definers.append(definer)
        self._value_keys.append(key)
        return len(self._body.names) - 1

    def _label(self, line: int, name: str) -> int:
        label = (self._functions[line], name)
        value = self._of_label.get(label)
        if value is None:
            value = self._of_label[label] = self._new(name, self._labels.get(label, -1), 0)
        return value

    def _unwritten(self, name: str) -> int:
        value = self._by_name.get(name)
        if value is None:
            value = self._by_name[name] = self._new(name, -1, hash(name))
        return value

    def _value(self, name: str, web: int | str, line: int) -> int:
        if isinstance(web, str):
            return self._unwritten(web)
        value = self._of_web.get(web)
        if value is None:
            value = self._of_web[web] = self._new(name, self._first_writers[web], 0)
        return value


_GENERAL = {"sass": "R", "amdgcn": "va"}
"""The first letters of the registers that every thread has its own of."""
_FLAGS = ("P", "UP", "vcc", "exec", "scc")
"""The first letters of those that guard an instruction."""


@dataclass(frozen=True, slots=True)
class LiveValues:
    """The live values of a text, for each of its lines."""

    body: Body
    at: tuple[int, ...]
    """Line → the values that it reads or writes, or that pass it by, in general registers: bit n for value n."""
    counts: tuple[int, ...]
    """Line → the registers that they are in: what a line writes may be where what it reads was."""

    def values(self, line: int) -> Iterator[int]:
        """Those of a line, as indices of `Body.names`."""
        return _bits(self.at[line])


def live_values(body: Body) -> LiveValues:
    """The live values of a text on physical registers; of any other text, none."""
    count = len(body.following)
    letters = _GENERAL.get(body.kind, "")
    general = sum(1 << value for value, name in enumerate(body.names) if name[:1] in letters and name[1:].isdecimal())
    reads, writes = [0] * count, [0] * count
    for line in range(count):
        defined = {body.values[line][index] for index in body.shapes[line].defines if index < len(body.values[line])}
        writes[line] = _mask(defined) & general
        reads[line] = _mask(body.uses[line]) & general
    # What stood in the registers that a line writes may remain where it is under a guard, or has a mask.
    accesses = [body.shapes[line].access for line in range(count)]
    kept = [access is not None and access.is_partial for access in accesses]
    # Live behind a line: what its successors read, or pass on without having written it.
    before = [0] * count
    into: list[list[int]] = [[] for _ in range(count)]
    for line, following in enumerate(body.following):
        for after in following:
            into[after].append(line)
    waiting = list(range(count))
    queued = [True] * count
    while waiting:
        line = waiting.pop()
        queued[line] = False
        behind = 0
        for after in body.following[line]:
            behind |= before[after]
        found = reads[line] | (behind & ~(0 if kept[line] else writes[line]))
        if found == before[line]:
            continue
        before[line] = found
        for other in into[line]:
            if not queued[other]:
                queued[other] = True
                waiting.append(other)
    of_register: dict[str, int] = {}
    for value in _bits(general):
        name = body.names[value]
        of_register[name] = of_register.get(name, 0) | 1 << value
    counts = tuple(
        live.bit_count() + sum(not live & of_register[body.names[value]] for value in _bits(written & ~live))
        for live, written in zip(before, writes, strict=True)
    )
    return LiveValues(body, tuple(before[line] | writes[line] for line in range(count)), counts)


def makers_of(body: Body) -> dict[int, int]:
    """Value → the first line that computes it of other values; of a constant alone, the first that writes it.

    A constant that a value begins with (`CS2R R8, SRZ` before a loop or a masked load) has no location of its own: the
    line table gives it that of the instruction beside it.
    """
    makers = {value: line for value, line in enumerate(body.definers) if line >= 0}
    is_flag = [name.startswith(_FLAGS) for name in body.names]
    computed: dict[int, int] = {}
    for line, uses in enumerate(body.uses):
        if not all(is_flag[value] for value in uses):
            values, defines = body.values[line], body.shapes[line].defines
            computed.update(
                (values[index], line) for index in defines if index < len(values) and values[index] not in computed
            )
    return makers | computed


def _mask(values: set[int] | tuple[int, ...]) -> int:
    found = 0
    for value in values:
        found |= 1 << value
    return found


def _bits(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
