"""A compile whose options the compiler refuses: a capture of its own, which says what differs and compiles again."""

from __future__ import annotations

import pytest

from irscope.model.capture import Capture
from irscope.store.file import load
from irscope.store.recent import CaptureStore
from tests.cli.product import Run

pytestmark = [pytest.mark.triton, pytest.mark.newest]


def test_options_that_are_refused_tell_captures_apart(product: Capture, irscope: Run) -> None:
    ids: list[str] = []
    for number in ("7", "11"):
        code, out, err = irscope("diff", product.id, "--vs", f"num_warps={number}", "--stat")
        assert code == 1
        assert "num_warps must be a power of 2" in err
        differences = out.partition("\n\n")[0].splitlines()[2:]
        assert [row.split() for row in differences[:2]] == [
            ["status", "ok", "→", "failed"],
            ["num_warps", "4", "→", number],
        ]
        assert "metadata" not in out
        # Nothing is known of the resources: none fell by all that there was.
        resources = out.partition("resources")[2].splitlines()[1:]
        assert resources
        assert all(row.endswith("–") for row in resources)
        assert "instructions" not in out.splitlines()
        assert "passes, ms" not in out
        ids.append(out.splitlines()[1].split()[1])
    assert len({product.id[:8], *ids}) == 3


def test_it_compiles_again(product: Capture, irscope: Run) -> None:
    irscope("diff", product.id, "--vs", "num_warps=7", "--stat")
    store = CaptureStore()
    refused = next(one for one in map(load, store.paths()) if one.status == "failed")
    assert refused.text("source") == product.text("source")
    code, out, _ = irscope("diff", product.id, refused.id, "--exit-code", "--stat")
    assert code == 1
    assert "source  identical" in out
