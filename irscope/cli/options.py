"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_RECORD = "Recording"
_PLAN = "Passes"
_SHOW = "Output"

Subject = Annotated[
    str | None,
    typer.Argument(
        metavar="[FILE[::KERNEL]|CAPTURE]",
        help="A Python file with kernels (run, and every launch taken), an IR file (.ttir .ttgir .llir .ptx), "
        "a capture (.irscope file, or the beginning of a stored one's id), or 'last'.",
        show_default=False,
    ),
]
ScriptArguments = Annotated[
    list[str] | None, typer.Argument(metavar="[-- ARGS]", help="The script's own arguments.", show_default=False)
]
Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        "-t",
        metavar="BACKEND:ARCH",
        help="cuda:90, hip:gfx942, h100, mi300x, …; repeatable. Default: the GPU that is there, else cuda:90.",
        rich_help_panel=_RECORD,
        show_default=False,
    ),
]
LaunchNumber = Annotated[
    int | None,
    typer.Option(
        "--launch",
        metavar="N",
        min=1,
        help="Only the N-th launch, from 1; of several targets, each one's.",
        rich_help_panel=_RECORD,
    ),
]
Virtual = Annotated[
    bool,
    typer.Option("--virtual", help="Run on the virtual GPU even where there is a real one.", rich_help_panel=_RECORD),
]
Signature = Annotated[
    str | None,
    typer.Option(
        "--signature",
        metavar="TYPES",
        help="Compile FILE::KERNEL without running the script: '*fp16:16, i32, 64', as triton.tools.compile reads it.",
        rich_help_panel=_RECORD,
        show_default=False,
    ),
]
Constexprs = Annotated[
    list[str] | None,
    typer.Option(
        "--constexpr",
        metavar="NAME=VALUE",
        help="A tl.constexpr of the kernel, with --signature; repeatable.",
        rich_help_panel=_RECORD,
        show_default=False,
    ),
]
NumWarps = Annotated[int | None, typer.Option("--num-warps", min=1, rich_help_panel=_RECORD, show_default=False)]
NumStages = Annotated[int | None, typer.Option("--num-stages", min=0, rich_help_panel=_RECORD, show_default=False)]
NumCtas = Annotated[int | None, typer.Option("--num-ctas", min=1, rich_help_panel=_RECORD, show_default=False)]
CompileOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="KEY=VALUE",
        help="Any compile option of the backend (maxnreg=64, …); repeatable.",
        rich_help_panel=_RECORD,
        show_default=False,
    ),
]
Config = Annotated[
    str,
    typer.Option(
        "--config",
        metavar="all|N|KEY=VALUE",
        help="Which configurations of an autotuned kernel the virtual GPU compiles; by default the first that fits.",
        rich_help_panel=_RECORD,
        show_default=False,
    ),
]
Assume = Annotated[
    list[str] | None,
    typer.Option(
        "--assume",
        metavar="NAME=VALUE",
        help="What the virtual GPU takes a value to be that a GPU would compute, in place of 0. NAME is the variable "
        "that the script assigns it to, FILE:LINE of the read, or the kernel's parameter; repeatable.",
        rich_help_panel=_RECORD,
        show_default=False,
    ),
]
DisablePass = Annotated[
    list[str] | None,
    typer.Option(
        "--disable-pass",
        "-d",
        metavar="[STAGE:]NAME[#N]",
        help="Switch a pass off: combine, ttgir:coalesce, canonicalizer#2, llvm-opt, ptxas-opt; repeatable.",
        rich_help_panel=_PLAN,
        show_default=False,
    ),
]
EnableOnly = Annotated[
    list[str] | None,
    typer.Option(
        "--enable-only",
        metavar="STAGE:NAME[#N]",
        help="Switch every other pass of that stage off; repeatable.",
        rich_help_panel=_PLAN,
        show_default=False,
    ),
]
PlanFile = Annotated[
    Path | None,
    typer.Option(
        "--plan",
        metavar="FILE",
        help="A plan as text: -RULE off, +STAGE:RULE only.",
        rich_help_panel=_PLAN,
        show_default=False,
    ),
]
Snapshots = Annotated[
    str,
    typer.Option(
        "--snapshots",
        metavar="triton|all|none",
        help="Which passes' IR to keep: while it holds Triton's dialects, all, or none.",
        rich_help_panel=_PLAN,
    ),
]
LlvmPasses = Annotated[
    bool, typer.Option("--llvm", help="Record the IR after each LLVM pass too.", rich_help_panel=_PLAN)
]
Timeout = Annotated[
    float,
    typer.Option("--timeout", metavar="SECONDS", min=0.1, help="For one kernel's compile.", rich_help_panel=_RECORD),
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show what the script and the compiler print.", rich_help_panel=_RECORD)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=_SHOW)]
Color = Annotated[
    bool | None,
    typer.Option("--color/--no-color", help="Default: on a terminal.", rich_help_panel=_SHOW, show_default=False),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="PATH", help="Write to a file.", rich_help_panel=_SHOW, show_default=False),
]
