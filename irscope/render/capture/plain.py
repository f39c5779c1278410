"""A capture as plain values, for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from irscope.model.capture import Capture

__all__ = ["capture_json"]


def capture_json(capture: Capture, wanted: Sequence[str] = ()) -> dict[str, Any]:
    """A capture as JSON, with the texts of the given stages only."""
    from irscope.device.occupancy import occupancy_of

    names = capture.stages if list(wanted) == ["all"] else wanted
    failure, occupancy = capture.failure, occupancy_of(capture)
    return {
        "id": capture.id,
        "kernel": capture.name,
        "file": capture.launch.kernel.file,
        "line": capture.launch.kernel.line,
        "target": str(capture.target),
        "status": capture.status,
        "failure": asdict(failure) if failure else None,
        "plan": str(capture.plan),
        "signature": dict(capture.launch.signature),
        "constants": dict(capture.launch.constants),
        "attributes": dict(capture.launch.attributes),
        "options": dict(capture.launch.options),
        "grid": capture.launch.grid,
        "autotuning": asdict(capture.launch.autotuning) if capture.launch.autotuning else None,
        "resources": asdict(capture.resources),
        "occupancy": occupancy and occupancy.as_json(),
        "environment": asdict(capture.environment),
        "metadata": dict(capture.metadata),
        "notes": list(capture.notes),
        "assumptions": [asdict(item) for item in capture.launch.assumptions],
        "graphs": [asdict(origin) for origin in capture.graphs],
        "compile_us": capture.compile_us,
        "stages": [
            {"stage": item.stage, "duration_us": item.duration_us, "bytes": len(item.data)}
            | ({"text": item.data} if item.stage in names and isinstance(item.data, str) else {})
            for item in capture.artifacts
        ],
        "passes": len(list(capture.passes())),
        "findings": _findings_json(capture),
        "warp_specialization": _partitions_json(capture),
    }


def _findings_json(capture: Capture) -> list[dict[str, Any]]:
    from irscope.analysis.findings.quick import quick_findings

    if not (found := quick_findings(capture)):
        return []
    from irscope.render.text.findings import findings_json

    return findings_json(found)


def _partitions_json(capture: Capture) -> list[dict[str, Any]]:
    from irscope.analysis.flow.partitions import read_partitions

    if not (found := read_partitions(capture.texts.get("ttgir", ""))):
        return []
    from irscope.render.capture.page import partitions_json

    return partitions_json(found)
