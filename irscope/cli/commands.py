"""The commands in five groups, each loaded when it is named."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


GROUPS = {
    "Record": ("record", "dump", "ls", "import", "doctor"),
    "See": ("show", "source", "passes", "layout", "draw", "report", "export", "serve"),
    "Explain": ("why", "time", "verify", "profile"),
    "Change and compare": (
        "diff", "edit", "ablate", "run", "bench", "tune", "sweep", "upgrade", "reduce", "reproduce",
    ),
    "Guard": ("check",),
}  # fmt: skip
"""Those of every day come first in their group."""
EVERYDAY = ("record", "dump", "show", "source", "passes", "layout", "why", "time", "diff", "check")
COMMANDS = tuple(name for names in GROUPS.values() for name in names)
_FUNCTIONS = {"import": "import_"}
"""The function of a command, and the module that it stands in, where that is not its name."""


def _summary(name: str) -> str:
    """The first line of a command's docstring, read without its module: the overview appears at once."""
    function = _FUNCTIONS.get(name, name)
    text = Path(__file__).with_name(f"{function}.py").read_text("utf-8")
    return text.partition(f"\ndef {function}(")[2].partition('"""')[2].partition("\n")[0]


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> Command | None:
        if cmd_name not in COMMANDS:
            return None
        from irscope.cli.command import Command

        name = _FUNCTIONS.get(cmd_name, cmd_name)
        return Command(cmd_name, getattr(import_module(f"irscope.cli.{name}"), name))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        """The command that the first argument names; raises UsageError with the nearest one."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            ctx.fail(f"No such command {name!r}.{did_you_mean(name, COMMANDS, or_all=False)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        with formatter.section("Every day"):
            formatter.write_text(", ".join(EVERYDAY))
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), _summary(name)) for name in names])


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
