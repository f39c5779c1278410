"""`irscope why`: the findings of a kernel, the worst first, each with its reasons and a remedy that was tried."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from irscope.cli import app, options
from irscope.cli.output.destination import Destination, under_titles, with_destination
from irscope.cli.output.talk import say
from irscope.cli.subject.captures import captures_of, tell_incomplete
from irscope.cli.subject.recording import recorded
from irscope.errors import UsageError, did_you_mean
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.store.shelf import StoredCaptures

if TYPE_CHECKING:
    from irscope.analysis.findings.model import Finding

_which = options.in_panel("Which findings")


@app.command(rich_help_panel="Inspect")
@recorded()
@with_destination
def why(
    subject: options.Subject = None,
    line: Annotated[int | None, _which("--line", metavar="N", min=1, help="Only those of this line of Python.")] = None,
    operation: Annotated[str | None, _which("--op", metavar="OP", help="Only those of these operations: load.")] = None,
    value: Annotated[str | None, _which("--value", metavar="%V", help="Only those of this value of the TTGIR.")] = None,
    ignore: Annotated[
        list[str] | None,
        _which("--ignore", metavar="CODE[,CODE]", help="Not these kinds: IRS101, or narrow-load; repeatable."),
    ] = None,
    size: Annotated[
        list[str] | None,
        _which("--size", metavar="NAME=N", help="As if launched with this integer argument; repeatable."),
    ] = None,
    grid: Annotated[
        str | None, _which("--grid", metavar="X[,Y[,Z]]", help="As if launched with so many programs.")
    ] = None,
    tries: Annotated[
        bool | None,
        typer.Option(
            "--try/--no-try",
            help="Compile again, for the compiler's log and to try what mends it. Default: what was recorded here.",
            show_default=False,
        ),
    ] = None,
    most_tries: Annotated[
        str | None,
        typer.Option(
            "--tries",
            metavar="N|all",
            help="At most N compiles try what mends a kernel. Default: of the worst three findings, one past TTGIR.",
            show_default=False,
        ),
    ] = None,
    time: Annotated[
        bool, typer.Option("--time", help="On a GPU: run each mend that helped, and say what it is worth.")
    ] = False,
    *,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """Say what is slow in a kernel, on which line, because of what, and what mends it: each remedy was compiled.

    A comment `# irscope: ignore[IRS101]` on a line of the kernel silences what is found there.
    """
    from irscope.analysis.findings.model import codes_of
    from irscope.analysis.findings.tries import Budget
    from irscope.api.explain import Explainer, Explanation, read_grid, read_sizes, with_launch
    from irscope.cli.why.timing import Timer
    from irscope.record.variants.compiles import Compiles
    from irscope.render.text.findings import findings_json, render_findings

    chosen = _Choice(line, operation, value, codes_of(options.split_words(ignore)))
    sizes, programs = read_sizes(size or ()), read_grid(grid) if grid is not None else None
    budget = Budget.parse(most_tries)
    captures = captures_of(subject, record_options)
    chosen.require_known(captures)
    is_stated = bool(sizes) or programs is not None

    def launched(capture: Capture) -> Capture:
        return with_launch(capture, sizes, programs) if is_stated else capture

    answers: dict[str, Explanation] = {}
    with Compiles() as compiles:
        timer = Timer(subject, record_options) if time else None
        explainer = Explainer(compiles, budget, launched, chosen.has, say)
        for number, one in enumerate(captures, 1):
            if timer is not None:
                timer.require_gpu(one)
            timed = None if timer is None else partial(timer.timed, one, record_options.launch or number)
            may_compile = tries if tries is not None else one.environment.is_trusted
            answers[one.id] = (explainer if may_compile else replace(explainer, compiles=None)).explain(one, timed)

    def text(capture: Capture, color: bool) -> str:
        findings, silenced = answers[capture.id].findings, answers[capture.id].silenced
        hidden = f"{silenced} silenced by comments in the kernel.\n" if silenced else ""
        lines = f"\nLines of a stage are those of: irscope show {capture.id[:8]} --stage STAGE --loc\n"
        return (render_findings(findings, color=color) + lines if findings else "Nothing was found.\n") + hidden

    def as_json(capture: Capture) -> dict[str, Any]:
        findings, silenced = answers[capture.id].findings, answers[capture.id].silenced
        head = {"id": capture.id, "kernel": capture.name, "target": str(capture.target)}
        return head | {"findings": findings_json(findings), "silenced": silenced}

    to.emit(
        lambda: [as_json(one) for one in captures],
        lambda _, color: under_titles(captures, lambda one: text(one, color)),
    )
    return tell_incomplete(captures)


@dataclass(frozen=True, slots=True)
class _Choice:
    """Which findings are asked for."""

    line: int | None
    operation: str | None
    value: str | None
    ignored: frozenset[str]

    def has(self, finding: Finding) -> bool:
        """Whether a finding is one of them."""
        from irscope.analysis.lives.operations import is_named

        if self.operation is not None and not is_named(finding.operation, self.operation):
            return False
        return (
            finding.code not in self.ignored
            and (self.line is None or any(line == self.line for _, line in finding.place))
            and (self.value is None or "%" + self.value.removeprefix("%") in finding.values)
        )

    def require_known(self, captures: StoredCaptures) -> None:
        """Raise UsageError for a line, an operation or a value that no kernel has."""
        if self.line is None and self.operation is None and self.value is None:
            return
        from irscope.analysis.lives.operations import is_named
        from irscope.ir.columns import operation_counts
        from irscope.ir.locations.stages import read_locations

        names, lines, values = set[str](), set[int](), ""
        for capture in captures:
            lines.add(capture.launch.kernel.line)
            for text in [capture.texts[stage] for stage in _STAGES if stage in capture.texts]:
                names.update(operation_counts(text, "mlir"))
                lines.update(frame.line for chain in read_locations(text, "mlir").chains for frame in chain)
            values += capture.texts.get("ttgir", "")
        first = captures.files[0].id[:8]
        if self.line is not None and self.line not in lines:
            numbers = ", ".join(map(str, sorted(lines - {0}))) or "none that is known"
            raise UsageError(f"--line {self.line}: no operation comes from it, they come from {numbers}.")
        if self.operation is not None and not any(is_named(name, self.operation) for name in names):
            known = sorted({name.rpartition(".")[2] for name in names})
            near = did_you_mean(self.operation, known)
            raise UsageError(f"--op {self.operation!r}: no stage of MLIR has such an operation.{near}")
        name = "%" + (self.value or "").removeprefix("%")
        if self.value is not None and not re.search(rf"{re.escape(name)}(?![\w.$-])", values):
            raise UsageError(f"--value {name}: no value of the TTGIR is named so: irscope show {first} --stage ttgir.")


_STAGES = "source", "ttir", "ttgir"
