"""Recording in a child process: every way in, and every way to fail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import irscope
from irscope.errors import MissingTool, RecordingError, SignatureError, TargetError, UsageError
from irscope.model.capture import Capture

KERNELS = Path(__file__).parents[1] / "record" / "kernels"
AXPY = {"signature": "*fp32:16, *fp32:16, i32:16, fp32", "constexprs": {"BLOCK": 256}, "kernel": "axpy"}

pytestmark = pytest.mark.triton


def record_axpy(**how: object) -> Capture:
    return irscope.record(KERNELS / "no_torch.py", **{**AXPY, **how})


@pytest.fixture(scope="module")
def axpy() -> Capture:
    return record_axpy()


def test_a_signature_gives_every_stage(axpy: Capture) -> None:
    assert axpy.stages == ("source", "ttir", "ttgir", "llir", "ptx", "cubin", "sass")
    assert "tt.func" in axpy.ttir
    assert "#ttg.blocked" in axpy.ttgir
    assert ".visible .entry axpy" in axpy.ptx
    assert axpy.cubin[:4] == b"\x7fELF"
    assert "LDG.E" in axpy.sass


def test_it_knows_what_was_compiled(axpy: Capture) -> None:
    launch = axpy.launch
    assert launch.kernel.name == "axpy"
    assert Path(launch.kernel.file) == KERNELS / "no_torch.py"
    line = (KERNELS / "no_torch.py").read_text().splitlines()[launch.kernel.line - 1]
    assert line.startswith("def axpy")
    assert dict(launch.signature) == {
        "x_ptr": "*fp32",
        "y_ptr": "*fp32",
        "n": "i32",
        "a": "fp32",
        "BLOCK": "constexpr",
        "EVEN": "constexpr",
    }
    assert dict(launch.constants) == {"BLOCK": "256", "EVEN": "False"}
    assert dict(launch.attributes) == dict.fromkeys(("x_ptr", "y_ptr", "n"), "tt.divisibility=16")
    assert launch.option("num_warps") == 4
    assert axpy.sources[0].text == (KERNELS / "no_torch.py").read_text()


def test_resources_are_known_without_a_gpu(axpy: Capture) -> None:
    resources = axpy.resources
    assert resources.registers is not None
    assert 8 <= resources.registers <= 255
    assert resources.spill_store_bytes == 0
    assert resources.shared_bytes == 0
    assert resources.instruction_count
    assert resources.code_bytes
    assert resources.instruction_count * 16 <= resources.code_bytes


@pytest.mark.newest
def test_an_untapped_compile_gives_the_same_bytes(axpy: Capture, tmp_path: Path) -> None:
    script = f"""
import sys; sys.path.insert(0, {str(KERNELS)!r})
import no_torch, triton
from triton.compiler import ASTSource
from triton.backends.compiler import GPUTarget
signature = {dict(axpy.launch.signature)!r}
attrs = {{(i,): [["tt.divisibility", 16]] for i in range(3)}}
src = ASTSource(no_torch.axpy, signature, {{"BLOCK": 256, "EVEN": False}}, attrs)
kernel = triton.compile(src, target=GPUTarget("cuda", 90, 32))
from pathlib import Path
for stage, data in kernel.asm.items():
    Path({str(tmp_path)!r}, stage).write_bytes(data if isinstance(data, bytes) else data.encode())
import os; os._exit(0)
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, cwd=tmp_path)
    for stage in ("source", "ttir", "ttgir", "llir", "ptx", "cubin"):
        data = axpy.artifact(stage).data
        plain = (tmp_path / stage).read_bytes()
        assert (data if isinstance(data, bytes) else data.encode()) == plain, stage


@pytest.mark.newest
def test_constants_in_the_signature_and_hints(axpy: Capture) -> None:
    capture = irscope.record(
        KERNELS / "no_torch.py", kernel="axpy", signature="*fp32:16, *fp32:16, i32:1, fp32, 64, True"
    )
    assert dict(capture.launch.constants) == {"n": "1", "BLOCK": "64", "EVEN": "True"}
    assert "i32" not in dict(capture.launch.signature).values()


