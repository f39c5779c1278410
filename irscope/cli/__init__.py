"""The command line: one file a command, each parses, calls the library once, and echoes."""

from __future__ import annotations

from typing import Annotated

import typer

from irscope import __version__

app = typer.Typer(
    name="irscope",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Shows what the Triton compiler did to a GPU kernel, stage by stage and pass by pass, and lets you change it.",
    epilog="Everything after -- goes to the script. --debug, anywhere before it, shows tracebacks.",
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"irscope {__version__}")
        raise typer.Exit


@app.callback()
def _options(  # pyright: ignore[reportUnusedFunction]
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    pass


from irscope.cli import (  # noqa: E402
    diff,  # pyright: ignore[reportUnusedImport] # noqa: F401
    doctor,  # pyright: ignore[reportUnusedImport] # noqa: F401
    dump,  # pyright: ignore[reportUnusedImport] # noqa: F401
    graph,  # pyright: ignore[reportUnusedImport] # noqa: F401
    import_,  # pyright: ignore[reportUnusedImport] # noqa: F401
    layout,  # pyright: ignore[reportUnusedImport] # noqa: F401
    ls,  # pyright: ignore[reportUnusedImport] # noqa: F401
    passes,  # pyright: ignore[reportUnusedImport] # noqa: F401
    report,  # pyright: ignore[reportUnusedImport] # noqa: F401
    show,  # pyright: ignore[reportUnusedImport] # noqa: F401
    source,  # pyright: ignore[reportUnusedImport] # noqa: F401
)
