"""`irscope serve lsp`: findings, predicted costs and the IR of each line, in an editor.

A Python file is recorded when it is saved, in a thread of its own: it is the user's code that runs. Until then, and
after an edit, what is known of the last saved text is shown. Captures hold the whole texts; what a line became is
read from them when it is asked for.
"""

from __future__ import annotations

import ast
import hashlib
import queue
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

import msgspec
from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from irscope.analysis.findings.edits import source_edits
from irscope.analysis.findings.model import KINDS, LEAST_SHARE, Finding, Suggestion
from irscope.analysis.findings.tries import Budget
from irscope.analysis.source.map import SourceMap, source_map, without_location
from irscope.errors import DAMAGE, IrscopeError, RecordingError, UsageError
from irscope.ir.locations.model import TextLocations
from irscope.ir.locations.stages import read_locations
from irscope.ir.mlir.model import MlirModule, Value
from irscope.ir.mlir.reader import parse_mlir
from irscope.ir.mlir.tokens import python_name
from irscope.model.capture import Capture, Launch
from irscope.model.launch_record import LaunchRecord
from irscope.model.recording_options import RecordingOptions
from irscope.render.text.tables import duration_text

if TYPE_CHECKING:
    from irscope.record.process.requests import KnownCompile

_MLIR = (".mlir", ".ttir", ".ttgir")
_MOST_EXPLAINED = 64
_MOST_OPERATIONS = 12
"""Of a line, in one hover."""
_TRIED = Budget(findings=None, compiles=4)
"""Of each launch after a save. A search of options and tiles takes too long for that: `irscope why` makes it."""


@dataclass(frozen=True)
class _Explained:
    """A capture, and its predicted time."""

    capture: Capture
    findings: tuple[Finding, ...]
    shares: dict[tuple[str, int], tuple[float, float]]
    """(file, line) → the part of the predicted time, and seconds."""
    is_tried: bool = False
    """Whether its suggestions were compiled, as far as they are."""

    @cached_property
    def map(self) -> SourceMap:
        return source_map(self.capture)

    @cached_property
    def locations(self) -> TextLocations:
        return read_locations(self.capture.text("ttgir"), "mlir")

    def operations_of(self, file: str, line: int) -> list[int]:
        """The lines of the TTGIR whose operations are of a line of Python."""
        stage = self.map.stage("ttgir")
        places = self.map.places_of_line.get((file, line), ())
        return sorted({stage.operations.lines[index] for place in places for index in stage.at_place.get(place, ())})

    @property
    def title(self) -> str:
        return f"{self.capture.name} ({self.capture.target})"

    @property
    def has_untried(self) -> bool:
        """Whether a suggestion may be compiled, and was not."""
        suggestions = (one for finding in self.findings for one in finding.suggestions)
        return not self.is_tried and any(one.changes and one.proof is None for one in suggestions)


@dataclass(frozen=True)
class _Options:
    """The settings of an editor, as initialization options."""

    target: str | tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    """Of the script."""
    timeout_s: float = 300.0


