"""`irscope check` from the command line: what it says, its exit codes, baselines, and what it writes for CI."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.model.capture import Capture
from irscope.store.collection import Collection
from irscope.store.file import load
from tests.cli.json_reference import Reference, check, unseen
from tests.cli.product import KERNELS, SIGNATURE, Run
from tests.conftest import DATA

MATMUL = DATA / "layouts" / "matmul-cuda-80.irscope"
TILE = DATA / "counters" / "tile.irscope"
MASKED = DATA / "counters" / "masked.irscope"


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    folder = tmp_path / "kernels"
    folder.mkdir()
    for one in (TILE, MASKED):
        shutil.copy(one, folder)
    return folder


def changed(folder: Path, **resources: int) -> None:
    """Give the captures of a collection other resources."""
    for path in list(folder.glob("*.irscope")):
        one = load(path)
        path.unlink()
        Collection(folder).add(replace(one, resources=replace(one.resources, **resources)))


def test_exit_codes_and_the_two_forms_of_an_answer(irscope: Run, reference: Reference, tmp_path: Path) -> None:
    code, out, _ = irscope("check", MATMUL, "--uses", "mma", "--pipelined", "--min-width", "tl.load=128,store=64")
    assert (code, out) == (0, "1 capture checked: every assertion holds.\n")
    code, out, _ = irscope("check", MATMUL, "--uses", "wgmma,mma")
    assert code == 1
    assert "broken --uses wgmma" in out
    assert "broken --uses mma" not in out
    code, out, _ = irscope("check", MASKED, TILE, "--no-finding", "narrow-load")
    assert code == 1
    assert "because" in out
    assert "tt.load" in out
    row = check(reference, irscope, "check", "check", MASKED, "--no-finding", "any", "--pipelined", code=1)
    assert row["passed"] is False
    assert row["vacuous"] == ["--pipelined"]
    held = tmp_path / "b.json"
    check(reference, irscope, "check", "check", MASKED, "--baseline", held, "--update")
    check(reference, irscope, "check", "check", MATMUL, "--baseline", held, code=1)
    held.write_text(held.read_text().replace('"findings": [', '"findings": ["IRS000", '))
    row = check(reference, irscope, "check", "check", MASKED, "--baseline", held)
    assert row["better"] == ["masked (cuda:90): findings −IRS000"]
    assert unseen(reference, "`check`") == []
    code, _, err = irscope("check", MATMUL, "--also", "xml")
    assert code == 2
    assert "--also 'xml'" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--uses", "wgmmma"], "Did you mean 'wgmma'"),
        (["--min-width", "tl.load"], "OPERATION=BITS"),
        (["--max-shared", "lots"], "KiB"),
        (["--no-finding", "IRS1"], "is not a finding"),
        (["--golden", "a.ttgir"], "FILE:STAGE"),
        (["--golden", "a.ttgir:ttgr"], "Did you mean 'ttgir'"),
        (["--golden", "nowhere.ttgir:ttgir"], "--update writes it"),
        (["--filecheck", "nowhere.check:ttgir"], "cannot be read"),
        (["--update"], "--golden"),
        (["--tolerance", "registers=4"], "--baseline"),
        (["--baseline", "nowhere.json"], "--update writes it"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(irscope: Run, words: list[str], said: str) -> None:
    if words[0] == "--filecheck":
        pytest.importorskip("triton")
    code, out, err = irscope("check", TILE, *words)
    assert code in (1, 2)
    assert said in err
    assert (out, err.count("\n")) == ("", 1)


def test_a_baseline(irscope: Run, kernels: Path, tmp_path: Path) -> None:
    changed(kernels, registers=100, shared_bytes=1000, spill_store_bytes=0, spill_load_bytes=0)
    held = tmp_path / "b.json"
    code, _, err = irscope("check", kernels, "--baseline", held, "--update")
    assert (code, "2 variants of 2 kernels" in err) == (0, True)
    before = held.read_bytes()
    for _ in range(3):
        assert irscope("check", kernels, "--baseline", held)[:2] == (0, "2 captures checked: every assertion holds.\n")
    irscope("check", kernels, "--baseline", held, "--update")
    assert held.read_bytes() == before

    changed(kernels, registers=108, shared_bytes=500)
    code, out, _ = irscope("check", kernels, "--baseline", held)
    assert code == 1
    assert out.count("registers 100 → 108") == 2
    assert "better tile (cuda:90): shared 1,000 B → 500 B" in out
    assert irscope("check", kernels, "--baseline", held, "--tolerance", "registers=8")[0] == 0
    assert irscope("check", kernels, "--baseline", held, "--tolerance", "registers=7")[0] == 1
    # A tolerance that was written into the file holds from then on.
    irscope("check", kernels, "--baseline", held, "--tolerance", "registers=8", "--update")
    changed(kernels, registers=116)
    assert irscope("check", kernels, "--baseline", held)[0] == 0


def test_kernels_that_are_new_are_named_and_those_that_vanished_fail(
    irscope: Run, kernels: Path, tmp_path: Path
) -> None:
    held = tmp_path / "b.json"
    assert irscope("check", TILE, "--baseline", held, "--update")[0] == 0
    code, out, _ = irscope("check", kernels, "--baseline", held)
    assert code == 0
    assert re.search(r"not in the baseline: masked cuda:90", out)
    irscope("check", f"{kernels}::masked", "--baseline", held, "--update")
    sarif, summary = tmp_path / "c.sarif", tmp_path / "c.md"
    code, out, _ = irscope("check", TILE, "--baseline", held, "--also", sarif, "--also", summary)
    assert code == 1
    gone = "the kernel is in the baseline (1 variant), and is not launched any more"
    assert re.search(r"broken --baseline \S+  masked \(cuda:90\)", out)
    assert gone in out
    assert "1 of the baseline is not launched any more" in out
    assert gone in json.loads(sarif.read_text())["runs"][0]["results"][0]["message"]["text"]
    assert "is not launched any more" in summary.read_text()
    assert "::error title=" in irscope("check", TILE, "--baseline", held, "--also", "github")[1]
    # One part of what the baseline is of keeps the others.
    assert irscope("check", f"{kernels}::tile", "--baseline", held)[0] == 0
    # Nothing of what is checked is in it: that is no success.
    code, out, _ = irscope("check", MATMUL, "--baseline", held)
    assert code == 1
    assert "applies to" in out


def test_a_launch_that_lost_its_alignment_or_has_other_warps_is_worse(
    irscope: Run, kernels: Path, tmp_path: Path
) -> None:
    """A kernel where n is 2047, with other warps, with a variant that vanished, and with one that is new."""

    def relaunched(divisible: bool, num_warps: int, *, more: bool = False, fewer: bool = False) -> Path:
        folder = tmp_path / f"launches-{divisible}-{num_warps}-{more}-{fewer}"
        folder.mkdir()
        one = load(TILE)
        attributes = one.launch.attributes if divisible else ()
        options = tuple((name, num_warps if name == "num_warps" else value) for name, value in one.launch.options)
        launch = replace(one.launch, attributes=attributes, options=options)
        rows = [] if fewer else [replace(one, launch=launch)]
        other = replace(
            one.launch, constants=(("OTHER", "64"),), signature=(*one.launch.signature, ("OTHER", "constexpr"))
        )
        for each in (*rows, replace(one, launch=other), *([one] if more else [])):
            Collection(folder).add(each)
        return folder

    assert load(TILE).launch.attributes
    held = tmp_path / "b.json"
    irscope("check", relaunched(True, 4), "--baseline", held, "--update")
    assert irscope("check", relaunched(True, 4, more=True), "--baseline", held)[0] == 0
    for folder, says in (
        (relaunched(False, 4), "is not divisible by 16 any more"),
        (relaunched(True, 16), "num_warps 4 → 16"),
        (relaunched(True, 4, fewer=True), "it is in the baseline, and is not launched any more:"),
    ):
        code, out, _ = irscope("check", folder, "--baseline", held)
        assert (code, says in out) == (1, True), out
    aligned = tmp_path / "aligned.json"
    irscope("check", relaunched(False, 8), "--baseline", aligned, "--update")
    code, out, _ = irscope("check", relaunched(True, 8), "--baseline", aligned)
    assert code == 0
    assert "is divisible by 16" in out


def test_a_compile_that_fails_breaks_it_unless_it_did_before(irscope: Run, kernels: Path, tmp_path: Path) -> None:
    from irscope.model.capture import Failure

    held = tmp_path / "b.json"
    irscope("check", kernels, "--baseline", held, "--update")
    for path in list(kernels.glob("*tile*.irscope")):
        one = load(path)
        path.unlink()
        failed = replace(one, status="failed", failure=Failure("assembler", "ptxas fatal : no", "cubin"))
        Collection(kernels).add(failed)
    code, out, _ = irscope("check", kernels, "--baseline", held)
    assert code == 1
    assert "it does not compile: ptxas: ptxas fatal" in out
    irscope("check", kernels, "--baseline", held, "--update")
    assert irscope("check", kernels, "--baseline", held)[0] == 0


def test_files_for_ci(irscope: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sarif, markdown = tmp_path / "a.sarif", tmp_path / "a.md"
    words = ["--no-finding", "any", "--also", "github", "--also", sarif, "--also", markdown]
    code, out, _ = irscope("check", MASKED, *words)
    assert code == 1
    assert out.startswith("::error file=")
    assert json.loads(sarif.read_text())["runs"][0]["results"]
    assert markdown.read_text().startswith("### irscope check: failed")


def test_golden_ir(irscope: Run, tmp_path: Path) -> None:
    golden = tmp_path / "tile.ttgir"
    words = ["--golden", f"{golden}:ttgir"]
    assert irscope("check", TILE, *words, "--update")[0] == 0
    assert "loc(" not in golden.read_text()
    assert irscope("check", TILE, *words)[0] == 0
    golden.write_text(re.sub(r"%(\w+)", r"%w_\1", golden.read_text()))
    assert irscope("check", TILE, *words)[0] == 0
    golden.write_text(golden.read_text().replace("arith.addi", "arith.subi", 1))
    code, out, _ = irscope("check", TILE, *words)
    assert code == 1
    assert "arith.subi" in out
    code, _, err = irscope("check", TILE, MASKED, *words)
    assert (code, "one capture" in err) == (2, True)


def test_golden_ir_of_several_variants(irscope: Run, tmp_path: Path) -> None:
    folder = tmp_path / "golden"
    words = [TILE, MASKED, "--golden", f"{folder}/:ttgir"]
    code, _, err = irscope("check", *words)
    assert (code, "--update writes it" in err) == (1, True)
    assert irscope("check", *words, "--update")[0] == 0
    files = sorted(folder.iterdir())
    assert [one.suffix for one in files] == [".ttgir", ".ttgir"]
    assert irscope("check", *words)[:2] == (0, "2 captures checked: every assertion holds.\n")
    # Each is compared with its own file.
    files[0].write_text(files[1].read_text())
    code, out, _ = irscope("check", *words)
    assert code == 1
    assert out.count("broken --golden") == 1
    # The other one alone still has its file.
    assert [irscope("check", one, *words[2:])[0] for one in (TILE, MASKED)].count(0) == 1


@pytest.mark.newest
@pytest.mark.triton
def test_a_kernel_that_is_compiled_for_it(irscope: Run, product: Capture, tmp_path: Path) -> None:
    """The small matmul has three buffers; compiled with one stage its loop waits, with a maximum it spills."""
    patterns = tmp_path / "a.check"
    patterns.write_text("CHECK: tt.func public @tile_product\nCHECK: tt.store\n")
    sound = ["--pipelined", "--no-spills", "--uses", "wgmma", "--filecheck", f"{patterns}:ttgir"]
    assert irscope("check", "last", *sound)[0] == 0
    code, out, _ = irscope("check", "last", "--num-stages", "1", *sound)
    assert code == 1
    assert "broken --pipelined" in out
    assert "num_stages is 1" in out
    assert "thin.py:12" in out
    assert out.count("broken") == 2


@pytest.mark.triton
@pytest.mark.newest
def test_registers_have_the_lines_that_hold_them(irscope: Run) -> None:
    words = [*SIGNATURE, "--target", "cuda:90", "--max-regs", "8"]
    code, out, err = irscope("check", f"{KERNELS}::tile_product", *words)
    assert code == 1, err
    assert re.search(r"uses \d+ registers per thread, 8 are allowed", out)
    assert "because at most" in out
    assert os.path.basename(KERNELS) in out
