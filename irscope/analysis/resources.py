"""The counts of a capture: resources, operations per stage, instructions that matter; captures as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from irscope.device.occupancy import occupancy_of
from irscope.model.capture import Artifact, Capture, stage_named
from irscope.model.plain import constant_value, picked

# The families a reader looks for first: what feeds the tensor cores, moves data, and waits.
MATRIX_FAMILIES = ("wgmma", "mma", "tcgen05", "mfma", "wmma")
KEY_FAMILIES = (
    *MATRIX_FAMILIES, "ldmatrix", "stmatrix", "tma", "cp.async", "ld.global", "st.global",
    "ld.shared", "st.shared", "ld.local", "st.local", "atomic", "shuffle", "barrier", "special",
)  # fmt: skip


def resource_rows(capture: Capture) -> dict[str, int | float]:
    """The known resources by name, `occupancy_percent` with them."""
    rows: dict[str, int | float] = {name: n for name, n in asdict(capture.resources).items() if n is not None}
    if (found := occupancy_of(capture)) is not None:
        rows["occupancy_percent"] = 100 * found.fraction
    return rows


def stage_operations(artifact: Artifact) -> Counter[str]:
    """How many operations (instructions) of each kind a stage's text holds; empty for a binary."""
    if isinstance(artifact.data, bytes):
        return Counter()
    from irscope.ir.columns import operation_counts

    return operation_counts(artifact.data, stage_named(artifact.stage).kind)


_ASSEMBLIES = ("sass", "amdgcn", "ptx")
"""The stages that hold instructions, the lowest of each target first."""
WRITTEN = _ASSEMBLIES[1:]
"""Those that the compiler writes: the SASS is not there for every capture."""


def assembly_of(capture: Capture, stages: Sequence[str] = _ASSEMBLIES) -> str:
    """The lowest stage that holds instructions as text; empty for none."""
    return next((stage for stage in stages if stage in capture.stages), "")


def instruction_families(capture: Capture, stages: Sequence[str] = _ASSEMBLIES) -> dict[str, int]:
    """The instructions that matter in the lowest assembly of a capture (SASS, AMDGCN, else PTX), by family.

    A family with a width ends in it: `ld.global.128` moves 128 bits per thread.
    """
    # Readers of IR: what asks for resources alone needs none.
    from irscope.ir.asm.control_flow import read_instructions

    stage = assembly_of(capture, stages)
    found = read_instructions(capture.text(stage), stage_named(stage).kind) if stage else ()
    families = Counter(item.family or "" for item in found)
    key = [name for name in families if name.startswith(KEY_FAMILIES)]
    return {name: families[name] for name in sorted(key, key=lambda name: (family_rank(name), name))}


def family_rank(name: str) -> int:
    """The place of a family among `KEY_FAMILIES`; all others come after them."""
    return next((rank for rank, family in enumerate(KEY_FAMILIES) if name.startswith(family)), len(KEY_FAMILIES))


def table(captures: Iterable[Capture]) -> list[dict[str, Any]]:
    """A row of plain values for each capture, all with the same keys: `pandas.DataFrame(irscope.table(captures))`.

    Args:
        captures: what to list, in the order of the rows.

    Returns for each capture its `id`, `kernel`, `file`, `line`, `target`, `plan`, `triton` (the version), `status`,
    `failure` (its kind) and `message`; `constants.NAME` and `options.NAME` for what was compiled (num_warps,
    num_stages, num_ctas, and the options in which the captures differ); its resources (`registers`, `spilled_bytes`,
    `shared_bytes`, `occupancy_percent`, `instructions`, …), `counts.NAME` for the instructions that matter, and
    `findings`, the codes of what is found without another compile. A value that is not known is None.
    """
    rows = [_row(one) for one in captures]
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if _is_telling(name, rows)]
    order = {name: place for place, name in enumerate(_GROUPS)}
    # Of one group side by side, in the order in which they first appear.
    names.sort(key=lambda name: order.get(name.partition(".")[0], len(order)))
    return [{name: row.get(name, _missing(name, row)) for name in names} for row in rows]


_MAIN_OPTIONS = ("num_warps", "num_stages", "num_ctas")
_GROUPS = (
    "id", "kernel", "file", "line", "target", "plan", "triton", "status", "failure", "message", "constants", "options",
    "registers", "spilled_bytes", "stack_bytes", "shared_bytes", "tensor_memory_columns", "occupancy_percent",
    "code_bytes", "instructions", "counts", "findings", "compile_us", "processor_us",
)  # fmt: skip


def figures_of(capture: Capture) -> dict[str, Any]:
    """The result of a compile: status, failure, resources, the instructions that matter, the codes of findings."""
    # Readers of IR: what asks for resources alone needs none.
    from irscope.analysis.findings.find import findings_of

    found, resources, failure = occupancy_of(capture), capture.resources, capture.failure
    return {
        "status": capture.status,
        "failure": failure.kind if failure else "",
        "message": failure.message if failure else "",
        **picked(resources, "registers spilled_bytes stack_bytes shared_bytes tensor_memory_columns"),
        "occupancy_percent": None if found is None else 100 * found.fraction,
        "code_bytes": resources.code_bytes,
        "instructions": resources.instruction_count,
        "counts": tuple(instruction_families(capture).items()),
        "findings": tuple(dict.fromkeys(one.code for one in findings_of(capture))) if capture.has_compiled else (),
        **picked(capture, "compile_us processor_us"),
    }


def _row(capture: Capture) -> dict[str, Any]:
    launch = capture.launch
    figures = figures_of(capture)
    counts = dict(figures.pop("counts"))
    return {
        **picked(capture, "id kernel=name file=launch.kernel.file line=launch.kernel.line target plan"),
        "triton": capture.environment.triton_version,
        **{f"constants.{name}": constant_value(text) for name, text in launch.constants},
        **{f"options.{name}": _plain(value) for name, value in launch.options},
        **figures,
        **{f"counts.{name}": count for name, count in counts.items()},
        "findings": list(figures["findings"]),
    }


def _is_telling(name: str, rows: list[dict[str, Any]]) -> bool:
    """Whether a column is shown: of twenty options few are ever set."""
    if not name.startswith("options.") or name.removeprefix("options.") in _MAIN_OPTIONS:
        return True
    return any(row.get(name) != rows[0].get(name) for row in rows)


def _missing(name: str, row: dict[str, Any]) -> int | None:
    """Of an instruction that a compiled kernel does not have there are none; of any other column nothing is known."""
    return 0 if name.startswith("counts.") and row["instructions"] is not None else None


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
