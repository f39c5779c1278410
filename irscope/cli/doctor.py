"""`irscope doctor`: reports what is installed, which targets work, and how to install what is missing."""

from __future__ import annotations

import sys
from dataclasses import asdict
from functools import partial

from irscope.api.installation import look, try_gpus
from irscope.cli.output import Destination
from irscope.render.text.tables import table
from irscope.store.baseline import save_ceilings


def doctor(interpreter: str = sys.executable, gpu: bool = False, *, to: Destination) -> int:
    """Report what is installed (Triton, targets, GPU, tools), what is missing, and how to install it.

    Options:
        interpreter = --python PATH (default unsaid): Look at the Triton of another interpreter.
        --gpu: Compile, launch and check a kernel on each GPU, and measure what it reaches, for roofline.
    """

    findings, measured = try_gpus(interpreter) if gpu else (look(interpreter), ())
    if measured:
        save_ceilings(measured)
    rows = [[row.state, row.component, row.detail, row.fix] for row in findings]
    to.emit(lambda: [*map(asdict, findings)], partial(table, ["", "component", "detail", "fix"], rows))
    return int(any(finding.state == "missing" for finding in findings))
