"""`irscope mcp`: serves what irscope knows to agents, over the Model Context Protocol on standard input and output."""

from __future__ import annotations

from irscope.cli import app
from irscope.errors import MissingTool


@app.command("mcp", rich_help_panel="For programs")
def serve() -> int:
    """Serve captures, passes, findings and layouts to an agent, over the Model Context Protocol (stdio).

    It ends when its standard input does. docs/agents.md lists the tools; needs pip install 'irscope[mcp]'.
    """
    try:
        from irscope.cli.mcp.server import mcp_server
    except ImportError as error:
        raise MissingTool(
            f"irscope mcp needs the package mcp, 2 or later: pip install 'irscope[mcp]' ({error})."
        ) from error
    from irscope.record.process.child import warm_children

    with warm_children():
        mcp_server().run("stdio")
    return 0
