"""The command line: one file a command, each parses, calls the library once, and echoes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
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


@dataclass(frozen=True)
class Command:
    """One command: where it is, and how the overview shows it."""

    module: str
    panel: str
    summary: str
    """The first sentence of its docstring."""


# The overview must come at once, and a command must not wait for the imports of the others.
COMMANDS: dict[str, Command] = {
    "dump": Command(
        "irscope.cli.dump",
        "Record and read",
        "Record any Triton kernel on any machine, and show any stage of its compile.",
    ),
    "show": Command(
        "irscope.cli.show",
        "Record and read",
        "Show a capture: its summary, a stage, or the IR around a pass. Runs anywhere.",
    ),
    "ls": Command("irscope.cli.ls", "Record and read", "List the recent captures, the newest first."),
    "import": Command(
        "irscope.cli.import_",
        "Record and read",
        "Make captures of what Triton printed or cached, with no Triton: for logs of a machine that is out of reach.",
    ),
    "doctor": Command(
        "irscope.cli.doctor",
        "Record and read",
        "Say what is installed: Triton, targets, GPU, tools; what is missing, and how to get it.",
    ),
    "passes": Command(
        "irscope.cli.passes",
        "Passes",
        "The table of passes: stage, number, name, MLIR argument and options, time, and what each changed.",
    ),
    "diff": Command(
        "irscope.cli.diff",
        "Compare",
        "Compare two compilations, structurally: names, locations and the order of independent operations don't count.",
    ),
    "run": Command(
        "irscope.cli.run",
        "On the GPU",
        "Run a script on the GPU, with passes off, and check each launch against the same one with all passes on.",
    ),
    "bench": Command(
        "irscope.cli.bench",
        "On the GPU",
        "Time a launch and its variants on the GPU, interleaved, with a confidence interval for every ratio.",
    ),
    "ablate": Command(
        "irscope.cli.ablate",
        "What a pass is worth",
        "Switch each pass off in turn, and tabulate what it was worth: what compiles, what differs, at what resources.",
    ),
    "bisect": Command(
        "irscope.cli.bisect",
        "What a pass is worth",
        "Find the pass that a result hangs on: the one whose absence, or presence, makes a check come out otherwise.",
    ),
    "layout": Command(
        "irscope.cli.layout",
        "Look into it",
        "Show which thread holds which element, where it lies in shared memory, and what that costs.",
    ),
    "graph": Command(
        "irscope.cli.graph",
        "Look into it",
        "The dataflow of a kernel as a picture: layouts are colours; memory, dots and layout conversions stand out.",
    ),
    "source": Command(
        "irscope.cli.source",
        "Look into it",
        "The kernel's Python with, for each line, its operations at every stage, its instructions and live registers.",
    ),
    "report": Command(
        "irscope.cli.report",
        "Compare",
        "Write one HTML file that shows every pass, stage, layout and comparison; it needs no server and no network.",
    ),
}


def load_commands(arguments: Sequence[str]) -> None:
    """Register the command that a command line names, or where it names none, every command's name and summary."""
    name = next((word for word in arguments if not word.startswith("-")), None)
    if "_IRSCOPE_COMPLETE" in os.environ:
        for command in COMMANDS.values():
            import_module(command.module)
    elif name in COMMANDS:
        import_module(COMMANDS[name].module)
    else:
        for other, command in COMMANDS.items():
            app.command(other, help=command.summary, rich_help_panel=command.panel)(_nothing)


def _nothing() -> None:
    pass
