"""docs/json.md against what every command prints with `--json`."""

from __future__ import annotations

import json
import lzma
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from irscope.analysis.findings.model import Cause, FixChange, Proof, Suggestion
from irscope.analysis.findings.model import Finding as KernelFinding
from irscope.analysis.passes import growth
from irscope.api import compile_time
from irscope.cli.commands import COMMANDS
from irscope.cli.output import JSON_VERSION
from irscope.device.measurement import Agreement, Ratio
from irscope.model.capture import (
    Artifact,
    Autotuning,
    Capture,
    Environment,
    Failure,
    Kernel,
    Launch,
    PassSnapshot,
    Resources,
)
from irscope.model.evidence import Ceilings, CompilerLog, CompileTimes, GraphCall, GraphNode, GraphOrigin, TimeSpan
from irscope.model.launch_record import Assumption, Decision
from irscope.record.gpu import sanitized
from irscope.record.gpu import session as gpu_session
from irscope.record.gpu.sanitized import SanitizerReport, SanitizerRun
from irscope.record.layouts import questions as layout_questions
from irscope.record.layouts import verify as layout_check
from irscope.record.process.events import ScriptEnd
from irscope.record.process.requests import RecordRequest
from irscope.store.baseline import save_ceilings
from irscope.store.file import load, save
from irscope.store.recent import CaptureStore
from irscope.target import Target
from tests.analysis.in_flight.launched import matmul
from tests.analysis.in_flight.partitioned import partitioned
from tests.analysis.movie.staged import staged
from tests.analysis.recorded import stored
from tests.analysis.roofline.launched import attention
from tests.analysis.trails import eventful
from tests.cli.json_reference import OF_A_RECORDING, RICH, Reference, check, unseen
from tests.cli.product import ROOT, Run
from tests.ir.logs.test_cache import variant
from tests.memory.cases import too_large
from tests.record.reasons import DATA as REASONS
from tests.record.reasons import stored_logs

HATCHET = Path(__file__).parents[1] / "data" / "proton" / "matmul.hatchet"
DATA = ROOT / "tests" / "data"
FLASH = DATA / "layouts" / "flash_attention-cuda-90.irscope"
MATMUL = DATA / "layouts" / "matmul-cuda-80.irscope"
MATMUL_AMD = DATA / "layouts" / "matmul-hip-gfx942.irscope"
FAKE = ROOT / "tests" / "record" / "device" / "fake_child.py"
SCRIPT = ROOT / "tests" / "gpu" / "scripts" / "row_sum.py"

TTIR = """module {
  tt.func public @kernel(%x: !tt.ptr<f32>) {
    %a = arith.constant dense<0.0> : tensor<16x16xf16>
    %c = arith.constant dense<0.0> : tensor<16x16xf32>
    %d = tt.dot %a, %a, %c : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    tt.return
  }
}
"""

GRAPH = GraphOrigin(
    "0", "forward", 1, 2, 1, "pointwise", ("relu",), ("aten.relu",),
    (GraphNode("relu", "aten.relu.default", "a.py", 3, "forward", "relu(x)"),),
    (GraphCall("extern_kernels.mm", ("aten.mm",), 2),),
)  # fmt: skip


def rich_capture(tmp_path: Path) -> Path:
    """A stored capture with everything that a capture can have."""
    capture = load(FLASH)
    capture = replace(
        capture,
        launch=replace(
            capture.launch,
            grid=(4, 2, 1),
            autotuning=Autotuning(1, 4, "BLOCK: 64, num_warps: 4", True, 0.25, 3, ("BLOCK: 64",)),
            assumptions=(Assumption("n", "0", "a.py", 3, "n.item()", True, (Decision("grid", "grid", "a.py:9"),)),),
        ),
        resources=Resources(*range(13)),
        status="failed",
        failure=Failure("fit", "too much shared memory", "cubin", "cubin:ptxas#1", "ptxas info"),
        environment=Environment(
            tools=(("ptxas", "12.9"),),
            parts=(("ptxas", "0a"),),
            variables=(("TRITON_F32", "1"),),
            origin=(("test", "test_add.py::test_add[1]"), ("process", "python add.py (4711)")),
        ),
        notes=("a note",),
        graphs=(GRAPH,),
        artifacts=(*(replace(one, duration_us=7, processor_us=6) for one in capture.artifacts),),
        compile_us=9,
    )
    path = tmp_path / "rich.irscope"
    save(capture, path)
    return path


