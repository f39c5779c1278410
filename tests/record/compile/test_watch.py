"""Passes on the LLVM dialect, which are run without a clone of the module and by default not printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.marks import newest_but
from tests.recording import record_without_sass


@pytest.mark.triton
@pytest.mark.parametrize("target", newest_but(["cuda:90"], "cuda:90", "hip:gfx942"))
def test_what_is_printed_changes_no_artifact(target: str) -> None:
    """The same passes, in the same order, with all texts and with those by default; each with a time."""
    pytest.importorskip("triton", reason="it compiles with Triton")
    file = Path(__file__).parents[1] / "kernels" / "no_torch.py"
    how = {"kernel": "tile_product", "target": target, "signature": "*fp16:16, *fp16:16, *fp32:16, i32:16, 64"}
    some, every = (record_without_sass(file, **how, snapshots=level) for level in ("triton", "all"))
    assert [snapshot.label for snapshot in some.passes()] == [snapshot.label for snapshot in every.passes()]
    # ptxas does not tell the times of its steps.
    assert all(snapshot.duration_us is not None for snapshot in some.passes() if snapshot.stage != "cubin")
    assert [artifact.data for artifact in some.artifacts] == [artifact.data for artifact in every.artifacts]
    ends = [[one.text for one in capture.passes() if one.argument and one.text] for capture in (some, every)]
    assert ends[0][-1] == ends[1][-1]


def test_the_text_before_a_failure_is_found_by_compiling_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded as failed in a stage, with no pass named."""
    from dataclasses import replace

    from irscope.model.capture import Artifact, Capture, Failure, Kernel, Launch, PassSnapshot
    from irscope.record.process import session
    from irscope.target import Target

    ran = PassSnapshot(0, "llir", "to_llvmir", 1, text="module {}", changed=True)
    capture = Capture(
        Launch(Kernel("k", "k.py")),
        Target.parse("cuda:90"),
        artifacts=(Artifact("source", "module {}"),),
        snapshots=(ran,),
        status="failed",
        failure=Failure("abort", "the compiler was ended by SIGABRT.", "llir"),
    )
    failed = PassSnapshot(1, "llir", "cse", 1, outcome="failed")
    exact = replace(capture, snapshots=(ran, failed), failure=Failure("abort", "it died", "llir", failed.label))
    asked = []

    def record_request(request: object, **how: object) -> session.Recording:
        asked.append(request)
        return session.Recording((exact,), None, (), "")

    monkeypatch.setattr(session, "record_request", record_request)
    found = session._with_text_before_failure(capture, 10.0, None)
    assert [request.snapshots for request in asked] == ["all"]
    assert found.failure == exact.failure
    assert found.text_before(failed) == "module {}"
    # A stage without passes, or a failure that names its pass and has the text before it, is left as it is.
    ptxas = replace(capture, failure=Failure("assembler", "ptxas died", "cubin"))
    assert session._with_text_before_failure(ptxas, 10.0, None) is ptxas
    assert session._with_text_before_failure(exact, 10.0, None) is exact
    assert len(asked) == 1