@pytest.mark.newest
@pytest.mark.parametrize(
    ("signature", "constexprs", "said"),
    [
        ("*fp32, *fp32", {"BLOCK": 64}, "has 2 entries, but axpy takes 4"),
        ("*fp32, *fp32, i32, fp32", {}, "needs a value for the tl.constexpr 'BLOCK': add --constexpr BLOCK=VALUE"),
        ("*fp31, *fp32, i32, fp32", {"BLOCK": 64}, r"'\*fp31' is not a type of Triton's signatures. Did you mean"),
        ("*fp32:8, *fp32, i32, fp32", {"BLOCK": 64}, "the hint '8' in '\\*fp32:8' is neither 1 nor 16"),
        ("*fp32, *fp32, i32, fp32", {"BLOK": 64}, "no parameter 'BLOK'. Did you mean 'BLOCK'"),
        ("*fp32, *fp32, i32, fp32, i32, i1", {}, "'BLOCK' is a tl.constexpr: give its value"),
    ],
)
def test_wrong_signatures_print_the_parameters(signature: str, constexprs: dict[str, int], said: str) -> None:
    with pytest.raises(SignatureError, match=said) as error:
        irscope.record(KERNELS / "no_torch.py", kernel="axpy", signature=signature, constexprs=constexprs)
    if "hint" not in said:
        assert "The parameters of axpy:" in str(error.value)
        assert "BLOCK: tl.constexpr" in str(error.value)


def test_a_kernel_that_is_not_there() -> None:
    with pytest.raises(RecordingError, match=r"holds no kernel 'axpi'. Did you mean 'axpy'"):
        irscope.record(KERNELS / "no_torch.py", kernel="axpi", signature="*fp32")