def _captures(reference: Reference, irscope: Run, tmp_path: Path) -> None:
    rich = rich_capture(tmp_path)
    (row,) = check(reference, irscope, "show", "show", rich, "--stage", "all")
    assert "text" in row["stages"][0]
    check(reference, irscope, "dump", "dump", MATMUL_AMD)
    assert irscope("show", rich, "-o", tmp_path / "out")[0] == 0
    (file,) = (tmp_path / "out").glob("*.json")
    written = json.loads(file.read_text())
    assert written.pop("irscope_json") == JSON_VERSION
    assert list(reference.misfits(written, "[capture](#capture)")) == []


def _import_and_lists(reference: Reference, irscope: Run, tmp_path: Path) -> None:
    log = tmp_path / "mlir.log"
    log.write_bytes(lzma.decompress((DATA / "dumps" / "3.9.0.cuda90.mlir.xz").read_bytes()))
    check(reference, irscope, "import", "import", log)
    CaptureStore().add(load(rich_capture(tmp_path)))
    assert check(reference, irscope, "ls", "ls")
    assert check(
        reference, irscope, "record -o", "record", rich_capture(tmp_path), "-o", tmp_path / "collected", code=1
    )
    variant(tmp_path / "cache", "abc")
    assert check(reference, irscope, "ls --cache", "ls", "--cache-dir", tmp_path / "cache")


def _passes_and_their_graphs(reference: Reference, irscope: Run, tmp_path: Path) -> None:
    log = tmp_path / "mlir.log"
    log.write_bytes(lzma.decompress((DATA / "dumps" / "3.9.0.cuda90.mlir.xz").read_bytes()))
    made = tmp_path / "dot.irscope"
    assert irscope("import", log, "--kernel", "dot", "-o", made)[0] == 0
    capture = load(sorted(tmp_path.glob("dot*.irscope"))[0])
    rows = (PassSnapshot(0, "llir", "licm", 1, group="llvm", scope="kernel", duration_us=3),)
    save(replace(capture, snapshots=(*(replace(one, duration_us=5) for one in capture.snapshots), *rows)), made)
    (table,) = check(reference, irscope, "passes", "passes", made)
    assert any(row["by_operation"] for row in table["passes"])
    spans = (TimeSpan("dot", "compile", 0, 9_000, 0), TimeSpan("ttir", "stage", 1_000, 5_000, 1))
    timed = save(replace(capture, times=CompileTimes(spans, notes=("a note",))), tmp_path / "timed.irscope")
    check(reference, irscope, "passes --time", "passes", timed, "--time")
    _log(reference, irscope, made)
    lives = tmp_path / "lives.irscope"
    save(eventful(), lives)
    check(reference, irscope, "passes --op", "passes", lives, "--op", "convert_layout", "--at", "p1", "--diff")
    check(reference, irscope, "passes --op", "passes", lives, "--op", "load", "--line", "7", "--at", "p1")
    for value, place in (("%1", "p1"), ("%2", "p2")):
        check(reference, irscope, "passes --value", "passes", lives, "--value", value, "--at", place, "--diff")
    check(reference, irscope, "draw passes", "draw", "passes", made)
    label = next(row["plan_name"] for row in table["passes"] if row["changed"])
    check(reference, irscope, "diff --pass", "diff", made, "--pass", label)
    for arch in ("80", "90"):
        log.write_bytes(lzma.decompress((DATA / "diff" / f"matmul.cuda{arch}.4warps.dump.xz").read_bytes()))
        assert irscope("import", log, "-o", tmp_path / f"{arch}.irscope")[0] == 0
    check(reference, irscope, "draw loop", "draw", "loop", tmp_path / "90.irscope")
    drawn = {"matmul": matmul("matmul-hip-gfx942", 1024), "attention": attention(), "add": partitioned("gluon_add")}
    for name, capture in drawn.items():
        save(capture, tmp_path / f"{name}.irscope")
        check(reference, irscope, "draw poster", "draw", "poster", tmp_path / f"{name}.irscope")
    save(staged("softmax.cuda90"), tmp_path / "softmax.irscope")
    check(reference, irscope, "draw movie", "draw", "movie", tmp_path / "softmax.irscope")
    check(reference, irscope, "draw movie", "draw", "movie", lives)
    check(reference, irscope, "diff", "diff", made, made)
    check(reference, irscope, "diff", "diff", tmp_path / "80.irscope", tmp_path / "90.irscope")


