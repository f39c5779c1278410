"""The source map as JSON: the counts of each line of Python, or the operations of one stage."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from irscope.analysis.source.map import SourceMap, StageCount
from irscope.model.capture import Capture
from irscope.render.text.source import Line, library_lines, source_blocks, without_location


def counts_json(capture: Capture, found: SourceMap, only: Collection[Line] | None = None) -> dict[str, Any]:
    """For each line of Python that something comes from, the counts at each stage."""
    rows = [
        {
            "file": block.file,
            "line": row.line,
            "text": row.text,
            "stages": {one.stage: _count(one) for one in row.counts},
        }
        for block in source_blocks(capture, found, only)
        for row in block.rows
        if row.counts
    ]
    return {
        "id": capture.id,
        "kernel": capture.name,
        "target": str(capture.target),
        "file": found.kernel_file,
        "lines": rows,
        "library": [
            {"file": file, "line": line, "stages": counts} for (file, line), counts in library_lines(found).items()
        ],
        "without_location": without_location(found),
    }


def _count(count: StageCount) -> dict[str, Any]:
    row: dict[str, Any] = {"own": count.own, "called": count.called, "kinds": dict(count.kinds)}
    return row | ({} if count.live_registers is None else {"live_registers": count.live_registers})


def operations_json(
    found: SourceMap, stage: str, only: Collection[Line] | None = None, pattern: re.Pattern[str] | None = None
) -> list[dict[str, Any]]:
    """The operations of one stage, each with its whole chain of calls."""
    the_map = found.stage(stage)
    operations = the_map.operations
    wanted = set(operations.matching(pattern)) if pattern is not None else None
    rows: list[dict[str, Any]] = []
    for index, number in enumerate(operations.lines):
        places = [found.places[place] for place in the_map.places_at(number)]
        if (wanted is not None and index not in wanted) or (
            only is not None and not any(frame in only for place in places for frame in place)
        ):
            continue
        row: dict[str, Any] = {
            "text_line": number,
            "operation": operations.full_names[operations.names[index]],
            "kind": operations.kind_names[operations.kinds[index]],
            "chain": [
                {"file": frame.file, "line": frame.line, "column": frame.column}
                for frame in the_map.locations.chain_at(number)
            ],
            "python": [[{"file": file, "line": line} for file, line in place] for place in places],
        }
        if operations.live:
            row["live_registers"] = operations.live[index]
        rows.append(row)
    return rows
