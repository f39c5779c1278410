"""The last answers of `irscope mcp`: what is computed once, and what is computed again."""

from __future__ import annotations

import json
from pathlib import Path

from irscope.cli.mcp.answers import KeptAnswers, Offered, ToolAnswer


def test_a_tool_answers_all_pages_at_once(tmp_path: Path) -> None:
    """Until what its answer is of has changed, or others came between."""
    file = tmp_path / "it.irscope"
    file.write_text("1")
    calls: list[str] = []

    def stages(capture: str, start: int = 0) -> ToolAnswer:
        calls.append(capture)
        rows = [f"{Path(capture).read_text()} {number} {'x' * 1000}" for number in range(20)]
        return ToolAnswer({}, "lines", rows, "irscope show", start)

    kept, tool = KeptAnswers(most=2), Offered("stages", stages, "reads")

    def page(start: int, path: Path = file) -> list[str]:
        return json.loads(kept.text(tool, {"capture": str(path), "start": start}))["lines"]

    first = page(0)
    rest = page(len(first))
    assert [line[:4].split()[1] for line in first + rest] == [str(number) for number in range(len(first + rest))]
    assert len(calls) == 1
    page(0)
    assert len(calls) == 2
    file.write_text("22")
    assert page(5)[0].startswith("22 5")
    assert len(calls) == 3
    for number in range(2):
        (other := tmp_path / f"{number}.irscope").write_text("3")
        page(0, other)
    page(5)
    assert len(calls) == 6
