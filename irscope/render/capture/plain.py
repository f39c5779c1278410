"""A capture as plain values, for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from irscope.model.capture import Capture
from irscope.render.text.tables import picked


def capture_json(capture: Capture, wanted: Sequence[str] = ()) -> dict[str, Any]:
    """A capture as JSON, with the texts of the given stages only."""
    from irscope.device.occupancy import occupancy_of

    names = capture.stages if list(wanted) == ["all"] else wanted
    occupancy, launch = occupancy_of(capture), capture.launch
    return picked(
        capture,
        "id kernel=name file=launch.kernel.file line=launch.kernel.line target plan status grid=launch.grid notes "
        "compile_us processor_us",
        failure=asdict(capture.failure) if capture.failure else None,
        signature=dict(launch.signature),
        constants=dict(launch.constants),
        attributes=dict(launch.attributes),
        options=dict(launch.options),
        autotuning=asdict(launch.autotuning) if launch.autotuning else None,
        resources=asdict(capture.resources),
        occupancy=occupancy and occupancy.as_json(),
        environment=asdict(capture.environment),
        metadata=dict(capture.metadata),
        assumptions=[asdict(item) for item in launch.assumptions],
        graphs=[asdict(origin) for origin in capture.graphs],
        stages=[
            picked(item, "stage duration_us processor_us", bytes=len(item.data))
            | ({"text": item.data} if item.stage in names and isinstance(item.data, str) else {})
            for item in capture.artifacts
        ],
        passes=len(list(capture.passes())),
        findings=_findings_json(capture),
        warp_specialization=_partitions_json(capture),
    )


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