def _log(reference: Reference, irscope: Run, made: Path) -> None:
    capture = load(made)
    by_stage = {snapshot.stage: snapshot.index for snapshot in capture.passes()}
    kept = stored_logs(REASONS / "3.9.0.cuda90.xz")
    logs = {item.stage: item for name in ("product", "serialised") for item in kept[name]}
    # As a compiler prints: every line ends.
    rows = [
        replace(item, text=item.text.rstrip("\n") + "\n", index=by_stage.get(item.stage), lines_left_out=2)
        for item in logs.values()
    ]
    save(replace(capture, log=CompilerLog(tuple(rows), ("ptx",))), made)
    (table,) = check(reference, irscope, "passes", "passes", made, "--log")
    assert {"ttgir", "llir", "cubin"} <= {row["stage"] for row in table["log"]}
    assert any(row["decisions"] for row in table["log"])
    # Lines are counted once, and none is missing.
    for row, item in zip(table["log"], rows, strict=True):
        assert sum(entry["lines"] for entry in row["entries"]) == item.text.count("\n")
    code, text, _ = irscope("passes", made, "--log", "--stage", "llir")
    assert code == 0
    assert "axis-info" in text
    assert "more lines were not kept" in text


def _comparisons(reference: Reference, irscope: Run, tmp_path: Path) -> None:
    check(reference, irscope, "diff", "diff", MATMUL, MATMUL_AMD, "--stage", "all")
    check(reference, irscope, "diff", "diff", MATMUL, rich_capture(tmp_path), code=1)
    sides: list[Path] = []
    for warps in ("4warps", "8warps"):
        sides.append(tmp_path / f"softmax{warps}.sass")
        sides[-1].write_bytes(lzma.decompress((DATA / "diff" / f"softmax.cuda90.{warps}.sass.xz").read_bytes()))
    texts = (tmp_path / "one.ttgir", tmp_path / "other.ttgir")
    for text in texts:
        text.write_text(f"1 ;\n2 ;\n{len(text.name)} ;\n")
    (found,) = check(reference, irscope, "diff", "diff", *texts)
    assert found["diffs"]["ttgir"]["fallback"]
    (found,) = check(reference, irscope, "diff", "diff", *sides, "--schedule", "--stage", "sass")
    assert found["schedule"]["changes"]


def with_other_layouts(tmp_path: Path) -> Path:
    """A capture with a layout that the compiler gave no answer for, and one with a note and padding."""
    path = tmp_path / "layouts.irscope"
    with zipfile.ZipFile(FLASH) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "capture.json":
                manifest = json.loads(data)
                first, *others = manifest["layouts"]
                shared = next(row for row in others if row["space"] == "shared")
                shared |= {"note": "a note", "padding": [[512, 16]]}
                del first["bases"], first["out_dims"]
                manifest["layouts"] = [*others, first | {"reason": "no answer"}]
                data = json.dumps(manifest).encode()
            new.writestr(name, data)
    return path


