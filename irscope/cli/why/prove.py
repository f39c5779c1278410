"""Tries suggestions: compiles each from the capture's own source, and says what it changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from irscope.analysis.findings.changed import with_changes
from irscope.analysis.findings.measures import compare, without_refuted
from irscope.analysis.findings.model import Change, Finding, Suggestion
from irscope.analysis.findings.studied import Studied
from irscope.cli.output.talk import say
from irscope.cli.subject.captures import tell_origin
from irscope.cli.why.compiles import Compiles
from irscope.errors import IrscopeError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions

__all__ = ["proven", "shared_compiles"]

_Changes = tuple[Change, ...]
Timed = Callable[[Sequence[Finding], Mapping[_Changes, Capture]], tuple[Finding, ...]]


def proven(
    studied: Studied, findings: Sequence[Finding], compiles: Compiles, most: int, timed: Timed | None = None
) -> tuple[Finding, ...]:
    """The findings with what became of each suggestion that can be tried.

    Each change is compiled once. Of a finding that one suggestion mends, no other is tried, and other options are left
    out.

    Args:
        studied: the capture.
        findings: what was found in it, the worst first.
        compiles: does them.
        most: how many compiles there are; changes of arguments share one where there would be more.
        timed: adds the times of what helped, from the findings and the captures of all changes that were compiled.
    """
    if not any(one.changes for finding in findings for one in finding.suggestions):
        return tuple(findings)
    from irscope.record.triton.versions import triton_version

    capture = studied.capture
    if capture.environment.triton_version != triton_version():
        say(
            f"{capture.name} was compiled by Triton {capture.environment.triton_version}: "
            "nothing was tried with another."
        )
        return tuple(findings)
    tell_origin(capture)
    tries, found = _Tries(studied, compiles), tuple(findings)
    try:
        while wanted := list(dict.fromkeys(next_one for one in found if (next_one := tries.next_of(one)))):
            if tries.count >= most:
                say(f"{capture.name}: {tries.count} compiles for what mends it; --tries N does more.")
                break
            tries.compile(shared_compiles(wanted, most - tries.count))
            found = tuple(tries.told(one) for one in found)
    except IrscopeError as error:
        say(f"Nothing could be tried: {error}")
    if timed is not None:
        found = timed(found, tries.captures)
    return tuple(without_refuted(_without_alternatives(one)) for one in found)


class _Tries:
    """The changes of one capture that were compiled."""

    def __init__(self, studied: Studied, compiles: Compiles) -> None:
        self._studied = studied
        self._compiles = compiles
        self.count = 0
        """How many compiles there were."""
        self._known: dict[_Changes, tuple[_Changes, Studied | None]] = {}
        """Changes -> all of the compile that they were tried in, and its capture, None if there is none."""

    @property
    def captures(self) -> dict[_Changes, Capture]:
        """All changes of each compile -> its capture."""
        return {changes: after.capture for changes, after in self._known.values() if after is not None}

    def next_of(self, finding: Finding) -> _Changes:
        """The changes to try next for a finding; empty if there are none, or one helped."""
        if _is_mended(finding):
            return ()
        return next((one.changes for one in finding.suggestions if one.changes and one.changes not in self._known), ())

    def told(self, finding: Finding) -> Finding:
        """A finding with what is known of its suggestions."""

        def with_proof(one: Suggestion) -> Suggestion:
            together, after = self._known.get(one.changes, ((), None))
            if after is None or one.proof is not None:
                return one
            proof = compare(finding, self._studied, after)
            return replace(one, proof=replace(proof, together=together if together != one.changes else ()))

        return replace(finding, suggestions=tuple(map(with_proof, finding.suggestions)))

    def compile(self, wanted: Mapping[_Changes, Sequence[_Changes]]) -> None:
        """Compile changes, each of which tries those of several suggestions."""
        made = dict(_compiled(self._studied.capture, [*wanted], self._compiles))
        self.count += len(made)
        for changes, tried in wanted.items():
            after = Studied(made[changes]) if changes in made else None
            self._known |= dict.fromkeys(tried, (changes, after))


def shared_compiles(wanted: Sequence[_Changes], most: int) -> dict[_Changes, list[_Changes]]:
    """At most so many compiles -> the changes that each tries; where there are more, arguments change together."""
    if len(wanted) <= most:
        return {one: [one] for one in wanted}
    options = [one for one in wanted if any(part.kind == "option" for part in one)]
    alone = options[: most - 1] if len(options) < len(wanted) else options[:most]
    together: dict[str, Change] = {}
    tried: list[_Changes] = []
    for one in wanted:
        if one not in options and all(together.get(part.name, part) == part for part in one):
            together |= {part.name: part for part in one}
            tried.append(one)
    return {one: [one] for one in alone} | ({tuple(together.values()): tried} if tried else {})


def _is_mended(finding: Finding) -> bool:
    return any(one.proof is not None and one.proof.helps for one in finding.suggestions)


def _without_alternatives(finding: Finding) -> Finding:
    """A finding that was mended, without the options that were not tried for that."""
    if not _is_mended(finding):
        return finding
    kept = [
        one for one in finding.suggestions if one.proof is not None or {part.kind for part in one.changes} != {"option"}
    ]
    return replace(finding, suggestions=tuple(kept))


def _compiled(capture: Capture, wanted: Sequence[_Changes], compiles: Compiles) -> Iterator[tuple[_Changes, Capture]]:
    """(changes, the capture compiled with them); those that cannot be written into the source are left out."""
    from irscope.ir.mlir.reader import parse_mlir
    from irscope.record.process.requests import RecordRequest, request_from_capture

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
        for index, after in compiles.all([request for _, request in requests]):
            yield requests[index][0], _of_the_launch(capture, after)


def _of_the_launch(capture: Capture, after: Capture) -> Capture:
    """A variant with what the launch was given, from which its addresses are evaluated."""
    return replace(after, launch=replace(after.launch, grid=capture.launch.grid, record=capture.launch.record))
