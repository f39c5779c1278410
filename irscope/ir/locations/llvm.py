"""Reads the locations of LLVM IR: `!dbg` attachments, through DILocation, its scopes and files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from irscope.ir.locations.model import (
    MAX_FRAMES,
    Chain,
    ChainTable,
    Frame,
    TextLocations,
    columns_of,
    count,
    text_lines,
)
from irscope.ir.quoted import unescape_ir

#   %9 = add i32 %8, 1, !dbg !14        define void @kernel(ptr %0) !dbg !6 {
_ATTACHED = re.compile(r"!dbg !(?P<id>\d+)")
# !14 = distinct !DILocation(line: 16, column: 15, scope: !6, inlinedAt: !22)
_NODE = re.compile(
    r"!(?P<id>\d+) = (?:distinct )?!"
    r"(?P<kind>DILocation|DISubprogram|DILexicalBlock|DILexicalBlockFile|DIFile|DINamespace|DICommonBlock)\((?P<fields>.*)\)\s*$"
)
# line: 16    scope: !6    name: "chains"
_FIELD = re.compile(r'\b(?P<key>\w+): (?:!(?P<id>\d+)|(?P<number>\d+)|"(?P<text>(?:[^"\\]|\\.)*)")')


@dataclass(frozen=True, slots=True)
class _MetadataNode:
    """A node of debug metadata, with the fields that locations need."""

    kind: str
    ids: dict[str, str]
    numbers: dict[str, int]
    texts: dict[str, str]


def _read_nodes(lines: list[str]) -> dict[str, _MetadataNode]:
    """Node number → node, of the kinds that locations need."""
    nodes: dict[str, _MetadataNode] = {}
    for line in lines:
        match = _NODE.match(line) if line[:1] == "!" else None
        if match is None:
            continue
        ids: dict[str, str] = {}
        numbers: dict[str, int] = {}
        texts: dict[str, str] = {}
        for part in _FIELD.finditer(match["fields"]):
            if part["id"]:
                ids.setdefault(part["key"], part["id"])
            elif part["number"]:
                numbers.setdefault(part["key"], count(part["number"]))
            else:
                texts.setdefault(part["key"], unescape_ir(part["text"]))
        nodes[match["id"]] = _MetadataNode(match["kind"], ids, numbers, texts)
    return nodes


class _DebugChains:
    """Resolves metadata nodes to chains; each node is read once."""

    def __init__(self, lines: list[str]) -> None:
        self.nodes = _read_nodes(lines)
        self._places: dict[str, tuple[str, str]] = {}

    def chain(self, number: str) -> Chain:
        """The chain of a DILocation, or the location of a DISubprogram; empty for any other node."""
        node = self.nodes.get(number)
        if node is None:
            return ()
        if node.kind == "DISubprogram":
            file, function = self._place(number)
            line = node.numbers.get("line", 0)
            return (Frame(file, line, 0, function),) if line else ()
        frames: list[Frame] = []
        seen: set[str] = set()
        while node is not None and node.kind == "DILocation" and number not in seen and len(frames) < MAX_FRAMES:
            seen.add(number)
            file, function = self._place(node.ids.get("scope", ""))
            line, column = node.numbers.get("line", 0), node.numbers.get("column", 0)
            if line:
                frames.append(Frame(file, line, column, function))
            number = node.ids.get("inlinedAt", "")
            node = self.nodes.get(number)
        return honest(frames)

    def places(self) -> list[Chain]:
        """The chains of all locations and functions, those of inlined calls included: they may be instructions."""
        kinds = ("DISubprogram", "DILocation")
        return [self.chain(number) for number, node in self.nodes.items() if node.kind in kinds]

    def _place(self, scope: str) -> tuple[str, str]:
        if scope not in self._places:
            self._places[scope] = self._find_place(scope)
        return self._places[scope]

    def _find_place(self, scope: str) -> tuple[str, str]:
        file = function = ""
        seen: set[str] = set()
        node = self.nodes.get(scope)
        while node is not None and scope not in seen:
            seen.add(scope)
            file = file or self._file(node.ids.get("file", ""))
            if node.kind == "DISubprogram":
                function = node.texts.get("name", "")
                break
            scope = node.ids.get("scope", "")
            node = self.nodes.get(scope)
        return file, function

    def _file(self, number: str) -> str:
        node = self.nodes.get(number)
        if node is None or node.kind != "DIFile":
            return ""
        return joined(node.texts.get("directory", ""), node.texts.get("filename", ""))


def honest(frames: Sequence[Frame]) -> Chain:
    """The chain without wrong function names.

    Triton gives inlined code the scope of the function that it was inlined into, so the function of an inner frame is
    unknown if it equals that of the outermost frame.
    """
    outer = frames[-1].function if frames else ""
    inner = (replace(frame, function="") if frame.function == outer else frame for frame in frames[:-1])
    return (*inner, *frames[-1:])


def joined(directory: str, file: str) -> str:
    """A file's path, from the directory that its name is relative to."""
    if not directory or file.startswith("/"):
        return file
    return f"{directory.rstrip('/')}/{file}"


