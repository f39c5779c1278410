"""Holds what a suggestion is said to have changed against the artifacts of its compile, read by other means."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from irscope.analysis.findings.model import Finding, FixChange
from irscope.model.capture import Capture

__all__ = ["contradictions"]

_PTXAS_LIMITS = {"80": 166912, "90": 232448, "100": 232448}
"""Bytes of shared memory for one block, of the CUDA programming guide."""
# @%p1 ld.global.v4.b32 { %r1, …      cp.async.cg.shared.global [ %r1 + 0 ], [ %rd2 + 0 ], 0x10, 0x10;
_PTX_ACCESS = re.compile(r"\b(ld|st)\.global(?:\.[a-z]\w*(?:::\w+)?)*?(?:\.v(\d))?\.[bfsu](\d+)\b")
_PTX_COPY = re.compile(r"\bcp\.async\.c[ag]\.shared\.global\s[^;]*?\],\s*\[[^\]]*\],\s*(0x[0-9a-f]+|\d+)")
# global_load_dwordx4 v[0:3], …      buffer_store_short v1, …
_AMD_ACCESS = re.compile(r"\b(?:global|buffer|flat)_(load|store)_([a-z]+)(?:_d16(?:_hi)?)?(?:x(\d))?\b")
_AMD_BITS = {"dword": 32, "short": 16, "ushort": 16, "sshort": 16, "ubyte": 8, "sbyte": 8, "byte": 8}
# REG:32 STACK:0 SHARED:0 LOCAL:0
_USAGE = re.compile(r"\bREG:(\d+) STACK:(\d+)")
# st.shared.v4.b32 [ %r1 + 0 ], …    stmatrix.sync.aligned.m8n8.x4.shared.b16 [ … ], …    ds_write_b128 v1, v[2:5]
_SHARED_STORE = re.compile(r"^\s+(?:@!?%p\d+ )?(?:st\.shared|stmatrix|ds_(?:write|store)_)", re.M)
_LABEL = re.compile(r"^(\$L\w+):")
_BRANCH = re.compile(r"\bbra(?:\.uni)?\s+(\$L\w+);")
# wgmma.wait_group.sync.aligned 	0;
_WAIT = re.compile(r"\bwgmma\.wait_group\.sync\.aligned\s+0;")
# !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>
_BUFFERS = re.compile(r"ttg\.local_alloc.*!ttg\.memdesc<(\d+)x\d+x\d+x")


def contradictions(
    before: Capture, findings: Sequence[Finding], tried: Mapping[tuple[FixChange, ...], Capture]
) -> tuple[int, list[str]]:
    """(figures that were held against an artifact, those that are not there).

    Args:
        before: the capture that the findings are of.
        findings: they, with what became of their suggestions.
        tried: all changes of each compile -> its capture.
    """
    count, wrong = 0, list[str]()
    for finding in findings:
        for one in finding.suggestions:
            if (proof := one.proof) is None:
                continue
            after = tried.get(one.changes)
            if after is None:
                wrong.append(f"{one.tried} was not compiled")
                continue
            if proof.is_better and not after.has_compiled:
                wrong.append(f"{one.tried} is said to help, and does not compile")
            for effect in proof.effects:
                sides = effect.split(" → ")
                for said, capture in zip(sides, (before, after), strict=True) if len(sides) == 2 else ():
                    for is_so in _checks(finding, effect, said, capture):
                        count += 1
                        if not is_so:
                            wrong.append(f"{one.tried}: {effect}: {said} is not what the artifact has")
    return count, wrong


def _checks(finding: Finding, effect: str, said: str, capture: Capture) -> Iterator[bool]:
    """Whether one side of an effect is so; nothing where no artifact tells."""
    number = re.match(r"\d+", said)
    figure = int(number[0]) if number is not None else 0
    for words, check in _CHECKS.items():
        if effect.endswith(words):
            found = check(capture, finding)
            if found is not None:
                yield found(figure, said) if callable(found) else found == figure


def _widths(capture: Capture, finding: Finding) -> Callable[[int, str], bool]:
    """There are accesses of that width: the lines of PTX do not tell for certain which is whose."""
    widths = set(_accesses(capture, "st" if finding.code == "IRS102" else "ld"))
    return lambda figure, _: figure in widths


def _accesses(capture: Capture, verb: str) -> Iterator[int]:
    """The bits a lane of each load or store of global memory."""
    is_amd = capture.target.backend == "hip"
    for text in capture.texts["amdgcn" if is_amd else "ptx"].split("\n"):
        if is_amd and (match := _AMD_ACCESS.search(text)) and match[1][0] == {"ld": "l", "st": "s"}[verb]:
            yield _AMD_BITS.get(match[2], 0) * int(match[3] or 1)
        elif not is_amd and (match := _PTX_ACCESS.search(text)) and match[1] == verb:
            yield int(match[3]) * int(match[2] or 1)
        elif not is_amd and verb == "ld" and (match := _PTX_COPY.search(text)):
            yield int(match[1], 0) * 8


def _registers(capture: Capture, _: Finding) -> int | Callable[[int, str], bool] | None:
    if capture.target.backend == "cuda":
        return _usage(capture)[0] if capture.has_compiled else None
    text = capture.texts["amdgcn"]
    whole, others = (re.search(rf"\.{name}_count:\s+(\d+)", text) for name in ("vgpr", "agpr"))
    count = int(whole[1]) if whole is not None else 0
    # Accumulators begin at a multiple of four.
    behind = int(others[1]) if others is not None else 0
    return lambda figure, _: count == (-(-figure // 4) * 4 + behind if behind else figure)


def _spilled(capture: Capture, _: Finding) -> Callable[[int, str], bool] | None:
    """Spilled bytes have a place on the stack."""
    if capture.target.backend == "hip":
        match = re.search(r"\.vgpr_spill_count:\s+(\d+)", capture.texts["amdgcn"])
        return lambda figure, _: match is not None and (int(match[1]) > 0) == (figure > 0)
    return (lambda figure, _: (_usage(capture)[1] > 0) >= (figure > 0)) if capture.has_compiled else None


def _pipelined(capture: Capture, _: Finding) -> Callable[[int, str], bool] | None:
    """A pipelined load is an asynchronous copy on NVIDIA's GPUs, and any other a load inside the loop."""
    if capture.target.backend == "hip":
        return None
    lines = capture.texts["ptx"].split("\n")
    inside = {number for first, last in _loops(lines) for number in range(first, last)}
    copies = sum("cp.async.c" in text or "cp.async.bulk" in text for text in lines)
    loads = sum("ld.global" in lines[number] for number in inside)
    return lambda _, said: copies > 0 if said == "pipelined" else loads > 0


