"""The Python text of a kernel as a case of a reduction, and the request to compile one from its signature."""

from __future__ import annotations

import ast
import hashlib
import re
from pathlib import Path
from typing import Any

from irscope.analysis.reduce.python import PythonCase
from irscope.errors import RecordingError
from irscope.model.capture import Capture, Launch
from irscope.model.recording_options import RecordingOptions
from irscope.record.process.requests import RecordRequest
from irscope.render.reproduction.needed import needed_source
from irscope.render.reproduction.program import pieces_text

_BACKENDS_OWN = ("arch", "backend_name", "warp_size", "extern_libs", "ir_override")
# tt.divisibility=16
_DIVISIBLE = re.compile(r"\btt\.divisibility=16\b")


def python_case(capture: Capture) -> PythonCase:
    """The text that a capture's kernel needs, with its parameters; raises RecordingError where there is none."""
    launch = capture.launch
    needed = needed_source(capture)
    # A name that is missing may be what the front end fails for.
    if needed.obstacles or not launch.kernel.source:
        lost = "; ".join(needed.obstacles) or "the capture has none"
        raise RecordingError(f"no Python text of {capture.name} can be made: {lost}.")
    nested = [name for name, kind in launch.signature if kind.startswith("(")]
    constants, attributes = dict(launch.constants), dict(launch.attributes)
    nested += [name for name, text in constants.items() if not _is_literal(text)]
    if nested:
        raise RecordingError(
            f"--python takes kernels whose parameters are numbers, pointers and plain constants, and {capture.name} "
            f"has {', '.join(nested)}."
        )
    rows: list[tuple[str, str, bool]] = []
    for name, kind in launch.signature:
        if name in constants or kind == "constexpr":
            rows.append((name, constants.get(name, "None"), True))
        else:
            rows.append((name, f"{kind}:16" if _DIVISIBLE.search(attributes.get(name, "")) else kind, False))
    text = "\n".join([*needed.imports, pieces_text(needed)])
    return PythonCase(ast.unparse(ast.parse(text)) + "\n", tuple(rows))


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return True


def python_request(capture: Capture, case: PythonCase, folder: Path) -> RecordRequest:
    """The request that `irscope dump FILE::KERNEL --signature … --constexpr …` makes of a file with a kernel's text."""
    own = folder / hashlib.sha256(case.text.encode()).hexdigest()[:16]
    own.mkdir(exist_ok=True)
    file = own / f"{capture.name}.py"
    file.write_text(case.text, "utf-8")
    asked = RecordingOptions(
        plan=capture.plan,
        snapshots="none",
        disassemble=False,
        targets=(str(capture.target),),
        signature=case.signature,
        constexprs=case.constants,
        options=chosen_options(capture.launch),
    )
    return RecordRequest.of_options(asked, mode="signature", path=str(file), kernel=capture.name)


def chosen_options(launch: Launch) -> tuple[tuple[str, Any], ...]:
    """The options of a launch that a command line can give: those that its script set, if that is known."""
    chosen = launch.set_options if launch.set_options is not None else launch.options
    return tuple(
        (name, value)
        for name, value in chosen
        if name not in _BACKENDS_OWN and isinstance(value, (bool, int, float, str))
    )
