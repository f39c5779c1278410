"""`irscope serve`: serves what irscope knows to other programs, such as agents over the Model Context Protocol."""

from __future__ import annotations

from irscope.errors import MissingTool, UsageError, did_you_mean

_KINDS = ("mcp", "lsp")


def serve(kind: str) -> int:
    """Serve captures, passes, findings and layouts to other programs: mcp, for agents; lsp, for editors.

    mcp: the Model Context Protocol on standard input and output, until the input ends. docs/agents.md lists the tools;
    needs pip install 'irscope[mcp]'.
    lsp: the Language Server Protocol, likewise: findings, costs and IR of a Python file, which is recorded (so it
    runs) at each save. docs/editors.md has the settings of editors; needs pip install 'irscope[lsp]'.

    Options:
        kind = mcp|lsp: What is served.
    """
    if kind not in _KINDS:
        raise UsageError(f"serve {kind!r}: write {' or '.join(_KINDS)}.{did_you_mean(kind, _KINDS)}")
    try:
        if kind == "lsp":
            from irscope.cli.lsp import lsp_server

            lsp_server().start_io()
            return 0
        from irscope.cli.mcp.server import mcp_server
    except ImportError as error:
        needed = {"mcp": "mcp, 2 or later", "lsp": "pygls, 2 or later"}[kind]
        raise MissingTool(
            f"irscope serve {kind} needs the package {needed}: pip install 'irscope[{kind}]' ({error})."
        ) from error
    from irscope.record.process.child import warm_children

    with warm_children():
        mcp_server().run("stdio")
    return 0
