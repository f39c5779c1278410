"""Lines of vLLM's and SGLang's logs as captures, and the code that compiles what they name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from irscope.__main__ import run
from irscope.ir.logs.jit_monitor import captures_of_jit_log
from irscope.store.file import from_bytes, to_bytes

VLLM = (
    "(EngineCore pid=284) WARNING 05-30 07:48:45 [jit_monitor.py:103] Triton kernel JIT compilation during inference: "
)
SPIKE = ". This causes a latency spike; consider extending warmup to cover this shape/config.\n"
VERBOSE = (
    "_slots (constexprs={BLOCK=1024, NAME='a, b'}; signature={BLOCK='constexpr', NAME='constexpr', n='i32', "
    "out_ptr='*i64', x_ptr='*bf16'}; extra_compile_info={configs=[{(2,): [['tt.divisibility', 16]], (3,): [['tt."
    "divi..., device=0, num_warps=8}; key=\"[('*bf16', 'D'), ('*i64', ''...)"
)
KEY = "_slots (key=[('*bf16', 'D'), ('*i64', ''), ('i32', 'D'), ('constexpr', 1024)]{'debug': False})"
SGLANG = "[2026-08-06 10:00:00 TP0] Triton kernel '_fwd' took 2.31 s to compile after serving started. Serving-time\n"
LOADED = (
    "[2026-08-06 10:00:01 TP0] Triton kernel '_late' device-loaded after serving started (free device mem: 0.66 GiB).\n"
)
LOG = "".join(
    (
        "INFO 05-30 07:47:31 [jit_monitor.py:54] Kernel JIT monitor activated: Triton JIT compilations are logged.\n",
        f"{VLLM}_zero{SPIKE}", f"{VLLM}_zero{SPIKE}", f"{VLLM}{VERBOSE}{SPIKE}", f"{VLLM}{KEY}.\n", SGLANG, LOADED,
    )
)  # fmt: skip


def test_each_kernel_and_its_arguments_are_read_once() -> None:
    zero, named, ordered, slow, late = captures_of_jit_log(LOG, "server.log")
    assert [one.name for one in (zero, named, ordered, slow, late)] == ["_zero", "_slots", "_slots", "_fwd", "_late"]
    assert "2 lines of server.log" in zero.notes[0]
    assert "--jit-monitor-verbose" in zero.notes[1]
    assert dict(named.launch.signature)["x_ptr"] == "*bf16"
    assert named.launch.constants == (("BLOCK", "1024"), ("NAME", "'a, b'"))
    assert named.launch.options == (("num_warps", 8),)
    assert [kind for _, kind in ordered.launch.signature] == ["*bf16", "*i64", "i32", "constexpr"]
    assert [path for path, _ in ordered.launch.attributes] == ["arg0", "arg2"]
    assert slow.compile_us == 2_310_000
    for capture in (zero, named, ordered, slow, late):
        assert from_bytes(to_bytes(capture)) == capture


def test_the_warm_up_has_a_call_for_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "server.log").write_text(LOG)
    assert run(["import", str(tmp_path / "server.log")]) == 0
    capsys.readouterr()
    assert run(["why", "last", "--warmup"]) == 0
    out = capsys.readouterr().out
    assert "# _zero: its module and its arguments are not known" in out
    calls = [ast.parse(row[2:].partition("  # ")[0]).body[0] for row in out.splitlines() if row.startswith("# jit_")]
    by_name, in_order = (call.value for call in calls if isinstance(call, ast.Expr))
    assert isinstance(by_name, ast.Call)
    assert isinstance(in_order, ast.Call)
    # The log has the first's parameters by name, and the second's in order.
    given = {word.arg: ast.unparse(word.value) for word in by_name.keywords}
    assert (given["BLOCK"], given["num_warps"], given["n"]) == ("1024", "8", "17")
    assert [ast.unparse(one) for one in in_order.args] == ["torch.bfloat16", "Unaligned(torch.int64)", "16", "1024"]
    (tmp_path / "other.log").write_text("INFO: Application startup complete.\n")
    assert run(["import", str(tmp_path / "other.log")]) == 1
    assert "no kernel of vLLM's or SGLang's JIT monitor" in capsys.readouterr().err


def test_a_line_that_is_cut_is_read_as_far_as_it_goes() -> None:
    whole = f"{VLLM}{VERBOSE}{SPIKE}"
    for end in range(len(VLLM), len(whole), 7):
        assert len(captures_of_jit_log(whole[:end], "x")) <= 1