class _IrscopeServer(LanguageServer):
    """Records the files that are saved, one after another, and remembers what it found in each."""

    def __init__(self) -> None:
        super().__init__("irscope", version("irscope"))  # pyright: ignore[reportUnknownMemberType]
        self.options = _Options()
        self.launches: dict[str, tuple[_Explained, ...]] = {}
        """URI → the launches of the file, as it was last recorded."""
        self._recorded: dict[str, str] = {}
        self._explained: dict[str, _Explained] = {}
        """Id of a capture → what is known of it: a kernel that a save did not change is not analysed again."""
        self._known: dict[str, KnownCompile] = {}
        """By the id of a capture, how its compile is left out where a save did not change it."""
        self._waiting: queue.Queue[str | None] = queue.Queue()
        self._folder = tempfile.TemporaryDirectory(prefix="irscope-lsp-")
        self._thread = threading.Thread(target=self._record_all, daemon=True)

    def begin(self, options: object) -> None:
        """Record what is saved from now on; raises UsageError for options that there are not."""
        try:
            self.options = msgspec.convert(options or {}, _Options)
        except msgspec.ValidationError as error:
            raise UsageError(f"initialization options {options!r}: {error}") from error
        self._thread.start()

    def end(self) -> None:
        """Wait for what is being recorded, and remove the texts that were written for the editor."""
        self._waiting.put(None)
        self._folder.cleanup()

    def saved(self, uri: str) -> None:
        """Record a file that launches kernels, unless that was done of the same text."""
        self._waiting.put(uri)

    def _record_all(self) -> None:
        from irscope.api import recording_session

        with recording_session():
            while (uri := self._waiting.get()) is not None:
                try:
                    text = path_of(uri).read_text("utf-8", "replace")
                    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
                    if "triton" not in text or self._recorded.get(uri) == digest:
                        continue
                    self.launches[uri] = tuple(self._recordings(path_of(uri)))
                except (IrscopeError, OSError, *DAMAGE) as error:
                    # The thread goes on with the next file.
                    self.launches[uri] = ()
                    said = str(error) or type(error).__name__
                    self._publish(uri, [_diagnostic(1, said, lsp.DiagnosticSeverity.Information, "recording")])
                    continue
                self._recorded[uri] = digest
                self._tell(uri)
                # Fixes are compiled until the next save, and told of when they are.
                if self._waiting.empty() and any(one.has_untried for one in self.launches[uri]):
                    self.launches[uri] = tuple(map(self._tried, self.launches[uri]))
                    self._tell(uri)

    def _tell(self, uri: str) -> None:
        self._publish(uri, list(_diagnostics_of(path_of(uri), self.launches[uri])))
        if self._takes_hints:
            self.workspace_inlay_hint_refresh(None)

    def _tried(self, launch: _Explained) -> _Explained:
        """A launch with its suggestions compiled, as `irscope why` compiles them, but for the search."""
        from irscope.api.explain import Explainer
        from irscope.record.variants.compiles import Compiles

        if not launch.has_untried or not self._waiting.empty():
            return launch
        try:
            with Compiles() as compiles:
                found = Explainer(compiles, _TRIED).explain(launch.capture)
        except (IrscopeError, OSError, *DAMAGE):
            return launch
        known = replace(launch, findings=found.findings, is_tried=True)
        self._explained[launch.capture.id] = known
        return known

    @property
    def _takes_hints(self) -> bool:
        workspace = self.client_capabilities.workspace
        return bool(workspace and workspace.inlay_hint and workspace.inlay_hint.refresh_support)

    def _recordings(self, path: Path) -> Iterator[_Explained]:
        from irscope.record.process.requests import request_for
        from irscope.record.process.session import record_request

        options = self.options
        given = {"targets": options.target, "arguments": options.arguments, "timeout_s": options.timeout_s}
        request = request_for(str(path), RecordingOptions.of(given | {"config": "first"}))
        # What a save did not change is not compiled again.
        known = {id_: launch.capture for id_, launch in self._explained.items() if launch.capture.status == "ok"}
        compiles = tuple(self._known[id_].of(capture) for id_, capture in known.items() if id_ in self._known)
        recording = record_request(replace(request, stored=tuple(known), known=compiles))
        self._known = {id_: one for id_, one in self._known.items() if id_ in known} | dict(recording.known)
        for id_, launch in recording.stored.items():
            before = known[id_]
            again = replace(before.launch, grid=launch.grid, record=launch.record, others=launch.others)
            yield self._explain(before.with_(launch=again))
        yield from map(self._explain, recording.captures)
        if not recording.captures and not recording.stored:
            why = f": it stopped: {recording.stopped[0].message}" if recording.stopped else " compiled no kernel"
            raise RecordingError(f"{path}{why}.")

    def _explain(self, capture: Capture) -> _Explained:
        """What is known of a capture, made anew where its launch is of other sizes."""
        from irscope.api.explain import Explainer

        known = self._explained.pop(capture.id, None)
        if known is None or _sizes(known.capture.launch) != _sizes(capture.launch):
            explained = Explainer().explain(capture)
            prediction = explained.time.prediction
            shares = {(one.file, one.line): (one.share, one.seconds) for one in prediction.lines} if prediction else {}
            known = _Explained(capture, explained.findings, shares)
        if len(self._explained) >= _MOST_EXPLAINED:
            del self._explained[next(iter(self._explained))]
        self._explained[capture.id] = known
        return known

    def _publish(self, uri: str, diagnostics: list[lsp.Diagnostic]) -> None:
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, diagnostics))

    # ── texts ──

    def text(self, uri: str) -> str:
        return self.workspace.get_text_document(uri).source

    def lines(self, uri: str) -> list[str]:
        return self.text(uri).split("\n")

    def line(self, uri: str, number: int) -> str:
        lines = self.lines(uri)
        return lines[number] if number < len(lines) else ""

    def named(self, given: lsp.HoverParams | lsp.DefinitionParams | lsp.ReferenceParams) -> _Named | None:
        uri, at = given.text_document.uri, given.position
        if not uri.endswith(_MLIR):
            return None
        word = _word_at(self.line(uri, at.line), at.character, "_%$.-")
        return _named_at(self.text(uri), at.line + 1, word) if word.startswith("%") else None

    def operations_of(self, uri: str, line: int) -> Iterator[lsp.Location]:
        """Where the operations of a line of Python stand in the TTGIR of each launch, in a file for the editor."""
        for launch in self.launches.get(uri, ()):
            if "ttgir" not in launch.capture.stages:
                continue
            if found := launch.operations_of(str(path_of(uri)), line):
                path = Path(self._folder.name, f"{launch.capture.name}-{launch.capture.id[:8]}.ttgir")
                path.write_text(launch.capture.text("ttgir"), "utf-8")
                yield from (_location(path.as_uri(), number) for number in found)


