"""Tries suggestions: compiles each from the capture's own source, and says what it changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from irscope.analysis.findings.changed import with_changes
from irscope.analysis.findings.measures import compare, without_refuted
from irscope.analysis.findings.model import Change, Finding, Suggestion
from irscope.cli.output.talk import say
from irscope.cli.subject.captures import tell_origin
from irscope.errors import IrscopeError
from irscope.ir.mlir.reader import parse_mlir
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions

__all__ = ["proven"]

_Changes = tuple[Change, ...]


def proven(capture: Capture, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings with what became of each suggestion that can be tried; each change is compiled once."""
    wanted = list(dict.fromkeys(one.changes for finding in findings for one in finding.suggestions if one.changes))
    if not wanted:
        return tuple(findings)
    from irscope.record.triton.versions import triton_version

    if capture.environment.triton_version != triton_version():
        say(
            f"{capture.name} was compiled by Triton {capture.environment.triton_version}: "
            "nothing was tried with another."
        )
        return tuple(findings)
    tell_origin(capture)
    try:
        tried = dict(_compiled(capture, wanted))
    except IrscopeError as error:
        say(f"Nothing could be tried: {error}")
        return tuple(findings)

    def with_proof(finding: Finding, one: Suggestion) -> Suggestion:
        after = tried.get(one.changes)
        return one if after is None else replace(one, proof=compare(finding, capture, after))

    return tuple(
        without_refuted(replace(finding, suggestions=tuple(with_proof(finding, one) for one in finding.suggestions)))
        for finding in findings
    )


def _compiled(capture: Capture, wanted: Sequence[_Changes]) -> Iterator[tuple[_Changes, Capture]]:
    """(changes, the capture compiled with them); those that cannot be written into the source are left out."""
    from irscope.record.process.requests import RecordRequest, request_from_capture
    from irscope.record.variants.pool import VariantPool

    kernel = parse_mlir(capture.texts.get("ttgir", "")).kernel
    names = [value.name for value, _, _ in kernel.parameters] if kernel is not None else []
    requests: list[tuple[_Changes, RecordRequest]] = []
    for changes in wanted:
        options = tuple((one.name, one.value) for one in changes if one.kind == "option")
        asked = RecordingOptions(plan=capture.plan, snapshots="none", disassemble=False, options=options)
        request = request_from_capture(capture, asked)
        if any(one.kind != "option" for one in changes):
            text = with_changes(request.text, names, changes)
            if text is None:
                continue
            request = replace(request, text=text)
        requests.append((changes, request))
    if requests:
        with VariantPool() as pool:
            for index, after in pool.compile(request for _, request in requests):
                yield requests[index][0], _of_the_launch(capture, after)


def _of_the_launch(capture: Capture, after: Capture) -> Capture:
    """A variant with what the launch was given, from which its addresses are evaluated."""
    return replace(after, launch=replace(after.launch, grid=capture.launch.grid, record=capture.launch.record))
