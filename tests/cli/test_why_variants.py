"""`irscope why --variants`: what it prints, what it compiles to prove a merge, and the warm-up list."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from irscope.model.capture import Capture
from irscope.store.file import load, save
from irscope.store.recent import CaptureStore
from tests.cli.json_reference import Reference, check
from tests.cli.product import ROOT, Run

FLASH = ROOT / "tests" / "data" / "layouts" / "flash_attention-cuda-90.irscope"


def specialised(folder: Path, one: Capture) -> Path:
    """A collection of a capture and two that were specialised on other things."""
    launch = one.launch
    name = next(name for name, kind in launch.signature if kind.startswith("*"))
    attributes = tuple(row for row in launch.attributes if row[0] != name)
    warps = tuple((key, 16 if key == "num_warps" else value) for key, value in launch.options)
    folder.mkdir()
    for number, other in enumerate(
        (
            one,
            one.with_(launch=replace(launch, attributes=attributes)),
            one.with_(launch=replace(launch, options=warps)),
        )
    ):
        save(other, folder / f"{number}.irscope")
    return folder


def test_what_is_printed_of_captures_of_elsewhere(irscope: Run, reference: Reference, tmp_path: Path) -> None:
    one = load(FLASH)
    kernels = specialised(tmp_path / "kernels", one)
    name = next(name for name, kind in one.launch.signature if kind.startswith("*"))
    code, out, _ = irscope("why", "--variants", kernels)
    assert code == 0
    assert out.splitlines()[0].endswith("cuda:90: 3 variants, 2 different codes")
    assert f"  {name}: aligned to 16 bytes" in out
    assert f'    @triton.jit(do_not_specialize_on_alignment=["{name}"]): 2 variants remain' in out
    assert "of 1 pair that differ in nothing else, 1 the same machine code" in out
    assert "compiled so" not in out
    (site,) = check(reference, irscope, "why --variants", "why", "--variants", kernels, "--tries", "0")
    assert [cause["name"] for cause in site["causes"]] == [name, "num_warps"]
    assert [len(site["variants"]), site["remaining"]] == [3, 2]
    assert {row["code"] for row in site["variants"]} == {"A", "B"}


def test_one_variant(irscope: Run) -> None:
    code, out, _ = irscope("why", "--variants", FLASH)
    assert (code, out) == (0, "Compiled once: attention_kernel\n")
    code, out, _ = irscope("why", "--variants", FLASH, "--all")
    assert out.splitlines()[0].endswith("cuda:90: 1 variant")


def test_the_warm_up_list_is_python(irscope: Run, tmp_path: Path) -> None:
    kernels = specialised(tmp_path / "kernels", load(FLASH))
    code, out, _ = irscope("why", "--variants", kernels, "--warmup")
    assert code == 0
    compile(out, "warm.py", "exec")
    calls = [line for line in out.splitlines() if ".warmup(" in line]
    assert len(calls) == 3
    assert sum("Unaligned(" in line for line in calls) == 1
    assert sum("num_warps=16" in line for line in calls) == 1
    assert irscope("why", "--variants", kernels, "--warmup", "--json")[0] == 2


@pytest.mark.triton
@pytest.mark.newest
def test_a_merge_is_compiled(irscope: Run, reference: Reference, tmp_path: Path) -> None:
    """A planted kernel whose stores are narrower without its alignment: as a signature without it says."""
    planted = ROOT / "tests" / "analysis" / "variants" / "planted.py"
    kernels = tmp_path / "kernels"
    for signature in ("*fp32:16", "*fp32"):
        assert irscope("record", f"{planted}::unaligned", "--signature", signature, "-o", kernels)[0] == 0
    flash = specialised(tmp_path / "flash", load(FLASH))
    check(reference, irscope, "why --variants", "why", "--variants", flash, "--tries", "0")
    (site,) = check(reference, irscope, "why --variants", "why", "--variants", kernels)
    by_id = {row["id"]: row["states"]["x"] for row in site["variants"]}
    (cause,) = site["causes"]
    assert (cause["merge"], cause["remaining"]) == ("do_not_specialize_on_alignment", 1)
    proofs = {by_id[proof["id"]]: proof for proof in cause["proofs"]}
    assert proofs["*fp32 unaligned"]["same_code"]
    assert "1 → 0 st.global.128" in proofs["*fp32"]["effects"]
    assert "0 → 4 st.global.32" in proofs["*fp32"]["effects"]
    store = CaptureStore()
    assert len(store.paths()) == 2
    code, out, _ = irscope("why", "--variants", kernels)
    assert code == 0
    assert (
        f"    compiled with this change: the same machine code as {next(k for k, v in by_id.items() if 'un' in v)[:8]}"
        in out
    )


@pytest.mark.exhaustive
@pytest.mark.triton
@pytest.mark.newest
def test_whether_a_constant_may_be_an_argument_is_compiled(irscope: Run, tmp_path: Path) -> None:
    planted = ROOT / "tests" / "analysis" / "variants" / "planted.py"
    kernels = tmp_path / "kernels"
    for name, constant, values in (("plain_argument", "N", (100, 101)), ("block", "BLOCK", (64, 128))):
        for value in values:
            words = ("--signature", "*fp32:16", "--constexpr", f"{constant}={value}")
            assert irscope("record", f"{planted}::{name}", *words, "-o", kernels)[0] == 0
    out = irscope("why", "--variants", kernels, "--tries", "0")[1]
    assert out.count("whether it can be a plain argument, --tries all compiles") == 2
    code, out, _ = irscope("why", "--variants", kernels)
    assert code == 0
    blocks = {text.split()[0]: text for text in out.split("\n\n")}
    plain, block = blocks["plain_argument"], blocks["block"]
    assert 'drop tl.constexpr, with @triton.jit(do_not_specialize=["N"]): 1 variant remains' in plain
    assert "compiled with this change, compared with" in plain
    assert "cannot be a plain argument, and each value needs a variant of its own" in block
    assert block.count("compiled as an argument: ") == 1