def _sizes(launch: Launch) -> object:
    """The grid, and what the arguments are: captures of one id may differ in them."""
    record = launch.record or LaunchRecord()
    return launch.grid, tuple((one.path, one.value, one.shape, one.strides) for one in record.arguments)


def path_of(uri: str) -> Path:
    """The path of a `file:` URI."""
    return Path(unquote(urlparse(uri).path))


# ── Python files ────────────────────────────────────────────────────────────────────────────────────────────────────


def _diagnostics_of(path: Path, launches: Sequence[_Explained]) -> Iterator[lsp.Diagnostic]:
    """The findings of a file's launches at its lines: equal ones of several launches once, failures first."""
    seen: set[tuple[str, int, str]] = set()
    for launch in launches:
        if (failure := launch.capture.failure) is not None:
            line = launch.capture.launch.kernel.line
            text = f"{launch.title} {failure.verdict} ({failure.where}): {failure.message}"
            yield _diagnostic(line, text, lsp.DiagnosticSeverity.Error, failure.kind)
        for finding in launch.findings:
            line = _line_in(finding, path) or launch.capture.launch.kernel.line
            if finding.share < LEAST_SHARE and finding.seconds is not None and finding.kind.rank:
                continue
            if (key := (finding.code, line, finding.text)) not in seen:
                seen.add(key)
                severity = lsp.DiagnosticSeverity.Warning if finding.kind.rank else lsp.DiagnosticSeverity.Error
                yield _diagnostic(line, _told(finding, launch), severity, finding.code)


def _line_in(finding: Finding, path: Path) -> int:
    return next((line for file, line in finding.place if file and Path(file) == path), 0)


