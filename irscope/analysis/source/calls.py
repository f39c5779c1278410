"""Which lines call the functions that a module does not inline: `noinline` helpers; before the inliner, all of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from irscope.ir.locations.model import Chain, Frame, TextLocations
from irscope.ir.mlir.reader import Operation, parse_mlir

_MAX_CALLERS = 64
"""The chains of callers that are kept of one function: helpers that call helpers multiply."""
_MAX_DEPTH = 16

Function = tuple[int, str]
"""(line of the module whose symbol it is, symbol): a module within another one has names of its own."""


@dataclass(frozen=True)
class CallSites:
    """The callers of the private functions of one module."""

    functions: dict[tuple[str, int], Function] = field(default_factory=dict[tuple[str, int], Function])
    """(file, line) of Python -> the private function that it stands in."""
    calls: dict[Function, tuple[tuple[Function | None, Chain], ...]] = field(
        default_factory=dict[Function, tuple[tuple[Function | None, Chain], ...]]
    )
    """Function -> (private function that calls it, or None; where it does)."""

    def callers(self, outermost: Frame) -> tuple[Chain, ...]:
        """The chains that lead to the function of a chain's outermost frame; none if that is a kernel."""
        name = self.functions.get((outermost.file, outermost.line))
        return tuple(self._chains(name, 0)) if name is not None else ()

    def _chains(self, name: Function, depth: int) -> list[Chain]:
        found: list[Chain] = []
        for caller, chain in self.calls.get(name, ()):
            outer = self._chains(caller, depth + 1) if caller is not None and depth < _MAX_DEPTH else []
            found.extend([(*chain, *rest) for rest in outer] or [chain])
            if len(found) >= _MAX_CALLERS:
                break
        return found[:_MAX_CALLERS]


def read_call_sites(text: str, locations: TextLocations) -> CallSites:
    """The call sites of a module of Triton's dialects; `locations` are those of its text."""
    if "call " not in text:
        return CallSites()
    functions: dict[tuple[str, int], Function] = {}
    calls: dict[Function, list[tuple[Function | None, Chain]]] = {}
    waiting: list[tuple[Operation, int, Function | None]]
    waiting = [(operation, 0, None) for operation in reversed(parse_mlir(text).operations)]
    while waiting:
        operation, table, private = waiting.pop()
        name = (table, operation.symbol) if operation.opcode in ("func", "call") else None
        if operation.opcode == "func":
            private = name if operation.attribute("sym_visibility") == "private" else None
        if chain := locations.chain_at(operation.first_line):
            if private is not None:
                functions.setdefault((chain[-1].file, chain[-1].line), private)
            if operation.opcode == "call" and name is not None:
                known = calls.setdefault(name, [])
                if (private, chain) not in known:
                    known.append((private, chain))
        inner = operation.first_line if operation.name == "builtin.module" else table
        waiting.extend((one, inner, private) for one in reversed(operation.children))
    return CallSites(functions, {name: tuple(sites) for name, sites in calls.items()})
