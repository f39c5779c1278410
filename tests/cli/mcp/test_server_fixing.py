"""A client that follows `why` mends a slow kernel: one of the ten of `python -m tests.cli.mcp.fixing`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.mcp.fixing import CASES, Mended, mend

anyio = pytest.importorskip("anyio", reason="the extra irscope[mcp] is not installed")
pytest.importorskip("mcp.server.mcpserver", reason="the extra irscope[mcp] is not installed")


async def _mended(name: str) -> Mended:
    from mcp import Client

    from irscope.cli.mcp.server import mcp_server

    async with Client(mcp_server()) as client:

        async def ask(tool: str, arguments: dict[str, Any]) -> Any:
            answer = await client.call_tool(tool, arguments)
            assert not answer.is_error, answer.content
            return json.loads(answer.content[0].text)

        return await mend(ask, next(one for one in CASES if one.name == name))


@pytest.mark.exhaustive
@pytest.mark.triton
def test_a_view_is_moved_to_where_loads_are_wide() -> None:
    pytest.importorskip("torch", reason="the script imports torch")
    mended = anyio.run(_mended, "view")
    assert mended.is_better
    assert mended.knobs == {"x_begin": 16}
    before, after = (figures["memory instructions"] for figures in mended.figures)
    # 16-bit loads in place of 128-bit ones, and as many stores as before.
    assert before / after == (8 + 1) / 2