def _told(finding: Finding, launch: _Explained) -> str:
    cost = ""
    if finding.seconds is not None:
        cost = f" Costs {duration_text(finding.seconds)}, {finding.share:.0%} of the predicted time."
    fixes = [f"Fix: {one.text}{_effect(one)}" for one in finding.suggestions[:2]]
    causes = [f"Cause: {one.text}" for one in finding.causes]
    return "\n".join([f"{launch.title}: {finding.text}.{cost}", *causes, *fixes])


def _effect(one: Suggestion) -> str:
    """What compiling a suggestion gave: ` (compiled: 16 → 128 bits)`."""
    if one.proof is None:
        return ""
    if not one.proof.is_better:
        return f" (compiled: {one.proof.failure or 'not better'})"
    return f" (compiled: {', '.join(one.proof.effects)})"


def _diagnostic(line: int, text: str, severity: lsp.DiagnosticSeverity, code: str) -> lsp.Diagnostic:
    return lsp.Diagnostic(_line_range(line), text, severity=severity, code=code, source="irscope")


def _line_range(line: int, end: int = 10_000) -> lsp.Range:
    """A line, 1-based, as a range; editors cut the end to the text."""
    return lsp.Range(lsp.Position(line - 1, 0), lsp.Position(line - 1, end))


def _hints_of(path: Path, launches: Sequence[_Explained], lines: Sequence[str]) -> Iterator[lsp.InlayHint]:
    """The part of the predicted time behind each line: of the launch in which it takes longest."""
    most: dict[int, tuple[float, float]] = {}
    for launch in launches:
        for (file, line), (share, seconds) in launch.shares.items():
            if Path(file) == path and share >= 0.01 and seconds > most.get(line, (0.0, 0.0))[1]:
                most[line] = share, seconds
    for line, (share, seconds) in sorted(most.items()):
        if line <= len(lines):
            end = lsp.Position(line - 1, len(lines[line - 1].rstrip("\r\n")))
            yield lsp.InlayHint(end, f"{share:.0%} {duration_text(seconds)}", padding_left=True)


@dataclass(frozen=True)
class _Part:
    """What of a line the cursor is on: an expression, and its columns from 1 where it stands on this line alone."""

    text: str = ""
    columns: range = range(0)


def _expression_at(text: str, line: int, column: int) -> _Part:
    """The smallest call, operation or name at a position: line from 1, column from 0; empty where there is none."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        word = _word_at((text.split("\n")[line - 1 : line] or [""])[0], column)
        return _Part(word)
    kinds = (ast.Call, ast.BinOp, ast.Compare, ast.UnaryOp, ast.Name, ast.Subscript)
    found = [
        one
        for one in ast.walk(tree)
        if isinstance(one, kinds) and one.lineno == one.end_lineno == line
        if one.col_offset <= column <= (one.end_col_offset or 0)
    ]
    if not found:
        return _Part()
    least = min(found, key=lambda one: (one.end_col_offset or 0) - one.col_offset)
    if isinstance(least, ast.Name):
        # Of `tl.load`, what is called.
        callers = [one for one in found if isinstance(one, ast.Call) and least in ast.walk(one.func)]
        least = callers[-1] if callers else least
    return _Part(ast.unparse(least), range(least.col_offset + 1, (least.end_col_offset or 0) + 1))


def _python_hover(path: Path, launches: Sequence[_Explained], line: int, part: _Part) -> str:
    """What a line of Python became: its operations in the TTGIR with types and layouts, and its instructions."""
    parts: list[str] = []
    for launch in launches:
        counts = {one.stage: one for one in launch.map.counts(str(path), line) if one.total}
        if not counts:
            continue
        parts.append(f"**{launch.title}**")
        if "ttgir" in counts:
            rows = _operations_at(launch, str(path), line, part)
            more = f"\n… {len(rows) - _MOST_OPERATIONS} more" if len(rows) > _MOST_OPERATIONS else ""
            parts.append("```mlir\n" + "\n".join(rows[:_MOST_OPERATIONS]) + more + "\n```")
        for stage, count in counts.items():
            if stage in ("ptx", "sass", "amdgcn"):
                kinds = ", ".join(f"{number} × `{kind}`" for kind, number in count.kinds[:6])
                live = f"; {count.live_registers} live registers" if count.live_registers is not None else ""
                parts.append(f"{stage}: {count.total} instructions: {kinds}{live}")
    return "\n\n".join(parts)


def _operations_at(launch: _Explained, file: str, line: int, part: _Part) -> list[str]:
    """Those of a line in the TTGIR: first what defines the variable under the cursor, then its expression's."""
    text = launch.map.stage("ttgir").operations.text
    found = launch.operations_of(file, line)
    rows = {number: " ".join(without_location(text[number - 1]).split()) for number in found}

    def far(number: int) -> int:
        if part.text and python_name(rows[number].partition(" =")[0]) == part.text:
            return 0
        frames = [one for one in launch.locations.chain_at(number) if (one.file, one.line) == (file, line)]
        if any(one.column == part.columns.start for one in frames):
            # The operation itself stands where it begins, its operands further on.
            return 1
        return 2 if any(one.column in part.columns for one in frames) else 3

    return [rows[number] for number in sorted(rows, key=far)]


