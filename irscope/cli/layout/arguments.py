"""The arguments of `irscope layout`: `--compare` takes one layout or two, which no option of click's does."""

from __future__ import annotations

from typing import Any

from irscope.cli.application import Command

__all__ = ["LayoutCommand"]

_OPTION = "--compare"


class LayoutCommand(Command):
    """A command whose `--compare A B` is read as `--compare A --compare B`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        own = args[: args.index("--")] if "--" in args else args
        at = own.index(_OPTION) if _OPTION in own else len(own)
        if at + 2 < len(own) and not own[at + 2].startswith("-"):
            args = [*args[: at + 2], _OPTION, *args[at + 2 :]]
        return super().parse_args(ctx, args)