def read_llvm(text: str) -> TextLocations:
    lines = text_lines(text)
    debug = _DebugChains(lines)
    table = ChainTable()
    known: dict[str, int] = {}
    by_line = [-1] * len(lines)
    opened = -1  # the line of an instruction that is not closed yet: switch … [
    for index, line in enumerate(lines):
        if line[:1] in "!;@":
            continue
        start = line.rfind("!dbg !")
        match = _ATTACHED.match(line, start) if start > 0 else None
        if match is None:
            if line.endswith("[") and line[:1] == " ":
                opened = index
            elif not line or line[0] == "}":
                opened = -1
            continue
        number = match["id"]
        if number not in known:
            known[number] = table.add(debug.chain(number))
        first = opened if opened >= 0 and line.lstrip()[:1] == "]" else index
        by_line[first : index + 1] = [known[number]] * (index + 1 - first)
        opened = -1
    return table.locations(by_line)


# ── The chains in the LLVM IR of an assembly, to complete the locations of the assembly itself ──────────────────────

_Key = tuple[int, int, str]


class KnownChains:
    """The chains of an LLVM module; without a module, chains stay as they are."""

    def __init__(self, llir: str | None, columns: bool = True) -> None:
        """Read the module; `columns` is False for SASS, which has no columns."""
        self._exact: set[tuple[tuple[str, int, int], ...]] = set()
        self._by_start: dict[tuple[str, int, int], list[Chain]] = {}
        for chain in _DebugChains(text_lines(llir)).places() if llir else ():
            plain = tuple(Frame(frame.file, frame.line, frame.column if columns else 0) for frame in chain)
            exact = columns_of(plain)
            if plain and exact not in self._exact:
                self._exact.add(exact)
                self._by_start.setdefault(exact[0], []).append(plain)

    def settle(self, frames: Sequence[Frame]) -> Chain:
        """The chain of the module that given frames match.

        Frames that are a chain of the module, or that match none, stay as they are. Otherwise it is the chain that
        agrees with most of them from the innermost outwards, if there is exactly one; files are compared by name,
        since comments omit their folders.
        """
        chain = tuple(frames)
        if not chain or not self._exact or columns_of(chain) in self._exact:
            return chain
        candidates = self._by_start.get(columns_of(chain[:1])[0], [])
        for length in range(len(chain), 0, -1):
            wanted = self._keys(chain[:length])
            agreeing = [other for other in candidates if self._keys(other[:length]) == wanted]
            if agreeing:
                return agreeing[0] if len(agreeing) == 1 else chain
        return chain

    def _keys(self, chain: Sequence[Frame]) -> tuple[_Key, ...]:
        return tuple((frame.line, frame.column, frame.file.rpartition("/")[2]) for frame in chain)
