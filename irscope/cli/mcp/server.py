"""The tools as a server of the package `mcp`: their schemas, what they may do, and their errors."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import ToolAnnotations
from pydantic import ValidationError

from irscope import __version__
from irscope.cli.mcp.answers import KeptAnswers, Offered
from irscope.cli.mcp.calls import error_text
from irscope.cli.mcp.tools import TOOLS

_INSTRUCTIONS = (
    "irscope shows what the Triton compiler did to a GPU kernel; no GPU is needed. Begin with list, or with record, "
    "which runs a Python file. Every other tool takes a capture: an id, which stays valid, a .irscope file, or 'last'. "
    "start is the first row to show. why says what is slow and how to fix it, verify whether it is safe, time how "
    "long it takes by prediction. next is the call to make next. An answer has at most 8 kB; left_out says what is "
    "missing, and which call gives it. A change (recompile, edit, tune) makes another capture: compare both with diff."
)


def mcp_server() -> MCPServer[Any]:
    """The server, not yet running."""
    kept = KeptAnswers()
    tools = [_tool(one, kept) for one in TOOLS]
    return MCPServer("irscope", version=__version__, instructions=_INSTRUCTIONS, tools=tools, log_level="WARNING")


_UNLISTED = ("start", "config", "dry", "ignore", "last", "locations", "match", "pairs", "timeout_s", "tries", "variant")
"""Arguments that are taken and not described here: where a page begins is told once, in the instructions, and by the
call that an answer names; the others are in docs/agents.md, and told where an argument is given that there is not."""


class _Tool(Tool):
    """A tool that says which arguments it takes, where it is given others."""

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:
        """Run the tool."""
        try:
            return await super().run(arguments, context, convert_result)
        except ToolError as error:
            if (wrong := error.__cause__) is None or not isinstance(wrong, ValidationError):
                raise
            told = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in wrong.errors())
            takes = ", ".join(self.fn_metadata.arg_model.model_fields)
            needed = ", ".join(f"{name}=…" for name in self.parameters.get("required", ()))
            text = f"{told}. {self.name} takes {takes}. Next: {self.name}({needed})"
            raise ToolError(text) from wrong


def _tool(offered: Offered, kept: KeptAnswers) -> Tool:
    description, _, arguments = inspect.cleandoc(offered.function.__doc__ or "").partition("\n\nArgs:\n")
    told = dict(line.split(": ", 1) for line in arguments.splitlines())
    # What a hint is by default stays out: it may write, destroy, and reach the world, as a program does that is run.
    hints = ToolAnnotations(
        read_only_hint=True if offered.effect == "reads" else None,
        destructive_hint=False if offered.effect == "compiles" else None,
        open_world_hint=False,
    )
    tool = _Tool.from_function(
        _refusing(offered, kept),
        name=offered.name,
        description=" ".join(description.split()),
        annotations=None if offered.effect == "runs the file" else hints,
        structured_output=False,
    )
    # A misspelt argument is an error, not left out.
    model = tool.fn_metadata.arg_model
    model.model_config["extra"] = "forbid"
    model.model_rebuild(force=True)
    schema = model.model_json_schema(by_alias=True)
    listed = {name: row for name, row in schema["properties"].items() if name not in _UNLISTED}
    properties = {name: _short(row, told.get(name, "")) for name, row in listed.items()}
    tool.parameters = {"type": "object", "properties": properties}
    if required := schema.get("required"):
        tool.parameters["required"] = required
    return tool


def _short(row: dict[str, Any], told: str) -> dict[str, Any]:
    """The schema of an argument in as few bytes as say the same: all tools together are read in each conversation.

    An argument that is not required may be left out: that it may be null as well is nobody's concern.
    """
    kind = next((one for one in row.get("anyOf", ()) if one.get("type") != "null"), row)
    short = {name: value for name, value in kind.items() if name not in ("title", "default", "additionalProperties")}
    return short | ({"description": told} if told else {})


def _refusing(offered: Offered, kept: KeptAnswers) -> Callable[..., str]:
    """The function of a tool, whose errors are told to the client."""

    @wraps(offered.function)
    def call(**arguments: Any) -> str:
        try:
            return kept.text(offered, arguments)
        except Exception as error:
            if (text := error_text(error, offered.name, arguments)) is None:
                raise
            raise ToolError(text) from error

    return call