@pytest.mark.newest
def test_torch_is_not_imported_unless_the_file_does(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise SystemExit('torch was imported')")
    text = (KERNELS / "no_torch.py").read_text()
    (tmp_path / "kernels.py").write_text(text)
    assert irscope.record(tmp_path / "kernels.py", **AXPY).status == "ok"


def test_an_ir_file_compiles_on(axpy: Capture, tmp_path: Path) -> None:
    for stage in ("ttir", "ttgir", "llir", "ptx"):
        path = tmp_path / f"axpy.{stage}"
        path.write_text(axpy.text(stage))
        capture = irscope.record(path, target="cuda:90")
        assert capture.status == "ok", capture.failure
        assert capture.stages[0] == stage
        assert capture.stages[-1] == "sass"
        assert capture.ptx == axpy.ptx


def test_recompiled_from_its_own_source(axpy: Capture) -> None:
    from irscope.record.process.requests import request_from_capture
    from irscope.record.process.session import record_request

    (again,) = record_request(request_from_capture(axpy)).captures
    for stage in ("ttgir", "llir", "ptx", "cubin", "sass"):
        assert again.artifact(stage).data == axpy.artifact(stage).data, stage
    (other,) = record_request(request_from_capture(axpy, targets=["hip:gfx942"])).captures
    assert other.stages == ("source", "ttir", "ttgir", "llir", "amdgcn", "hsaco")


def test_a_compile_error_keeps_the_message_and_the_caret() -> None:
    capture = irscope.record(KERNELS / "no_torch.py", kernel="broken", signature="*fp32, 64")
    assert capture.status == "failed"
    assert capture.failure is not None
    assert capture.failure.kind == "compile"
    assert "undefined_name is not defined" in capture.failure.message
    assert "^" in capture.failure.message


@pytest.mark.newest
def test_every_target_gives_its_stages() -> None:
    captures = irscope.record_all(KERNELS / "no_torch.py", target=["cuda:80", "hip:gfx942", "cuda:100"], **AXPY)
    assert [str(capture.target) for capture in captures] == ["cuda:80", "hip:gfx942", "cuda:100"]
    assert captures[1].stages[-1] == "hsaco"
    assert captures[1].resources.registers


def test_a_wrong_target_gets_the_list() -> None:
    with pytest.raises(TargetError, match=r"'cuda:banana' is not a target.*cuda:75, .*hip:gfx942"):
        record_axpy(target="cuda:banana")
    with pytest.raises(TargetError, match=r"does not support the target 'hip:gfxabc'|is not a target"):
        record_axpy(target="hip:gfxabc")


def test_an_abort_is_a_failed_capture_and_the_launches_before_are_kept() -> None:
    fine, hostile = irscope.record_all(KERNELS / "hostile.py", arguments=["abort"])
    assert fine.status == "ok"
    assert hostile.status == "failed"
    assert hostile.failure is not None
    assert hostile.failure.kind == "abort"
    assert "SIGABRT" in hostile.failure.message


@pytest.mark.newest
def test_a_hang_ends_at_the_time_out() -> None:
    fine, hostile = irscope.record_all(KERNELS / "hostile.py", arguments=["hang"], timeout_s=5)
    assert fine.status == "ok"
    assert hostile.failure is not None
    assert hostile.failure.kind == "timeout"
    assert "longer than 5 s" in hostile.failure.message


@pytest.mark.newest
def test_where_a_script_stops_the_launches_so_far_are_kept() -> None:
    from irscope.record.process.requests import request_for
    from irscope.record.process.session import record_request

    recording = record_request(request_for(KERNELS / "hostile.py", arguments=["raise"]))
    assert [capture.name for capture in recording.captures] == ["fine"]
    assert "RuntimeError: no such luck" in recording.stopped[0].message
    assert "hostile.py" in recording.stopped[0].frames
    assert "irscope" not in recording.stopped[0].frames
    recording = record_request(request_for(KERNELS / "hostile.py", arguments=["exit"]))
    assert "the user asked for it" in recording.stopped[0].message


@pytest.mark.newest
def test_ctrl_c_keeps_what_there_is(tmp_path: Path) -> None:
    script = f"""
from irscope.record.process import session
from irscope.record.process.requests import request_for
import pickle, sys
request = request_for({str(KERNELS / "hostile.py")!r}, arguments=["hang"])
recording = session.record_request(request, progress=lambda text: print(text, flush=True))
print(recording.interrupted, [(c.name, c.status, c.failure and c.failure.kind) for c in recording.captures])
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env={**os.environ})
    assert process.stdout is not None
    for text in process.stdout:
        if "hostile" in text and "fine" not in text:
            break
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    assert output.splitlines()[-1] == "True [('fine', 'ok', None), ('hostile', 'failed', 'interrupt')]"


@pytest.mark.newest
def test_ctrl_c_ends_what_needs_the_whole_recording(tmp_path: Path) -> None:
    script = tmp_path / "waits.py"
    script.write_text("import os, signal, time\nos.kill(int(os.environ['COMMAND']), signal.SIGINT)\ntime.sleep(60)\n")
    api = f"import irscope\ntry: irscope.record({str(script)!r})\nexcept KeyboardInterrupt: raise SystemExit(130)"
    for command in (["-m", "irscope", "run", str(script), "--cpu"], ["-c", api]):
        start = "import os, sys; os.environ['COMMAND'] = str(os.getpid()); os.execv(sys.executable, sys.argv[1:])"
        done = subprocess.run(
            [sys.executable, "-c", start, sys.executable, *command], capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stdout) == (130, ""), done


@pytest.mark.newest
def test_a_file_without_kernels_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "empty.py"
    path.write_text("print('hello')\n")
    with pytest.raises(RecordingError, match="compiled no kernel"):
        irscope.record(path)
    with pytest.raises(RecordingError, match=r"holds no kernel 'k'. It has no kernel"):
        irscope.record(path, kernel="k", signature="i32")
    with pytest.raises(RecordingError, match="does not exist"):
        irscope.record(tmp_path / "none.py")
    with pytest.raises(UsageError, match="--constexpr goes with --signature"):
        irscope.record(KERNELS / "no_torch.py", constexprs={"BLOCK": 1})


@pytest.mark.newest
def test_an_interpreter_without_triton_says_so(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(MissingTool, match="Triton is not installed"):
        record_axpy(interpreter=str(bare))
    with pytest.raises(RecordingError, match="cannot be started"):
        record_axpy(interpreter=str(tmp_path / "nothing"))


@pytest.mark.newest
def test_the_users_cache_is_neither_read_nor_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "mine").write_text("untouched")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(cache))
    before = sorted((path.name, path.stat().st_mtime_ns) for path in cache.rglob("*"))
    assert record_axpy().status == "ok"
    assert sorted((path.name, path.stat().st_mtime_ns) for path in cache.rglob("*")) == before


def test_a_failing_ptxas_gives_its_log(tmp_path: Path) -> None:
    path = tmp_path / "broken.ptx"
    path.write_text(
        ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry broken(.param .u64 p0)\n{\n"
        "  .reg .b32 %r<2>;\n  add.bogus %r1, %r1, 1;\n  ret;\n}\n"
    )
    capture = irscope.record(path, target="cuda:90")
    assert capture.failure is not None
    assert capture.failure.kind == "assembler"
    assert capture.failure.stage == "cubin"
    assert "Unknown modifier '.bogus'" in capture.failure.message
