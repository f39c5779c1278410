"""The command line of ptxas as steps of a plan: its levels, what it does by default, and the options it is given."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

PREFIX = "ptxas-"
"""Of a step's name: `ptxas-O3`, `ptxas-fmad`, `ptxas-maxrregcount`."""

_DEFAULTS = {
    "expensive-optimizations": "--allow-expensive-optimizations=false",
    "fmad": "--fmad=false",
    "optimizer-constants": "--disable-optimizer-constants",
    "merge-basicblocks": "--dont-merge-basicblocks",
}
"""What ptxas does by default, and the option that keeps it from that."""

_LEVELS = ("O3", "O2", "O1")
KNOWN = (*_LEVELS, *_DEFAULTS)
"""The steps that do not depend on the options that ptxas is given."""

# What a binary is made for and of, and what changes no instruction.
_NEEDED = (
    *("", "gpu-name", "arch", "o", "output-file", "v", "verbose", "g", "device-debug"),
    *("lineinfo", "generate-line-info", "suppress-debug-info"),
)


def is_assembler(command: object) -> bool:
    return isinstance(command, list) and Path(str(command[0])).name.startswith("ptxas") and "-o" in command


def steps(command: Sequence[str]) -> tuple[str, ...]:
    """The names of a command's steps, without the prefix; of one whose level is 0, only given options are steps."""
    options = _options(command)
    levels = [level for words in options if (level := _level(words)) is not None]
    level = levels[-1] if levels else len(_LEVELS)
    given = [_name(words) for words in options if _level(words) is None]
    switches = {_name([switch]): name for name, switch in _DEFAULTS.items()}
    defaults = [name for switch, name in switches.items() if level and switch not in given]
    others = dict.fromkeys(name for name in given if name not in switches and name not in _NEEDED)
    return (*_LEVELS[len(_LEVELS) - level :], *defaults, *others)


def without(command: Sequence[str], off: Collection[str]) -> list[str]:
    lowest = min((int(name[1:]) for name in _LEVELS if name in off), default=None)
    changed = list(command[:1])
    for words in _options(command):
        is_replaced = lowest is not None and _level(words) is not None
        if not is_replaced and _name(words) not in off:
            changed += words
    if lowest is not None:
        changed += ["--opt-level", str(lowest - 1)]
    return changed + [switch for name, switch in _DEFAULTS.items() if name in off]


def _options(command: Sequence[str]) -> list[list[str]]:
    """The words of each option, and those of what is no option."""
    groups: list[list[str]] = []
    for word in command[1:]:
        may_be_value = not word.startswith("-") and not word.endswith(".ptx")
        if may_be_value and groups and len(groups[-1]) == 1 and groups[-1][0].startswith("-"):
            groups[-1].append(word)
        else:
            groups.append([word])
    return groups


def _level(words: Sequence[str]) -> int | None:
    """2 of `-O2`, `--opt-level 2` and `--opt-level=2`; None for any other option."""
    text = "".join(words).replace("=", "")
    level = text.removeprefix("-O").removeprefix("--opt-level")
    return int(level) if level != text and level.isdecimal() else None


def _name(words: Sequence[str]) -> str:
    """`gpu-name` of `--gpu-name=sm_90a`; empty for what is no option."""
    return words[0].lstrip("-").partition("=")[0] if words[0].startswith("-") else ""
