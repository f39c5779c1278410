"""Makes copies of a module: renamed throughout, or with one planted change."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

VALUE = re.compile(r"%[\w$.-]+")
LABEL = re.compile(r"\^[\w$.-]+")
ALIAS = re.compile(r"#(?!loc)([a-z]+)\d*\b(?![.<\w])")
LOCATION = re.compile(r" loc\(#loc\d*\)")
DEFINITION = re.compile(r"^#\w+ = ")
RESULT = re.compile(r"^\s*(%[\w$.-]+) = ")
RESULTS = re.compile(r"^\s*%[\w$.:, %-]+ = ")
# Lines that can be copied, moved or changed by themselves: one operation, no region, no terminator.
TERMINATORS = ("yield", "return", "br ", "cond_br", "condition", "unreachable")


def renumbered(text: str, rng: random.Random) -> str:
    """The module with every value and label renamed, its aliases renamed and shuffled, and no location."""
    lines = [LOCATION.sub("", line) for line in text.splitlines() if not line.startswith("#loc")]
    body = "\n".join(lines)
    names = sorted(set(VALUE.findall(body)))
    numbers = rng.sample(range(10 * len(names) + 10), len(names))
    values = {name: f"%v{number}" for name, number in zip(names, numbers, strict=True)}
    labels = sorted(set(LABEL.findall(body)))
    blocks = dict(zip(labels, rng.sample([f"^b{n}" for n in range(3 * len(labels))], len(labels)), strict=True))
    aliases = sorted({match[0] for match in ALIAS.finditer(body)})
    fresh = dict(
        zip(
            aliases,
            rng.sample([f"#{chr(97 + n % 26)}x{n}" for n in range(3 * len(aliases))], len(aliases)),
            strict=True,
        )
    )
    body = VALUE.sub(lambda match: values[match[0]], body)
    body = LABEL.sub(lambda match: blocks[match[0]], body)
    body = ALIAS.sub(lambda match: fresh[match[0]], body)
    lines = body.splitlines()
    head = [line for line in lines if DEFINITION.match(line)]
    rng.shuffle(head)
    return "\n".join([*head, *(line for line in lines if not DEFINITION.match(line)), ""])


@dataclass(frozen=True)
class Plant:
    """A module with one change, and the operations that a diff may show: (left line, right line), stripped."""

    kind: str
    text: str
    left: str | None
    right: str | None


def is_plain(line: str) -> bool:
    return (
        line.startswith("    ")
        and not line.rstrip().endswith(("{", ":"))
        and not line.lstrip().startswith(("}", "^"))
        and "arg_attrs" not in line
        and not any(word in line for word in TERMINATORS)
    )


def plant(text: str, kind: str, rng: random.Random) -> Plant | None:
    """Plant one change; None where the module has no place for it."""
    lines = [LOCATION.sub("", line) for line in text.splitlines() if not line.startswith("#loc")]
    places = [index for index, line in enumerate(lines) if is_plain(line)]
    rng.shuffle(places)
    for index in places:
        changed = PLANTERS[kind](list(lines), index, rng)
        if changed is not None:
            new, left, right = changed
            return Plant(kind, "\n".join([*new, ""]), left, right)
    return None


Change = tuple[list[str], "str | None", "str | None"]


def _attribute(lines: list[str], index: int, rng: random.Random) -> Change | None:
    match = re.search(r"(?<== )\d+(?= : i\d+)|(?<=constant )\d+(?= : )|(?<=constant\()\d+(?= : )", lines[index])
    if match is None:
        return None
    old = lines[index]
    lines[index] = f"{old[: match.start()]}{int(match[0]) + 1000}{old[match.end() :]}"
    return lines, old.strip(), lines[index].strip()


def _inserted(lines: list[str], index: int, rng: random.Random) -> Change | None:
    match = RESULT.match(lines[index])
    if match is None:
        return None
    indent = lines[index][: len(lines[index]) - len(lines[index].lstrip())]
    new = (
        f'{indent}%planted = "test.planted"({match[1]}) : () -> ()'
        if rng.random() < 0.5
        else lines[index].replace(match[1], "%planted", 1)
    )
    lines.insert(index + 1, new)
    return lines, None, new.strip()


def _removed(lines: list[str], index: int, rng: random.Random) -> Change | None:
    match = RESULTS.match(lines[index])
    names = VALUE.findall(match[0]) if match else []
    if set(names) & set(VALUE.findall("\n".join(lines[index + 1 :]))):
        return None
    old = lines.pop(index)
    return lines, old.strip(), None


def _moved(lines: list[str], index: int, rng: random.Random) -> Change | None:
    """Out of its region: within a block, the order of independent operations is no difference."""
    own = lines[index]
    names = set(VALUE.findall(own))
    for target in range(index - 1, 0, -1):
        above = lines[target]
        opens = above.rstrip().endswith("{")
        made = set(VALUE.findall(above if opens else above.partition(" = ")[0]))
        if above.lstrip().startswith(("}", "^")) or names & made or _same_operation(above, own):
            return None
        if opens and ("func" in above or "module" in above):
            return None
        if opens:
            lines.pop(index)
            lines.insert(target, own)
            return lines, own.strip(), own.strip()
    return None


def _same_operation(one: str, other: str) -> bool:
    def bare(line: str) -> str:
        return VALUE.sub("%", line)

    return bare(one) == bare(other)


def _type(lines: list[str], index: int, rng: random.Random) -> Change | None:
    match = re.search(r"\b(?:i32|f32|f16|i64)\b(?=[^\"]*$)", lines[index])
    if match is None or ("#" in lines[index] and rng.random() < 0.5):
        aliases = sorted({line.split(" ")[0] for line in lines if DEFINITION.match(line)} - {"#smem"})
        used = [match[0] for match in ALIAS.finditer(lines[index]) if match[0] in aliases]
        others = [alias for alias in aliases if used and alias != used[0]]
        if not others:
            return None
        old = lines[index]
        lines[index] = old.replace(used[0], rng.choice(others), 1)
        return lines, old.strip(), lines[index].strip()
    old = lines[index]
    lines[index] = old[: match.start()] + "i7" + old[match.end() :]
    return lines, old.strip(), lines[index].strip()


def _swapped(lines: list[str], index: int, rng: random.Random) -> Change | None:
    match = re.match(r"^(\s*%[\w$.-]+ = [\w.]+ (?:\w+ )?)(%[\w$.-]+), (%[\w$.-]+)( .*| : .*)$", lines[index])
    if match is None or match[2] == match[3]:
        return None
    old = lines[index]
    lines[index] = f"{match[1]}{match[3]}, {match[2]}{match[4]}"
    return lines, old.strip(), lines[index].strip()


PLANTERS = {
    "attribute": _attribute,
    "inserted": _inserted,
    "removed": _removed,
    "moved": _moved,
    "type": _type,
    "swapped": _swapped,
}
