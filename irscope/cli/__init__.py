"""The command line: one module per command, which parses, calls the library and prints the result."""

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
    help="Show what the Triton compiler did to a GPU kernel, stage by stage and pass by pass, and change it.",
    epilog="Arguments after -- are for the script. --debug, anywhere before --, shows tracebacks.",
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"irscope {__version__}")
        raise typer.Exit


@app.callback()
def _options(  # pyright: ignore[reportUnusedFunction]
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


@dataclass(frozen=True)
class Command:
    """One command: its module, and its line in the overview."""

    module: str
    panel: str
    summary: str
    """The first sentence of its docstring."""


# The overview appears at once, and a command does not import the others.
COMMANDS: dict[str, Command] = {
    "dump": Command(
        "irscope.cli.dump.command",
        "Record and read",
        "Record any Triton kernel on any machine, and show any stage of its compilation.",
    ),
    "show": Command(
        "irscope.cli.show",
        "Record and read",
        "Show a capture: its summary, a stage, or the IR around a pass. Runs anywhere.",
    ),
    "ls": Command("irscope.cli.ls.command", "Record and read", "List the recent captures, the newest first."),
    "import": Command(
        "irscope.cli.import_",
        "Record and read",
        "Make captures of what Triton printed or cached on another machine; needs no Triton.",
    ),
    "doctor": Command(
        "irscope.cli.doctor",
        "Record and read",
        "Report what is installed (Triton, targets, GPU, tools), what is missing, and how to install it.",
    ),
    "passes": Command(
        "irscope.cli.passes",
        "Passes",
        "List the passes: stage, number, name, MLIR argument and options, time, and what each changed.",
    ),
    "diff": Command(
        "irscope.cli.diff.command",
        "Compare",
        "Compare two compilations structurally: names, locations and the order of independent operations do not count.",
    ),
    "run": Command(
        "irscope.cli.run",
        "On the GPU",
        "Run a script on the GPU with passes off, and check each launch against the same launch with all passes on.",
    ),
    "bench": Command(
        "irscope.cli.bench",
        "On the GPU",
        "Time a launch and its variants on the GPU, interleaved, with a confidence interval for every ratio.",
    ),
    "ablate": Command(
        "irscope.cli.ablate.command",
        "Effect of passes",
        "Switch each pass off in turn and tabulate the effect: what fails, what differs, and the resources used.",
    ),
    "bisect": Command(
        "irscope.cli.bisect.command",
        "Effect of passes",
        "Find the pass that a result depends on: the one whose absence, or presence, flips a check.",
    ),
    "layout": Command(
        "irscope.cli.layout.command",
        "Inspect",
        "Show which thread holds which element, where it lies in shared memory, and what that costs.",
    ),
    "graph": Command(
        "irscope.cli.graph.command",
        "Inspect",
        "Draw the dataflow of a kernel: layouts are colours; memory, dots and layout conversions stand out.",
    ),
    "source": Command(
        "irscope.cli.source",
        "Inspect",
        "Show the kernel's Python with, for each line, its operations at every stage, instructions and live registers.",
    ),
    "report": Command(
        "irscope.cli.report",
        "Compare",
        "Write one HTML file with every pass, stage and layout; it needs no server and no network.",
    ),
}


def load_commands(arguments: Sequence[str]) -> None:
    """Register the command that the arguments name, or if they name none, the summaries of all."""
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