def _buffers(capture: Capture, _: Finding) -> Callable[[int, str], bool]:
    counts = {1, *(int(match[1]) for match in _BUFFERS.finditer(capture.texts["ttgir"]))}
    return lambda figure, _: figure in counts


def _waits(capture: Capture, _: Finding) -> Callable[[int, str], bool]:
    """How many waits for all products are in loops."""
    lines = capture.texts["ptx"].split("\n")
    loops = _loops(lines)
    waits = sum(
        _WAIT.search(text) is not None and any(first < number < last for first, last in loops)
        for number, text in enumerate(lines)
    )
    return lambda figure, _: waits == figure


def _loops(lines: Sequence[str]) -> list[tuple[int, int]]:
    """The lines of each loop of PTX, 0-based."""
    labels = {match[1]: number for number, text in enumerate(lines) if (match := _LABEL.match(text))}
    ends = ((match[1], number) for number, text in enumerate(lines) if (match := _BRANCH.search(text)))
    return [(labels[label], number) for label, number in ends if labels.get(label, number) < number]


def _fits(capture: Capture, _: Finding) -> Callable[[int, str], bool] | None:
    limit = _PTXAS_LIMITS.get(capture.target.arch)
    return (lambda figure, said: (figure <= limit) == said.endswith(" fits")) if limit else None


def _stores_to_shared(capture: Capture, _: Finding) -> int:
    """The instructions of the assembly, whatever they are from."""
    text = capture.texts["amdgcn" if capture.target.backend == "hip" else "ptx"]
    return len(_SHARED_STORE.findall(text))


def _conversions(capture: Capture, _: Finding) -> int:
    return len(re.findall(r"= ttg\.convert_layout ", capture.texts["ttgir"]))


_CHECKS: dict[str, Callable[[Capture, Finding], int | Callable[[int, str], bool] | None]] = {
    " bits per thread": _widths,
    " registers": _registers,
    " bytes spilled": _spilled,
    "→ pipelined": _pipelined,
    " buffers": _buffers,
    " dots that block immediately": _waits,
    " bytes of shared memory, fits": _fits,
    " conversions": _conversions,
    " to shared memory": _stores_to_shared,
}


@cache
def _cuobjdump() -> str:
    import triton

    return str(Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump")


def _usage(capture: Capture) -> tuple[int, int]:
    """(registers, bytes of the stack) of a cubin."""
    data = capture.artifact("cubin").data
    assert isinstance(data, bytes)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(data)
        file.flush()
        printed = subprocess.run([_cuobjdump(), "-res-usage", file.name], capture_output=True, text=True, check=True)
    match = _USAGE.search(printed.stdout)
    assert match is not None, printed.stdout
    return int(match[1]), int(match[2])
