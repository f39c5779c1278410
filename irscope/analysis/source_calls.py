"""Which lines call the functions that a module does not inline: `noinline` helpers; before the inliner, all of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from irscope.ir.locations import Chain, Frame, TextLocations
from irscope.ir.locations_model import text_lines

MAX_CALLERS = 64
"""The chains of callers that are kept of one function: helpers that call helpers multiply."""
_MAX_DEPTH = 16

#   tt.func private @"standard.sum__fp32"(     tt.func public @kernel(
_FUNCTION = re.compile(
    r'\s*tt\.func (?:(?P<access>public|private) )?(?:\w+ )?@(?:"(?P<quoted>[^"]*)"|(?P<name>[\w.$-]+))'
)
#   %0 = tt.call @"standard.sum__fp32"(%x)
_CALL = re.compile(r'\btt\.call @(?:"(?P<quoted>[^"]*)"|(?P<name>[\w.$-]+))')


@dataclass(frozen=True)
class CallSites:
    """The callers of the private functions of one module."""

    functions: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    """(file, line) of Python -> the private function that it stands in."""
    calls: dict[str, tuple[tuple[str, Chain], ...]] = field(default_factory=dict[str, tuple[tuple[str, Chain], ...]])
    """Function -> (private function that calls it, or nothing; where it does)."""

    def callers(self, outermost: Frame) -> tuple[Chain, ...]:
        """The chains that lead to the function of a chain's outermost frame; none where that is a kernel."""
        name = self.functions.get((outermost.file, outermost.line))
        return tuple(self._chains(name, 0)) if name is not None else ()

    def _chains(self, name: str, depth: int) -> list[Chain]:
        found: list[Chain] = []
        for caller, chain in self.calls.get(name, ()):
            outer = self._chains(caller, depth + 1) if caller and depth < _MAX_DEPTH else []
            found.extend([(*chain, *rest) for rest in outer] or [chain])
            if len(found) >= MAX_CALLERS:
                break
        return found[:MAX_CALLERS]


def read_call_sites(text: str, locations: TextLocations) -> CallSites:
    """The call sites of a module of Triton's dialects; `locations` are those of its text."""
    if "tt.call " not in text:
        return CallSites()
    functions: dict[tuple[str, int], str] = {}
    calls: dict[str, list[tuple[str, Chain]]] = {}
    private = ""
    for number, line in enumerate(text_lines(text), 1):
        head = _FUNCTION.match(line) if "tt.func " in line else None
        if head is not None:
            private = (head["quoted"] or head["name"]) if head["access"] == "private" else ""
        chain = locations.chain_at(number)
        if not chain:
            continue
        if private:
            functions.setdefault((chain[-1].file, chain[-1].line), private)
        call = _CALL.search(line) if "tt.call @" in line else None
        if call is not None:
            site = (private, chain)
            known = calls.setdefault(call["quoted"] or call["name"], [])
            if site not in known:
                known.append(site)
    return CallSites(functions, {name: tuple(sites) for name, sites in calls.items()})
