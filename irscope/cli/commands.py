"""The commands in five groups, each loaded when it is named."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from irscope import __version__
from irscope.errors import did_you_mean

if TYPE_CHECKING:
    from irscope.cli.command import Command

_HELP = "Show what the Triton compiler did to a GPU kernel, stage by stage and pass by pass, and change it."
_EPILOG = (
    "irscope help COMMAND shows the options of a command; irscope record --help lists the recording options, "
    "which go with every command that records. Arguments after -- are for the script. --debug, anywhere before --, "
    "shows tracebacks; --color and --no-color go with every command that prints text."
)


class Named(NamedTuple):
    """One command: its group of the overview, and the first sentence of its docstring."""

    group: str
    summary: str


_GROUPS: dict[str, dict[str, str]] = {
    "Record": {
        "record": "Record every kernel launch of scripts, modules, tests, notebooks or any command; -o makes a "
        "collection.",
        "dump": "Record any Triton kernel on any machine, and show any stage of its compilation.",
        "ls": "List the recent captures, or those of a collection, the newest first.",
        "import": "Make captures of what Triton printed or cached on another machine; needs no Triton.",
        "doctor": "Report what is installed (Triton, targets, GPU, tools), what is missing, and how to install it.",
    },
    "See": {
        "show": "Show captures: their summary, a stage, the IR around a pass, or values. Runs anywhere.",
        "source": "Show the kernel's Python with, for each line, its operations at every stage, instructions and live "
        "registers.",
        "passes": "List the passes: stage, number, name, MLIR argument and options, time, and what each changed.",
        "layout": "Show which thread holds which element, where it lies in shared memory, and what that costs.",
        "draw": "Draw a kernel: dataflow, control-flow, passes, warps, loop, poster, movie or roofline.",
        "report": "Write one HTML file with every pass, stage and layout; it needs no server and no network.",
        "export": "Write captures for another tool: --tritonparse, a trace that tritonparse's parser and viewer read.",
        "serve": "Serve captures, passes, findings and layouts to agents (mcp), editors (lsp) and browsers (page).",
    },
    "Explain": {
        "why": "Report what is slow in a kernel: the line, the cause, and fixes that were compiled.",
        "verify": "Find accesses out of bounds, races, passes that change what a kernel means, and variants that "
        "differ; no GPU.",
        "time": "Predict the time of a launch, what bounds it and the share of each line, next to its minimum time.",
        "profile": "Show hardware counters per operation: stalls, sectors, cache lines, bank conflicts.",
    },
    "Change and compare": {
        "diff": "Compare two compilations structurally: names, locations and the order of independent operations do "
        "not count.",
        "edit": "Edit a text of a capture in your editor, compile on from it, and show what that changed.",
        "ablate": "Switch passes off: each in turn, tabulated; or, with --check, until the decisive one is found.",
        "run": "Run a script's kernels and check their results, with a GPU or without: a "
        "plan is compared with every pass on.",
        "bench": "Time a launch and its variants on the GPU.",
        "tune": "Compile the configurations of a kernel and rank them by predicted time; only --time runs any.",
        "sweep": "Compile captures in every combination of options and targets, on all cores or a cluster, into one "
        "table.",
        "upgrade": "Compile kernels with two Triton versions, rank what changed, and find the stage and pass to blame.",
        "reduce": "Reduce a kernel to the smallest IR that still has a failure, a finding, or what a command checks.",
        "reproduce": "Write one Python file that compiles a capture again with Triton alone, and launches it on a GPU.",
    },
    "Guard": {
        "check": "Fail where a kernel breaks an assertion, or got worse than a baseline: a guard for tests and CI.",
    },
}
COMMANDS = {name: Named(group, summary) for group, commands in _GROUPS.items() for name, summary in commands.items()}
"""The overview appears at once, and a command does not import the others."""
_MODULES = {"import": "import_"}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the overview."""
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> Command | None:
        """Load a command."""
        if cmd_name not in COMMANDS:
            return None
        from irscope.cli.command import Command

        name = _MODULES.get(cmd_name, cmd_name)
        return Command(cmd_name, getattr(import_module(f"irscope.cli.{name}"), name))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        """The command that the first argument names; raises UsageError with the nearest one."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            ctx.fail(f"No such command {name!r}.{did_you_mean(name, COMMANDS, or_all=False)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by groups."""
        width = max(map(len, COMMANDS))
        for title, commands in _GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), summary) for name, summary in commands.items()])


def _print_version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        click.echo(f"irscope {__version__}")
        ctx.exit()


def main_group() -> click.Group:
    """The command line: a group that loads the command that is named."""
    version = click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_version,
        help="Print the version and exit.",
    )
    return _Commands(
        "irscope",
        params=[version],
        help=_HELP,
        epilog=_EPILOG,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    )
