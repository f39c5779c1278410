"""Makes a recording process that compiles nothing: it tells of captures with large texts, as a real one does."""

from __future__ import annotations

import sys
from pathlib import Path

_PYTHON = sys.executable
"""Of the tests, also where they make a recording use another."""

_CHILD = """#!{python}
import json, os, shutil, sys
sys.path.insert(0, {root!r})
from dataclasses import replace
from irscope.model.capture import Environment, Kernel, Launch, PassSnapshot, Target
from irscope.record.process.messages import MessageReader, MessageWriter
from irscope.record.process.events import *
from irscope.record.process.requests import RecordRequest

descriptor = int(next(word for word in sys.argv if word.isdigit()))
reader, requests = MessageReader(), []
while not requests:
    requests += reader.feed(os.read(descriptor, 1 << 20))
request = requests[0]
# It is no fork server.
assert isinstance(request, RecordRequest)
count, size = {count}, {size}
tell = MessageWriter(descriptor)
versions = dict.fromkeys(("irscope_version", "triton_version", "torch_version", "python_version", "platform"), "1")
tell(Begun(Environment(**versions)))
for n in range(count):
    tell(CompileBegun(n, Target.parse("cuda:90"), Launch(Kernel(f"kernel{{n}}", {script!r}, 1, "", 1))))
    line = f"  %{{n}} = arith.constant {{n}} : i32\\n"
    tell(ArtifactMade(n, "source", f"// {{n}}\\n"))
    step = PassSnapshot(0, "ttir", "inliner", 1)
    tell(PassBegun(n, step))
    tell(PassEnded(n, replace(step, changed=True, duration_us=1, text=line * (size // len(line)))))
    # No TTGIR: nobody here answers what its layouts are.
    tell(ArtifactMade(n, "ttir", f"// ttir {{n}}\\n"))
    if {disassemble}:
        tell(ArtifactMade(n, "cubin", b"no binary"))
    tell(CompileEnded(n, str(n), {{}}, ""))
    tell(Launched(str(n), (n + 1, 1, 1)))
    if {disassemble}:
        {before_sass}
        # There is no disassembler.
        tell(StageLeftOut(n, "sass"))
    {between}
{late}
tell(ScriptEnd())
tell(Done())
"""


def telling_child(
    folder: Path,
    count: int,
    size: int = 0,
    *,
    between: str = "",
    late: str = "",
    disassemble: bool = False,
    before_sass: str = "",
) -> str:
    """An interpreter's path, for a recording.

    Args:
        folder: where it is written.
        count: how many captures it tells of, `kernel0` and so on, with grids of 1, 2, …
        size: bytes of the text of each one's pass.
        between: Python that runs after each, with its number as `n`.
        late: Python that runs after the last.
        disassemble: whether each has a cubin whose disassembly fails.
        before_sass: Python that runs before that is told.
    """
    path = folder / "telling_child"
    script = folder / "script.py"
    script.write_text("pass\n")
    root = str(Path(__file__).parents[2])
    path.write_text(
        _CHILD.format(
            python=_PYTHON,
            root=root,
            script=str(script),
            count=count,
            size=size,
            between=between,
            late=late,
            disassemble=disassemble,
            before_sass=before_sass,
        )
    )
    path.chmod(0o755)
    return str(path)