# ── MLIR files ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Named:
    """A value that the cursor is on, in the text of a module."""

    module: MlirModule
    value: Value

    @property
    def line(self) -> int:
        if (maker := self.module.definition(self.value)) is not None:
            return maker.first_line
        for operation in self.module.walk():
            for region in operation.regions:
                for block in region.blocks:
                    if self.value in block.arguments:
                        return block.line or operation.first_line
        return 1

    @property
    def uses(self) -> list[int]:
        return sorted({one.first_line for one in self.module.walk() if self.value in one.operands})

    @property
    def hover(self) -> str:
        kind = self.module.type_of(self.value)
        layout = f"\n\nlayout `{encoding}`" if (encoding := self.module.encoding_of(kind)) is not None else ""
        return f"```mlir\n{self.value.name} : {kind}\n```{layout}\n\n{len(self.uses)} uses"


def _named_at(text: str, number: int, name: str) -> _Named | None:
    """The value that a name means on a line, 1-based: sibling regions use one name for different values."""
    module = parse_mlir(text)
    for operation in module.walk():
        if number not in operation.lines:
            continue
        blocks = [block for region in operation.regions for block in region.blocks]
        values = [*operation.results, *operation.operands, *(one for block in blocks for one in block.arguments)]
        for value in values:
            # %0#1 is a result of %0:2
            if value.name == name or value.name.partition("#")[0] == name:
                return _Named(module, value)
    return None


def _word_at(line: str, column: int, letters: str = "_") -> str:
    """The word of letters, digits and some more signs that a column is in, or right behind."""
    first = last = min(column, len(line))
    while first and (line[first - 1].isalnum() or line[first - 1] in letters):
        first -= 1
    while last < len(line) and (line[last].isalnum() or line[last] in letters):
        last += 1
    return line[first:last]


# ── The protocol ────────────────────────────────────────────────────────────────────────────────────────────────────


