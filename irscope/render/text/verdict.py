"""Verdicts of `irscope verify` as text."""

from __future__ import annotations

from os.path import basename

from irscope.verify.verdict import AccessWitness, SafetyVerdict, Violation

__all__ = ["render_verdict"]

_TITLES = {
    "out-of-bounds": "access out of bounds",
    "program-race": "race between programs",
    "thread-race": "race between threads of a program",
    "lost-order": "load moved across a store",
    "never-ends": "wait that never ends",
    "failed-assertion": "failed assertion",
    "misaligned": "misaligned access",
    "shared-race": "race in shared memory",
    "proxy-fence": "missing proxy fence",
    "divergent-barrier": "divergent barrier",
    "uninitialised-read": "read of memory that nobody wrote",
}


def render_verdict(verdict: SafetyVerdict, *, color: bool = False) -> str:
    """The answer, then each violation with its accesses, then what was not decided, and why."""
    answer = f"\x1b[1m{verdict.answer}\x1b[0m" if color else verdict.answer
    lines = [f"{answer}: {_scope(verdict)}"]
    for violation in verdict.violations:
        lines += _violation(violation)
    lines += [f"  not decided: {reason}." for reason in verdict.undecided]
    lines += [f"  note: {note}." for note in verdict.notes]
    return "\n".join(lines) + "\n"


def _scope(verdict: SafetyVerdict) -> str:
    if not verdict.all_programs:
        return "nothing was executed"
    if verdict.programs == verdict.all_programs:
        programs = f"all {verdict.programs} programs" if verdict.programs != 1 else "its one program"
    else:
        programs = f"{verdict.programs} of {verdict.all_programs} programs (--all-programs executes the others)"
    shared = f"; shared memory: {verdict.shared}" if verdict.shared else ""
    return f"accesses to global memory of {programs}, for the arguments of this launch{shared}"


def _violation(violation: Violation) -> list[str]:
    place = next((access.place for access in violation.accesses if access.place), "")
    head = f"{violation.code} {_TITLES[violation.kind]}"
    lines = [f"  {head}  {_short(place)}" if place else f"  {head}", f"    {violation.detail}."]
    if violation.address:
        lines.append(f"    address: {violation.address}")
    lines += [f"    {_access(access)}" for access in violation.accesses]
    lines.append(f"    made by: {violation.made_by}")
    return lines


def _access(access: AccessWitness) -> str:
    words = [access.operation, _short(access.place)]
    if access.program is not None:
        words.append(f"program {access.program}")
    if access.warp is not None and access.lane is not None:
        words.append(f"warp {access.warp} lane {access.lane}")
    if access.element:
        words.append(f"element {list(access.element)}")
    return "  ".join(word for word in words if word)


def _short(place: str) -> str:
    file, _, line = place.rpartition(":")
    return f"{basename(file)}:{line}" if file else place
