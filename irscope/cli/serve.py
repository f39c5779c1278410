"""`irscope serve`: serves what irscope knows to other programs, such as agents over the Model Context Protocol."""

from __future__ import annotations

from irscope.errors import MissingTool, UsageError, did_you_mean

_KINDS = ("mcp",)


def serve(kind: str) -> int:
    """Serve captures, passes, findings and layouts to other programs: mcp, for agents.

    mcp: the Model Context Protocol on standard input and output, until the input ends. docs/agents.md lists the tools;
    needs pip install 'irscope[mcp]'.

    Options:
        kind = mcp: What is served.
    """
    if kind not in _KINDS:
        raise UsageError(f"serve {kind!r}: write {', '.join(_KINDS)}.{did_you_mean(kind, _KINDS)}")
    try:
        from irscope.cli.mcp.server import mcp_server
    except ImportError as error:
        raise MissingTool(
            f"irscope serve mcp needs the package mcp, 2 or later: pip install 'irscope[mcp]' ({error})."
        ) from error
    from irscope.record.process.child import warm_children

    with warm_children():
        mcp_server().run("stdio")
    return 0
