"""What `irscope graph` draws, and which part of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from irscope.cli import options
from irscope.errors import UsageError

picture = options.in_panel("Picture")


@dataclass(frozen=True, slots=True)
class GraphOptions:
    """What to draw: the dataflow, unless another kind of picture is chosen."""

    stage: Annotated[
        str | None,
        picture(
            "--stage",
            "-s",
            metavar="STAGE",
            help="Default: the lowest one that has layouts. ptx, sass and amdgcn give the control flow.",
        ),
    ] = None
    after: Annotated[str | None, picture("--after", metavar="PASS[#N]", help="The IR after a pass.")] = None
    around: Annotated[
        str | None,
        picture(
            "--around",
            metavar="VALUE",
            help="Only what is near a value (acc_153), a label (.L_x_3) or a register (R24).",
        ),
    ] = None
    depth: Annotated[
        int, picture("--depth", metavar="N", min=0, max=1000, help="Steps from the value of --around.")
    ] = 3
    lines: Annotated[
        str | None, picture("--lines", metavar="23-31", help="Only what comes from these lines of the kernel's file.")
    ] = None
    cfg: Annotated[bool, picture("--cfg", help="The control flow, of llir too: basic blocks and jumps.")] = False
    fold: Annotated[
        int | None,
        picture(
            "--fold",
            metavar="0-7",
            min=0,
            max=7,
            help="Fold at least this much: 0 nothing, 1 chains (the default), up to 7 whole regions; control flow: 0 "
            "to 4.",
        ),
    ] = None
    max_nodes: Annotated[
        int, picture("--max-nodes", metavar="N", min=2, max=5000, help="Fold more above this many nodes.")
    ] = 120
    pipeline: Annotated[bool, picture("--pipeline", help="The passes, with those that changed the IR marked.")] = False
    loops: Annotated[
        bool, picture("--loops", help="The stages of software-pipelined loops, and what is in flight in each.")
    ] = False
    warps: Annotated[
        bool,
        picture("--warps", help="Partitions of a warp-specialised kernel, with the buffers and barriers between them."),
    ] = False

    def __post_init__(self) -> None:
        """Raises UsageError for options that contradict each other."""
        kinds = {"--pipeline": self.pipeline, "--loops": self.loops, "--warps": self.warps, "--cfg": self.cfg}
        pictures = [name for name, chosen in kinds.items() if chosen]
        parts = {"--stage": self.stage, "--after": self.after, "--around": self.around, "--lines": self.lines}
        given = [name for name, value in parts.items() if value]
        if len(pictures) > 1:
            raise UsageError(f"{' and '.join(pictures)} are {len(pictures)} pictures: give one.")
        if (self.pipeline or self.loops or self.warps) and given:
            raise UsageError(f"{pictures[0]} and {given[0]} do not go together.")
        if self.stage and self.after:
            raise UsageError(
                "--stage and --after do not go together: a pass has its stage, as in --after ttgir:pipeline."
            )