def lsp_server() -> _IrscopeServer:
    """The server, with all that it answers."""
    server = _IrscopeServer()

    @server.feature(lsp.INITIALIZE)
    def _(given: lsp.InitializeParams) -> None:
        server.begin(given.initialization_options)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE, lsp.SaveOptions(include_text=False))
    def _(given: lsp.DidSaveTextDocumentParams) -> None:
        if given.text_document.uri.endswith(".py"):
            server.saved(given.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    def _(given: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        uri = given.text_document.uri
        first, last = given.range.start.line, given.range.end.line
        hints = _hints_of(path_of(uri), server.launches.get(uri, ()), server.lines(uri))
        return [one for one in hints if first <= one.position.line <= last]

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def _(given: lsp.HoverParams) -> lsp.Hover | None:
        if (named := server.named(given)) is not None:
            text = named.hover
        else:
            uri, at = given.text_document.uri, given.position
            part = _expression_at(server.text(uri), at.line + 1, at.character)
            text = _python_hover(path_of(uri), server.launches.get(uri, ()), at.line + 1, part)
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text)) if text else None

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def _(given: lsp.DefinitionParams) -> list[lsp.Location]:
        uri, line = given.text_document.uri, given.position.line + 1
        if (named := server.named(given)) is not None:
            return [_location(uri, named.line)]
        if uri.endswith(_MLIR):
            chain = read_locations(server.text(uri), "mlir").chain_at(line)
            return [
                _location(Path(frame.file).as_uri(), frame.line) for frame in chain if Path(frame.file).is_absolute()
            ]
        return list(server.operations_of(uri, line))

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def _(given: lsp.ReferenceParams) -> list[lsp.Location]:
        named = server.named(given)
        return [_location(given.text_document.uri, line) for line in named.uses] if named is not None else []

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION)
    def _(given: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri = given.text_document.uri
        ours = [one for one in given.context.diagnostics if one.source == "irscope"]
        silencing = [_silencing(uri, one, server.line(uri, one.range.start.line)) for one in ours if _is_finding(one)]
        fixing = [
            action for one in ours for action in _fixing(uri, one, server.launches.get(uri, ()), server.text(uri))
        ]
        return [*fixing, *silencing]

    @server.feature(lsp.SHUTDOWN)
    def _(*_given: object) -> None:
        server.end()

    return server


def _location(uri: str, line: int) -> lsp.Location:
    return lsp.Location(uri, _line_range(line))


def _is_finding(diagnostic: lsp.Diagnostic) -> bool:
    return str(diagnostic.code) in KINDS


def _fixing(
    uri: str, diagnostic: lsp.Diagnostic, launches: Sequence[_Explained], text: str
) -> Iterator[lsp.CodeAction]:
    """The suggestions of a diagnostic's finding that were compiled, are better, and are edits of this file."""
    lines = text.split("\n")
    for launch in launches:
        path, own = path_of(uri), launch.capture.launch
        for finding in launch.findings:
            line = _line_in(finding, path) or own.kernel.line
            if (finding.code, line - 1) != (diagnostic.code, diagnostic.range.start.line):
                continue
            for one in finding.suggestions:
                if one.proof is None or not one.proof.is_better:
                    continue
                changes = one.changes
                if edits := source_edits(text, own.kernel.name, changes, own):
                    made = [
                        lsp.TextEdit(
                            lsp.Range(
                                lsp.Position(edit.line - 1, _units(lines[edit.line - 1], edit.column)),
                                lsp.Position(edit.end_line - 1, _units(lines[edit.end_line - 1], edit.end_column)),
                            ),
                            edit.text,
                        )
                        for edit in edits
                    ]
                    yield lsp.CodeAction(
                        f"{', '.join(map(str, changes))}{_effect(one)}",
                        kind=lsp.CodeActionKind.QuickFix,
                        diagnostics=[diagnostic],
                        edit=lsp.WorkspaceEdit(changes={uri: made}),
                        is_preferred=True,
                    )


def _units(line: str, column: int) -> int:
    """The 0-based position, in units of UTF-16 as the protocol counts, of a column in characters from 1."""
    return len(line[: column - 1].encode("utf-16-le", "surrogatepass")) // 2


def _silencing(uri: str, diagnostic: lsp.Diagnostic, line: str) -> lsp.CodeAction:
    end = lsp.Position(diagnostic.range.start.line, len(line.rstrip()))
    edit = lsp.TextEdit(lsp.Range(end, end), f"  # irscope: ignore[{diagnostic.code}]")
    return lsp.CodeAction(
        f"Silence {diagnostic.code} on this line",
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=[diagnostic],
        edit=lsp.WorkspaceEdit(changes={uri: [edit]}),
    )
