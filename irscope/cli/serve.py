"""`irscope serve`: serves what irscope knows to agents, editors and browsers."""

from __future__ import annotations

from irscope.errors import CaptureNotFound, IrscopeError, MissingTool, UsageError, did_you_mean, installing

_KINDS = ("mcp", "lsp", "page")


def serve(kind: str, folder: str | None = None, port: int = 0, show: bool = False) -> int:
    """Serve captures, passes, findings and layouts to agents (mcp), editors (lsp) and browsers (page).

    mcp: the Model Context Protocol on standard input and output, until the input ends. docs/agents.md lists the tools;
    needs the extra mcp.
    lsp: the Language Server Protocol, likewise: findings, costs and IR of a Python file, which is recorded (so it
    runs) at each save. docs/editors.md has the settings of editors; needs the extra lsp.
    page: the page over a collection with search, until Ctrl-C, to browsers of this machine that have the printed
    address. It writes nothing, and runs no code.

    Options:
        kind = mcp|lsp|page: What is served.
        folder = [COLLECTION]: Of page: a folder of captures, or one file of them.
        --port (0..65535): Of page; 0 is any that is free.
        show = --open: Of page: open it in the browser.
    """
    if kind not in _KINDS:
        raise UsageError(f"serve {kind!r}: write {', '.join(_KINDS)}.{did_you_mean(kind, _KINDS)}")
    if kind == "page":
        return _serve_page(folder, port, show)
    if folder is not None or port or show:
        raise UsageError(f"serve {kind} takes no COLLECTION, --port or --open: these are of serve page.")
    try:
        if kind == "lsp":
            from irscope.cli.lsp import lsp_server

            lsp_server().start_io()
            return 0
        from irscope.cli.mcp.server import mcp_server
    except ImportError as error:
        needed = {"mcp": "mcp, 2 or later", "lsp": "pygls, 2 or later"}[kind]
        raise MissingTool(f"irscope serve {kind} needs the package {needed}: {installing(kind)} ({error}).") from error
    from irscope.record.process.child import warm_children

    with warm_children():
        mcp_server().run("stdio")
    return 0


def _serve_page(folder: str | None, port: int, show: bool) -> int:
    import click

    from irscope.cli.captures import collection_at
    from irscope.cli.pages import PageServer
    from irscope.cli.streams import say, standard_output

    if folder is None:
        raise UsageError("serve page COLLECTION: name a folder of captures, as irscope record SCRIPT -o FOLDER makes.")
    if (collection := collection_at(folder)) is None:
        raise CaptureNotFound(f"{folder!r} holds no capture. Record some: irscope record SCRIPT -o {folder}")
    try:
        server = PageServer(collection, port)
    except OSError as error:
        raise IrscopeError(f"--port {port}: {error.strerror}. Leave it out for one that is free.") from error
    with server:
        print(server.url, file=standard_output(), flush=True)
        say("Only browsers of this machine reach it, with this address. Ctrl-C ends it.")
        if show:
            click.launch(server.url)
        server.serve_forever()
    return 0
