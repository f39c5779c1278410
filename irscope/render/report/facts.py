"""The facts of a capture that a report holds outside of its texts: inputs, resources, stages, passes and findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from hashlib import sha256
from typing import Any

from irscope.analysis.findings.model import Finding
from irscope.analysis.passes.effects import PassEffect, pass_effects
from irscope.analysis.resources.metrics import instruction_families, resource_rows
from irscope.device.occupancy import occupancy_of
from irscope.memory.access import Cost
from irscope.model.capture import Capture, stage_named
from irscope.render.report.findings import findings_of

_LARGEST = 8
"""Operations whose change is named with a pass."""


def facts_of(capture: Capture, costs: Sequence[Cost], found: Sequence[Finding]) -> dict[str, Any]:
    """All but the texts of a capture, as JSON holds it; `found` are its findings."""
    launch = capture.launch
    occupancy = occupancy_of(capture)
    return {
        "id": capture.id,
        "kernel": capture.name,
        "file": launch.kernel.file,
        "line": launch.kernel.line,
        "firstLine": launch.kernel.first_line,
        "target": str(capture.target),
        "warpSize": capture.target.warp_size,
        "status": capture.status,
        "failure": asdict(capture.failure) | {"verdict": capture.failure.verdict} if capture.failure else None,
        "plan": str(capture.plan),
        "language": launch.language,
        "signature": list(launch.signature),
        "constants": list(launch.constants),
        "attributes": list(launch.attributes),
        "options": list(launch.options),
        "grid": launch.grid,
        "autotuning": asdict(launch.autotuning) if launch.autotuning else None,
        "resources": resource_rows(capture),
        "occupancy": occupancy and occupancy.as_json(),
        "families": instruction_families(capture),
        "environment": {key: value for key, value in asdict(capture.environment).items() if value != ()},
        "metadata": list(capture.metadata),
        "notes": list(capture.notes),
        "compileUs": capture.compile_us,
        "snapshotLevel": capture.snapshot_level,
        "stages": [
            {
                "stage": item.stage,
                "kind": stage_named(item.stage).kind,
                "title": stage_named(item.stage).title,
                "us": item.duration_us,
                "bytes": len(item.data),
                "lines": item.data.count("\n") if isinstance(item.data, str) else None,
                "digest": None if isinstance(item.data, str) else sha256(item.data).hexdigest()[:16],
            }
            for item in capture.artifacts
        ],
        "passes": [_pass(effect) for effect in pass_effects(capture)],
        "findings": findings_of(capture, costs, found),
    }


def _pass(effect: PassEffect) -> dict[str, Any]:
    snapshot = effect.snapshot
    row: dict[str, Any] = {
        "stage": snapshot.stage,
        "name": snapshot.name,
        "n": snapshot.occurrence,
        "index": snapshot.index,
        "argument": snapshot.argument,
        "options": snapshot.options,
        "outcome": snapshot.outcome,
        "changed": snapshot.changed,
        "us": snapshot.duration_us,
        "group": snapshot.group,
        "scope": snapshot.scope,
        "leftOut": snapshot.text_left_out,
    }
    counts = [effect.lines, effect.operations, effect.layouts, effect.convert_layouts]
    if any(counts):
        row["counts"] = counts
        row["byOperation"] = list(effect.by_operation[:_LARGEST])
    return {name: value for name, value in row.items() if value not in ("", None, False) or name == "changed"}
