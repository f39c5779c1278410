"""What of the compiler's log is asked for: what could say more, or find more."""

from __future__ import annotations

import pytest

from irscope.analysis.findings.needs import LogNeeds, log_needs
from irscope.analysis.findings.studied import Studied
from irscope.model.capture import Artifact, Capture, Kernel, Launch
from irscope.target import Target

_PENDING, _ALL = "WARPGROUP.DEPBAR.LE gsb0, 0x1 ;", "WARPGROUP.DEPBAR.LE gsb0, 0x0 ;"


def _capture(**texts: str) -> Capture:
    artifacts = tuple(Artifact(stage, text) for stage, text in texts.items())
    return Capture(Launch(Kernel("kernel", "k.py")), Target.parse("cuda:90"), artifacts=artifacts)


@pytest.mark.parametrize(
    ("ptx_waits", "sass_waits", "asked"),
    [
        ((1, 0), (_PENDING, _ALL), False),
        ((0, 0), (_ALL, _ALL), True),
        ((0,), (_ALL,), False),
        ((1, 0), (_PENDING, _ALL, _ALL), True),
    ],
    ids=("one stays begun", "each is waited for", "one wait for two", "more waits than the PTX has"),
)
def test_ptxas_is_asked_where_its_code_waits_for_all_wgmma(
    ptx_waits: tuple[int, ...], sass_waits: tuple[str, ...], asked: bool
) -> None:
    waits = [f"wgmma.wait_group.sync.aligned {one};" for one in ptx_waits]
    ptx = "\n".join([".entry kernel() {", *["wgmma.mma_async.sync.aligned;"] * 2, *waits, "}"])
    code = [*["HGMMA.64x64x16.F32 R24, R24, gdesc[UR4]"] * 2, *sass_waits]
    rows = [f"        {16 * place:04x}  -  {text.removesuffix(' ;')}" for place, text in enumerate(code)]
    sass = "\n".join([".section .text.kernel", *rows])
    capture = _capture(source="module {\n}\n", ttgir="module {\n}\n", ptx=ptx, sass=sass)
    assert log_needs(Studied(capture), ()) == LogNeeds(assembler=asked)


@pytest.mark.parametrize(("made", "asked"), [("tt.load %p", False), ("tt.trans %l", False), ("math.exp %l", True)])
def test_the_log_of_conversions_is_asked_for_where_more_than_what_was_loaded_is_converted(
    made: str, asked: bool
) -> None:
    kind = "tensor<64x64xf32, #blocked>"
    lines = [
        "#blocked = #ttg.blocked<{order = [1, 0]}>",
        "#blocked1 = #ttg.blocked<{order = [0, 1]}>",
        "module {",
        "  tt.func public @kernel(%p: tensor<64x64x!tt.ptr<f32>, #blocked>) {",
        "    %l = tt.load %p : tensor<64x64x!tt.ptr<f32>, #blocked>",
        f"    %m = {made} : {kind}",
        f"    %c = ttg.convert_layout %m : {kind} -> tensor<64x64xf32, #blocked1>",
        "    tt.return",
        "  }",
        "}",
        "",
    ]
    studied = Studied(_capture(source="module {\n}\n", ttgir="\n".join(lines)))
    (line,) = (one for one, (operation, _) in studied.operations.items() if operation.name == "ttg.convert_layout")
    needs = log_needs(studied, [studied.finding("IRS401", line, "", "", 1, ())])
    assert needs == LogNeeds(("tritongpu-remove-layout-conversions",) if asked else ())
