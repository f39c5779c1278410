"""The command line: one module per command, which parses, calls the library and prints the result."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextvars import ContextVar
from importlib import import_module
from typing import Annotated, NamedTuple

import typer

from irscope import __version__
from irscope.cli.application import Application, Overview

app = Application(
    name="irscope",
    cls=Overview,
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


script_arguments: ContextVar[tuple[str, ...]] = ContextVar("script_arguments", default=())
"""What stands after -- on the command line of a command that records: no subject, whatever else is left out."""


def takes_script_arguments() -> bool:
    """Whether the command that was loaded runs a program, whose arguments stand after --."""
    return any(getattr(command.callback, "runs_program", False) for command in app.registered_commands)


class Command(NamedTuple):
    """One command: its module, its panel of the overview, and the first sentence of its docstring."""

    module: str
    panel: str
    summary: str


# The overview appears at once, and a command does not import the others.
_PANELS = {
    "Record and read": "dump record collect show ls import doctor",
    "Passes": "passes",
    "Compare": "check watch diff edit variants report reproduce reduce",
    "On the GPU": "run bench profile",
    "Effect of passes": "ablate bisect sweep upgrade",
    "Inspect": "why layout roofline graph poster movie source",
    "For programs": "mcp",
}
_SUMMARIES = {
    "dump": "Record any Triton kernel on any machine, and show any stage of its compilation.",
    "collect": "Record scripts into a collection: a folder of captures with an index, which every command takes.",
    "record": "Record what the Python processes of a command launch, those that it starts and forks included.",
    "show": "Show a capture: its summary, a stage, the IR around a pass, or the values of its launch. Runs anywhere.",
    "ls": "List the recent captures, or those of a collection, the newest first.",
    "import": "Make captures of what Triton printed or cached on another machine; needs no Triton.",
    "doctor": "Report what is installed (Triton, targets, GPU, tools), what is missing, and how to install it.",
    "passes": "List the passes: stage, number, name, MLIR argument and options, time, and what each changed.",
    "check": "Fail where a kernel breaks an assertion, or got worse than a baseline: a guard for tests and CI.",
    "watch": "Record a file again whenever it is saved, and show what that changed.",
    "diff": "Compare two compilations structurally: names, locations and the order of independent operations do not "
    "count.",
    "edit": "Edit a text of a capture in your editor, compile on from it, and show what that changed.",
    "run": "Run a script with passes off, and check each launch against the same launch with all passes on.",
    "bench": "Time a launch and its variants on the GPU, interleaved, with a confidence interval for every ratio.",
    "profile": "Show where warps wait and what memory really does, per operation: the hardware's own counters.",
    "ablate": "Switch each pass off in turn and tabulate the effect: what fails, what differs, and the resources used.",
    "bisect": "Find the pass that a result depends on: the one whose absence, or presence, flips a check.",
    "sweep": "Compile captures in all ways with all others, on all cores or a cluster, and write one table of what "
    "came of it.",
    "upgrade": "Compile kernels by two Tritons, rank what changed, and find the stage and the pass that it comes from.",
    "why": "Say what is slow in a kernel, on which line, because of what, and what mends it: each remedy was compiled.",
    "layout": "Show which thread holds which element, where it lies in shared memory, and what that costs.",
    "roofline": "Count what a launch computes and the bytes that it must move, and the least time that its target's "
    "peaks allow.",
    "graph": "Draw the dataflow of a kernel: layouts are colours; memory, dots and layout conversions stand out.",
    "source": "Show the kernel's Python with, for each line, its operations at every stage, instructions and live "
    "registers.",
    "poster": "Draw a kernel at a glance: its loop turn by turn, shared memory, registers, limits and worst findings.",
    "movie": "Play the passes that changed a kernel: its tiles under each pass's layouts, counts, what came and went.",
    "variants": "Say why a kernel was compiled more than once: which argument told its variants apart, and what would "
    "merge them.",
    "report": "Write one HTML file with every pass, stage and layout; it needs no server and no network.",
    "reproduce": "Write one Python file that compiles a capture again with Triton alone, and launches it on a GPU.",
    "reduce": "Make the smallest IR of which one thing is still true: a failure, a finding, or what a command checks.",
    "mcp": "Serve captures, passes, findings and layouts to an agent, over the Model Context Protocol (stdio).",
}


_ROOMS = (
    "check", "diff", "dump", "edit", "graph", "layout", "ls", "mcp", "passes", "reduce", "sweep", "upgrade", "variants",
    "watch", "why",
)  # fmt: skip
_MODULES = {"import": "import_", **{name: f"{name}.command" for name in _ROOMS}}
COMMANDS = {
    name: Command(f"irscope.cli.{_MODULES.get(name, name)}", panel, _SUMMARIES[name])
    for panel, names in _PANELS.items()
    for name in names.split()
}
Overview.panels = {panel: [(name, _SUMMARIES[name]) for name in names.split()] for panel, names in _PANELS.items()}


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
            app.command(other, help=command.summary, rich_help_panel=command.panel)(lambda: None)