def _layouts(reference: Reference, irscope: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for capture in (FLASH, MATMUL, MATMUL_AMD, with_other_layouts(tmp_path)):
        check(reference, irscope, "layout", "layout", capture)
        check(reference, irscope, "layout --costs", "layout", capture, "--costs")
    assert all("map" in row for row in check(reference, irscope, "layout", "layout", FLASH, "-l", "#mma"))
    monkeypatch.setattr(layout_questions, "bank_conflicts", lambda pairs, *_: (1,) * len(pairs))
    for pair in (("#mma1", "#blocked@128x64"), ("#blocked@128x64", "#shared"), ("#shared", "#shared")):
        rows = check(reference, irscope, "layout", "layout", FLASH, "-l", pair[0], "--compare", pair[1])
        assert [row["comparison"]["with"] for row in rows] == [name.partition("@")[0] for name in pair[::-1]]
    verified = [
        layout_check.Verified("#mma", (16, 16), 256, (((0, 1), "lane 0", "lane 1"),)),
        layout_check.Verified("#tmem", (128,), 0),
    ]
    monkeypatch.setattr(layout_check, "verify_layouts", lambda found: verified)
    check(reference, irscope, "layout --verify", "layout", FLASH, "--verify", code=1)
    save(too_large(), large := tmp_path / "large.irscope")
    resources = Resources(shared_bytes=65536, tensor_memory_columns=64)
    tried = [("num_stages=2", replace(too_large(), resources=resources))]
    monkeypatch.setattr("irscope.api.explain.smaller", lambda *_: tried)
    check(reference, irscope, "layout --memory", "layout", large, "--memory", code=1)


def _reasons(reference: Reference, irscope: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """`why`, of a finding that has everything."""
    change = (FixChange("option", "num_warps", 8),)
    measured = Agreement("identical"), Ratio(0.9, 0.8, 0.95)
    proof = Proof(False, ("16 → 128 bits",), "it does not fit", *measured, "not timed: n is 7", 1e-6)
    one = KernelFinding(
        "IRS101", "tt.load", 7, ("%x",), (), (("a.py", 3),), "narrow", "3 more", 3,
        (Cause("n is 7", "launch", "the arguments"),), (Suggestion("num_warps=8", change, proof),),
        seconds=1e-6, share=0.1,
    )  # fmt: skip
    monkeypatch.setattr("irscope.api.explain.findings_of", lambda capture: (one,))
    check(reference, irscope, "why", "why", FLASH, "--tries", "0")
    _long_compiles(reference, irscope, monkeypatch)


def _long_compiles(reference: Reference, irscope: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    cause = growth.Factor("tile", 64.0, "a tile", ("a.py", 3))
    line = growth.LineGrowth("a.py", 3, 2, "llir", 100, 0.5, (cause,))
    cost = growth.CompileCost(7, 100, "llir")
    fix = growth.CompileFix(cause, line, "num_warps=8", cost, cost, "it fails")
    slow = growth.SlowPass("llvm:licm", 7, 0.6, "-llvm:licm", cost, cost, "it fails")
    grown = growth.Growth((growth.StageSize("ttir", 3, 7),), (growth.PassGrowth("ttir:cse#1", 1, 2),), (line,))
    monkeypatch.setattr(compile_time, "long_compile", lambda *_, **__: growth.LongCompile(grown, slow, (fix,)))
    check(reference, irscope, "why --compile-time", "why", FLASH, "--compile-time")


def _graphs_and_source(reference: Reference, irscope: Run, tmp_path: Path) -> None:
    check(reference, irscope, "draw dataflow", "draw", "dataflow", FLASH)
    check(reference, irscope, "draw control-flow", "draw", "control-flow", FLASH, "--stage", "llir")
    check(reference, irscope, "draw control-flow", "draw", "control-flow", FLASH, "--stage", "ptx")
    check(reference, irscope, "source", "source", FLASH, "--stage", "ptx")
    check(reference, irscope, "source", "source", MATMUL_AMD, "--annotate", "all")
    specialised = Artifact("ttgir", (DATA / "warps" / "ws_matmul.ttgir").read_text())
    launch = Launch(Kernel("ws_matmul"))
    warps = save(Capture(launch, Target("cuda", "100", 32), artifacts=(specialised,)), tmp_path / "warps.irscope")
    check(reference, irscope, "dump", "show", warps)
    check(reference, irscope, "draw warps", "draw", "warps", warps)
    profiled = DATA / "counters" / "softmax_kernel.irscope"
    check(reference, irscope, "dump", "show", profiled, "--stage", "sass", "--annotate", "all")
    chains = tmp_path / "chains.irscope"
    save(stored("chains", "cuda:90"), chains)
    check(reference, irscope, "draw control-flow", "draw", "control-flow", chains, "--stage", "ptx")


def _profiles(reference: Reference, irscope: Run) -> None:
    (known,) = check(reference, irscope, "profile", "profile", DATA / "counters" / "strided.irscope")
    assert known["predicted_executed"] == known["counters"]["executed"]
    (unknown,) = check(reference, irscope, "profile", "profile", DATA / "counters" / "column.irscope")
    assert unknown["predicted_executed"] is None


def _doctor(reference: Reference, irscope: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irscope.cli.doctor.look", partial(_findings, "ok"))
    check(reference, irscope, "doctor", "doctor")
    monkeypatch.setattr("irscope.cli.doctor.try_gpus", lambda interpreter: (_findings("missing", interpreter), []))
    check(reference, irscope, "doctor --gpu", "doctor", "--gpu", code=1)


def _findings(state: str, interpreter: str) -> list[Any]:
    from irscope.api.installation import Installed

    return [Installed("GPU", state, interpreter, "a remedy")]


def _verdicts(reference: Reference, irscope: Run, tmp_path: Path) -> None:
    path = tmp_path / "launched.irscope"
    save(attention(without="nk"), path)
    (found,) = check(reference, irscope, "verify", "verify", path)
    assert found["answer"] == "not decided"
    save(attention(stretched=2), path)
    (found,) = check(reference, irscope, "verify", "verify", path, code=1)
    assert found["violations"][0]["code"] == "IRS901"
    (proof,) = check(reference, irscope, "verify --for-all-arguments", "verify", path, "--for-all-arguments")
    assert proof["answer"] == "not decided"
    _meanings(reference, irscope, path)


def _meanings(reference: Reference, irscope: Run, path: Path) -> None:
    capture = attention()
    text = capture.text("ttgir")
    unknown, wrong = (text.replace("arith.mulf", f"arith.{other}") for other in ("unheard_of", "addf"))

    def verified(*texts: str, code: int = 0, only_launched: bool = True) -> Any:
        snapshots = [PassSnapshot(at, "ttgir", "cse", at + 1, text=own) for at, own in enumerate(texts)]
        launch = capture.launch if only_launched else replace(capture.launch, record=None)
        save(replace(capture, snapshots=tuple(snapshots), launch=launch), path)
        (found,) = check(reference, irscope, "verify --passes", "verify", path, "--passes", code=code)
        return found

    assert verified(text + "\n")["answer"] == "same"
    changed = verified(unknown, wrong, code=1)
    assert changed["first_changed"] == "ttgir:cse#2"
    assert changed["passes"][1]["since"] == "ttgir"
    assert "without a launch" in verified(text, only_launched=False)["reason"]
    (bits,) = check(reference, irscope, "verify --bits", "verify", path, path, "--bits")
    assert bits["answer"] == "not decided"


def _roofline(reference: Reference, irscope: Run, tmp_path: Path) -> None:
    path = tmp_path / "launched.irscope"
    save(attention(), path)
    (found,) = check(reference, irscope, "time --roofline", "time", "--roofline", path)
    assert found["measured"] is None
    save_ceilings([Ceilings("NVIDIA H100 PCIe", "cuda:90", 1.8e12, (("float16", 6e14),), "2026-01-01")])
    (found,) = check(reference, irscope, "time --roofline", "time", "--roofline", path)
    assert found["part"]["name"] == "h100-pcie"
    assert found["units"][0]["measured_flops_per_s"] == 6e14
    save(attention(without="nk"), path)
    (found,) = check(reference, irscope, "time --roofline", "time", "--roofline", path)
    assert found["units"][0]["flops"]["most"] is None
    assert any("nk has no value" in note for note in found["notes"])


def _predictions(reference: Reference, irscope: Run) -> None:
    folder = DATA / "counters"
    for name in ("shared_columns", "liger_cross_entropy_kernel", "matmul_naive_kernel"):
        (found,) = check(reference, irscope, "time", "time", next(folder.rglob(f"{name}.irscope")))
        assert found["interval_s"][0] < found["seconds"] < found["interval_s"][1]
    assert found["measured"] is None
    path = next(folder.rglob("matmul_naive_kernel.irscope"))
    (found,) = check(reference, irscope, "time", "time", path, "--proton", HATCHET)
    assert (found["measured"]["launches"], len(found["measured"]["lines"])) == (10, 2)
    found = check(reference, irscope, "tune", "tune", next(folder.rglob("matmul_naive_kernel.irscope")))
    assert found["configs"][0]["triton"].startswith("triton.Config(")


def _on_a_gpu(reference: Reference, irscope: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`run` and `bench`, with a child process that stands in for the one that launches."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE}" "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("FAKE_STARTS", str(tmp_path / "starts"))
    check_script, device_session = gpu_session.check_script_on_device, gpu_session.device_session

    def checked(request: RecordRequest, **options: Any) -> gpu_session.ScriptCheck:
        found = check_script(replace(request, interpreter=str(python)), **options)
        return replace(found, launches=tuple(replace(row, agreement=RICH) for row in found.launches))

    monkeypatch.setattr(gpu_session, "check_script_on_device", checked)
    check(reference, irscope, "run", "run", SCRIPT)
    monkeypatch.setenv("FAKE_SCENARIO", "script-fails")
    check(reference, irscope, "run", "run", SCRIPT, code=1)
    monkeypatch.setenv("FAKE_SCENARIO", "killed")
    check(reference, irscope, "run", "run", SCRIPT, code=1)
    monkeypatch.delenv("FAKE_SCENARIO")
    report = SanitizerReport("Read after write race detected", "a.py:3", (1, 0, 0), (0, 0, 0), 32)
    ran = SanitizerRun(
        "global",
        (Capture(Launch(Kernel("k")), Target.parse("cuda:90")),),
        (report,),
        ScriptEnd(1, "it exited with code 1"),
    )
    monkeypatch.setattr(sanitized, "sanitize_script", lambda *_, **__: ran)
    check(reference, irscope, "run --sanitize", "run", SCRIPT, "--sanitize", "global", code=1)

    @contextmanager
    def session(request: RecordRequest, *arguments: Any, **options: Any) -> Iterator[gpu_session.DeviceSession]:
        with device_session(replace(request, interpreter=str(python)), *arguments, **options) as held:
            monkeypatch.setattr(held, "check", lambda capture: RICH)
            slow = replace(held.baseline.artifacts[-1], data=b"slow")
            save(replace(held.baseline, artifacts=(*held.baseline.artifacts[:-1], slow)), tmp_path / "slow.irscope")
            ttir = Artifact("ttir", TTIR)
            held._info = replace(held.info, noise="atomics")
            held._baseline = replace(held.baseline, artifacts=(ttir, *held.baseline.artifacts))
            yield held

    with session(RecordRequest(mode="script", path=str(SCRIPT)), 1):
        pass
    monkeypatch.setattr(gpu_session, "device_session", session)
    # The GPU that is stood in for is no known part.
    monkeypatch.setattr("irscope.api.timing.predicted_for", lambda *_: SimpleNamespace(seconds=12e-6))
    vs = ("--vs", tmp_path / "slow.irscope", "--flops", 1000)
    check(reference, irscope, "bench", "bench", SCRIPT, *vs, "--rounds", 8)
    # The page is written after the session: what it shows of the launch was asked for before.
    started = len((tmp_path / "starts").read_text().splitlines())
    code, _, said = irscope("bench", SCRIPT, *vs, "--rounds", 8, "-o", tmp_path / "page.html")
    assert code == 0, said
    assert 'data-opened="tab=results"' in (tmp_path / "page.html").read_text("utf-8")
    assert len((tmp_path / "starts").read_text().splitlines()) == started + 1


def test_each_command_has_a_row(reference: Reference) -> None:
    named = {word.split()[0] for names in reference.commands for word in names.replace("`", "").split(", ")}
    assert named | {"export", "report", "reproduce", "serve"} == set(COMMANDS)


def test_every_type_can_be_read(reference: Reference) -> None:
    linked = {name for prints in reference.commands.values() for name in reference.objects_in(prints)}
    for name, table in reference.tables.items():
        assert table, f"{name} has no keys"
        for type_, _ in table.values():
            linked |= {*reference.objects_in(type_)}
    assert linked == set(reference.tables)


def test_what_is_printed_without_triton(
    reference: Reference, irscope: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _captures(reference, irscope, tmp_path)
    _import_and_lists(reference, irscope, tmp_path)
    _passes_and_their_graphs(reference, irscope, tmp_path)
    _comparisons(reference, irscope, tmp_path)
    _layouts(reference, irscope, tmp_path, monkeypatch)
    _reasons(reference, irscope, monkeypatch)
    _graphs_and_source(reference, irscope, tmp_path)
    _profiles(reference, irscope)
    _on_a_gpu(reference, irscope, tmp_path, monkeypatch)
    _doctor(reference, irscope, monkeypatch)
    _verdicts(reference, irscope, tmp_path)
    _roofline(reference, irscope, tmp_path)
    _predictions(reference, irscope)
    commands = [
        names
        for names in reference.commands
        if names
        not in (
            "`ablate`",
            "`ablate --check`",
            "`why --compile-time`",
            "`why --variants`",
            "`why A B`",
            "`sweep`, `sweep --show`",
            "`tune`",
            "`check`",
            "`diff --watch`",
            "`upgrade`",
            "`verify --better`",
            "`edit`",
            "`reduce`",
        )
    ]
    assert unseen(reference, *commands) == OF_A_RECORDING
