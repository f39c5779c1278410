"""Logs of MLIR_ENABLE_DUMP and LLVM_IR_ENABLE_DUMP: real ones of four versions, cut ones, mutated ones, older forms."""

from __future__ import annotations

import lzma
import random
import re
import time
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irscope
from irscope.capture import Capture, PassSnapshot
from irscope.ir.dump import captures_from_log, completed, is_dump, read_llvm_dump, read_mlir_dump
from irscope.ir.dump_names import builder_name
from irscope.ir.locations import strip_locations
from irscope.store import from_bytes, to_bytes

DATA = Path(__file__).parent.parent / "data" / "dumps"
VERSIONS = ("3.6.0", "3.7.1", "3.8.0", "3.9.0")
TARGETS = ("cuda90", "hipgfx942")


@cache
def log(name: str) -> str:
    return lzma.decompress((DATA / f"{name}.xz").read_bytes()).decode()


@cache
def captures(name: str) -> tuple[Capture, ...]:
    return captures_from_log(log(name), f"{name}.log")


def labels(snapshots: object) -> list[str]:
    return [snapshot.label for snapshot in snapshots]  # type: ignore[attr-defined]


# Real logs


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("target", TARGETS)
def test_kernels_and_specialisations_are_told_apart(version: str, target: str) -> None:
    found = captures(f"{version}.{target}.mlir")
    assert [capture.name for capture in found] == ["add", "add", "calls", "dot", "dot"]
    assert [capture.launch.option("num_warps") for capture in found] == [1, 1, 1, 4, 2]
    assert len({capture.id for capture in found}) == 5
    assert {str(capture.target) for capture in found} == {"cuda:90" if target == "cuda90" else "hip:gfx942"}
    assert {capture.target.warp_size for capture in found} == {32 if target == "cuda90" else 64}
    assert "end = 64 : i32" in found[0].source
    assert "end = 128 : i32" in found[1].source


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("target", TARGETS)
def test_the_stages_are_where_the_pipeline_has_them(version: str, target: str) -> None:
    for capture in captures(f"{version}.{target}.mlir"):
        assert capture.stages == ("source", "ttir", "ttgir")
        first = {
            stage: next(each for each in capture.snapshots if each.stage == stage)
            for stage in ("ttir", "ttgir", "llir")
        }
        assert [snapshot.name for snapshot in first.values()] == [
            "inliner",
            "convert_to_ttgpuir",
            "combine_tensor_select_and_if" if target == "cuda90" else "update_async_wait_count",
        ]
        assert "ttg.num-warps" not in capture.ttir
        assert "ttg.num-warps" in capture.ttgir
        assert capture.text_before(first["ttgir"]) == capture.ttir
        assert capture.text_before(first["llir"]) == capture.ttgir


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("target", TARGETS)
def test_each_pass_found_what_the_log_printed_before_it(version: str, target: str) -> None:
    text = log(f"{version}.{target}.mlir")
    # Told apart by hand: what stands under each header, up to the blank line that MLIR prints behind a module.
    printed = [block.partition("\n")[2].rstrip("\n") + "\n" for block in text.split("// -----// IR Dump Before ")[1:]]
    printed = [block.partition("\n\n")[0].rstrip("\n") + "\n" for block in printed]
    position = 0
    for capture in captures(f"{version}.{target}.mlir"):
        for snapshot in capture.passes():
            before = capture.text_before(snapshot)
            while printed[position] != before:
                position += 1
            position += 1
    # What follows the last pass was printed within one (reconcile-unrealized-casts), or is nothing.
    assert len(printed) - position <= 1


def test_what_a_launch_was_is_read_from_the_ir() -> None:
    capture = captures("3.9.0.cuda90.mlir")[3]
    launch = capture.launch
    assert launch.signature == (("a", "*fp16"), ("b", "*fp16"), ("c", "*fp16"), ("K", "i32"))
    assert launch.attributes == tuple((name, "tt.divisibility=16") for name in "abc")
    lines = (DATA / "kernels.py").read_text().splitlines()
    assert launch.kernel.file == "kernels.py"
    assert lines[launch.kernel.line - 1].startswith("def dot")
    assert launch.option("num_stages") == 3


@pytest.mark.parametrize("version", VERSIONS)
def test_the_last_pass_is_said_to_be_unknown(version: str) -> None:
    capture = captures(f"{version}.cuda90.mlir")[0]
    last = capture.snapshots[-1]
    assert (last.name, last.changed, last.text, last.text_left_out) == ("di_scope", None, None, True)
    assert any(last.label in note for note in capture.notes)
    assert all(snapshot.changed is not None for snapshot in capture.snapshots[:-1])


def test_only_what_changed_keeps_its_text() -> None:
    for capture in captures("3.6.0.hipgfx942.mlir"):
        for snapshot in capture.snapshots[:-1]:
            assert (snapshot.text is not None) == snapshot.changed
            if snapshot.changed:
                assert snapshot.text != capture.text_before(snapshot)


def test_names_arguments_and_options_of_both_forms_of_header() -> None:
    old = captures("3.6.0.cuda90.mlir")[0].snapshots
    new = captures("3.9.0.cuda90.mlir")[0].snapshots
    assert (old[0].name, old[0].argument, old[0].options) == ("inliner", "inline", "")
    assert (new[0].name, new[0].argument) == ("inliner", "inline")
    assert new[0].options == "default-pipeline=canonicalize inlining-threshold=4294967295 max-iterations=4"
    assert "tritongpu-remove-layout-conversions" in {snapshot.argument for snapshot in old}
    assert "ttgir:remove_layout_conversions#2" in labels(old)


def test_the_passes_that_a_pass_runs_within_itself_are_its_own() -> None:
    for name in ("3.6.0.cuda90.mlir", "3.9.0.cuda90.mlir"):
        for capture in captures(name):
            names = [snapshot.name for snapshot in capture.snapshots]
            # The inliner canonicalises each function, optimize_dot_operands the module, as they begin.
            assert {snapshot.scope for snapshot in capture.snapshots if snapshot.stage == "ttir"} == {""}
            last = len(names) - 1 - names[::-1].index("optimize_dot_operands")
            assert names[last + 1] == "coalesce_async_copy"
            assert "reconcile_unrealized_casts" not in names


def test_a_pass_over_several_functions_is_one_occurrence() -> None:
    capture = captures("3.9.0.hipgfx942.mlir")[2]
    hoisting = [snapshot for snapshot in capture.snapshots if snapshot.name == "hoist_layout_conversions"]
    assert {snapshot.occurrence for snapshot in hoisting} == {1}
    assert len({snapshot.scope for snapshot in hoisting}) == len(hoisting) == 3
    assert "calls" in {snapshot.scope for snapshot in hoisting}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_failed_pass_is_a_result(version: str) -> None:
    (capture,) = captures(f"{version}.failing")
    assert capture.status == "failed"
    assert capture.failure is not None
    assert capture.failure.pass_label == "llir:to_llvmir#1"
    assert "failed to legalize operation 'tt.descriptor_load'" in capture.failure.message
    assert "mlir_reproducer" not in capture.failure.diagnostics
    assert [snapshot.outcome for snapshot in capture.snapshots] == ["ran", "ran", "failed"]
    assert "unrealized_conversion_cast" in (capture.snapshots[-1].text or "")
    assert any("begins with" in note for note in capture.notes)


def test_a_pass_fails_and_the_next_compile_goes_on() -> None:
    text = log("3.9.0.failing") + log("3.9.0.cuda90.mlir")
    assert [capture.status for capture in captures_from_log(text, "")] == ["failed"] + ["ok"] * 5
    twice = captures_from_log(log("3.6.0.failing") * 2, "")
    assert [capture.status for capture in twice] == ["failed", "failed"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("target", TARGETS)
def test_a_log_with_both_dumps_gives_both_groups(version: str, target: str) -> None:
    found = captures(f"{version}.{target}.stderr")
    assert [capture.name for capture in found] == ["add", "dot"]
    assembly = "ptx" if target == "cuda90" else "amdgcn"
    for capture in found:
        llvm = list(capture.passes("llvm"))
        assert {snapshot.stage for snapshot in llvm} == {"llir", assembly}
        assert [snapshot.index for snapshot in llvm] == list(range(len(llvm)))
        # Each pass is told of as often as it was printed, and in that order.
        assert len(llvm) > 150
        assert from_bytes(to_bytes(capture)) == capture
    assert next(labels(capture.passes()) for capture in found) == labels(
        captures(f"{version}.{target}.mlir")[0].passes()
    )


# The passes of LLVM


def llvm_part(name: str) -> str:
    text = log(name)
    second = text.index("IR Dump Before", text.index("; *** IR Dump After"))
    return text[text.index("; *** IR Dump After") : second]


def test_llvm_passes_are_counted_as_printed() -> None:
    text = llvm_part("3.9.0.cuda90.stderr")
    snapshots = read_llvm_dump(text, "llir", first_index=7)
    headers = re.findall(r"^(?:[;#] )?\*\*\* IR Dump After (.*?) \*\*\*", text, re.MULTILINE)
    assert len(snapshots) == len(headers)
    assert snapshots[0].index == 7
    assert all(snapshot.group == "llvm" and snapshot.stage == "llir" for snapshot in snapshots)
    arguments = [re.search(r"\(([\w.-]+)\)$", header) for header in headers]
    for snapshot, header, argument in zip(snapshots, headers, arguments, strict=True):
        if " on " not in header and argument:
            assert snapshot.name == snapshot.argument == argument[1]
        assert re.fullmatch(r"[A-Za-z_][\w.-]*", snapshot.name)


def test_llvm_changes_are_those_of_the_text() -> None:
    found = {snapshot.name: snapshot for snapshot in read_llvm_dump(llvm_part("3.9.0.cuda90.stderr"), "llir")}
    assert found["EarlyCSEPass"].scope == "add"
    assert found["CoroEarlyPass"].changed is False
    assert found["CoroEarlyPass"].text is None
    assert found["nvptx-isel"].changed is True
    assert (found["nvptx-isel"].text or "").startswith("# Machine code for function add")
    assert (found["nvptx-isel"].text or "").endswith("# End machine code for function add.\n")
    assert "Running pass" not in "".join(snapshot.text or "" for snapshot in found.values())


MODULE = 'source_filename = "m"\n\ndefine void @f(ptr %0) #0 !dbg !4 {\n  ret void, !dbg !5\n}\n\ndeclare void @g()\n'
FUNCTION = "define void @f(ptr %0) #{n} !dbg !{n} {{\n  {body}ret void, !dbg !{n}\n}}\n"
CALL = "call void @g()\n  "


def test_numbers_of_metadata_are_no_change() -> None:
    text = f"; *** IR Dump After APass on [module] ***\n{MODULE}"
    for name, number, body in (("BPass", 9, ""), ("CPass", 3, CALL), ("DPass", 9, CALL)):
        text += f"; *** IR Dump After {name} on f ***\n{FUNCTION.format(n=number, body=body)}"
    snapshots = read_llvm_dump(text, "llir")
    assert [(each.name, each.scope, each.changed) for each in snapshots] == [
        ("APass", "", None),
        ("BPass", "f", False),
        ("CPass", "f", True),
        ("DPass", "f", False),
    ]


def test_a_loop_is_compared_with_the_function_it_is_in() -> None:
    body = "br label %1\n\n1:\n  %2 = add i32 1, 2\n  br label %1\n  "
    loop = "\n; Loop:\n1:                           ; preds = %0\n  %2 = add i32 1, {n}\n  br label %1\n"
    text = f"; *** IR Dump After APass on f ***\n{FUNCTION.format(n=1, body=body)}"
    text += "".join(
        f"; *** IR Dump After {name} on loop %1 in function f ***\n{loop.format(n=n)}"
        for name, n in (("SamePass", 2), ("OtherPass", 3), ("SamePass", 3))
    )
    changed = FUNCTION.format(n=1, body=body.replace("1, 2", "1, 3"))
    text += f"; *** IR Dump After ZPass on f ***\n{changed}"
    # What a function's pass found after a loop's pass had changed it was never printed whole.
    assert [each.changed for each in read_llvm_dump(text, "llir")] == [None, False, True, False, None]


def test_a_log_of_llvm_alone_gives_captures() -> None:
    text = llvm_part("3.6.0.cuda90.stderr") + "\n"
    found = captures_from_log(text * 2, "")
    assert [capture.name for capture in found] == ["add", "add"]
    assert found[0].target.backend == "cuda"
    assert found[0].stages == ("llir",)


# Forms that no installed Triton prints


def dump(header: str, module: str) -> str:
    return f"// -----// {header}\n{module}\n\n"


def module(kernel: str, attributes: str = "", body: str = "") -> str:
    return f"module{attributes} {{\n  tt.func public @{kernel}(%x: i32) {{\n    {body}tt.return\n  }}\n}}\n"


LAYOUTS = ' attributes {"ttg.num-warps" = 8 : i32, ttg.target = "cuda:80"}'
LLVM = "module {\n  llvm.func @k(%arg0: i32) {\n    llvm.return\n  }\n}\n"


def test_headers_without_arguments() -> None:
    text = dump("IR Dump Before Inliner //----- //", module("k")) + dump(
        "IR Dump Before CSE //----- //", module("k", "", "%0 = x\n")
    )
    (only,) = read_mlir_dump(text)
    assert labels(only.snapshots) == ["ttir:inliner#1", "ttir:cse#1"]
    assert [snapshot.argument for snapshot in only.snapshots] == ["", ""]
    assert only.snapshots[0].changed is True


def test_prints_after_each_pass() -> None:
    text = dump("IR Dump After Inliner (inline) //----- //", module("k"))
    text += dump("IR Dump After CSE (cse) //----- //", module("k", "", "%0 = x\n    "))
    (only,) = read_mlir_dump(text)
    assert [snapshot.text for snapshot in only.snapshots] == [module("k"), module("k", "", "%0 = x\n    ")]
    assert [snapshot.changed for snapshot in only.snapshots] == [None, None]


def test_prints_before_and_after() -> None:
    text = dump("IR Dump Before Inliner (inline) //----- //", module("k"))
    text += dump("IR Dump After Inliner (inline) //----- //", module("k", "", "%0 = x\n    "))
    text += dump("IR Dump Before CSE (cse) //----- //", module("k", "", "%0 = x\n    "))
    (only,) = read_mlir_dump(text)
    assert [snapshot.changed for snapshot in only.snapshots] == [True, None]
    assert only.snapshots[0].text == module("k", "", "%0 = x\n    ")


def test_ir_files_and_compiles_that_begin_in_the_middle() -> None:
    builtin = "('builtin.module' operation) //----- //"
    once = dump(f"IR Dump Before SCFToControlFlow (convert-scf-to-cf) {builtin}", module("k", LAYOUTS))
    once += dump(f"IR Dump Before Canonicalizer (canonicalize) {builtin}", LLVM)
    found = captures_from_log(once * 2, "")
    assert [labels(capture.snapshots) for capture in found] == [["llir:scf_to_cf#1", "llir:canonicalizer#1"]] * 2
    assert [capture.stages for capture in found] == [("ttgir",)] * 2
    assert str(found[0].target) == "cuda:80"
    assert found[0].launch.option("num_warps") == 8


def test_another_kernel_is_another_compile() -> None:
    builtin = "('builtin.module' operation) //----- //"
    text = dump(f"IR Dump Before CSE (cse) {builtin}", module("k", LAYOUTS))
    text += dump(f"IR Dump Before CSE (cse) {builtin}", module("other", LAYOUTS))
    assert [item.kernel for item in read_mlir_dump(text)] == ["k", "other"]


def test_gluon_inlines_twice_in_one_compile() -> None:
    builtin = "('builtin.module' operation) //----- //"
    once = dump(f"IR Dump Before GluonInline (gluon-inline) {builtin}", module("k", LAYOUTS))
    once += dump(f"IR Dump Before SCFToControlFlow (convert-scf-to-cf) {builtin}", module("k", LAYOUTS))
    once += dump(f"IR Dump Before GluonInline (gluon-inline) {builtin}", module("k", LAYOUTS))
    found = captures_from_log(once * 2, "")
    expected = ["ttgir:inliner#1", "llir:scf_to_cf#1", "llir:inliner#1"]
    assert [labels(capture.snapshots) for capture in found] == [expected] * 2
    assert found[0].stages == ("source", "ttgir")


def test_other_programs_words_are_passed_over() -> None:
    text = log("3.9.0.cuda90.mlir")
    quiet = captures_from_log(text, "")
    loud = re.sub(r"\n\n(?=// -----//)", "\n\nepoch 1: loss 0.1 }\n{\n#1 warning\n", text)
    loud = loud.replace("// -----// IR Dump Before CSEPass", "50%|#### | // -----// IR Dump Before CSEPass")
    found = captures_from_log("Traceback:\n  module {\n" + loud, "")
    assert [capture.snapshots for capture in found] == [capture.snapshots for capture in quiet]


@pytest.mark.parametrize(
    "text", ["", "\n", "module {\n}\n", "// -----// IR Dump", "no log at all", "// -----// IR Dump Before\n"]
)
def test_what_is_no_log_has_no_compile(text: str) -> None:
    assert all(not capture.artifacts for capture in captures_from_log(text, ""))


def test_what_a_stage_made_completes_it() -> None:
    text = dump("IR Dump Before Inliner (inline) //----- //", module("k"))
    (only,) = read_mlir_dump(text)
    whole = completed(only, {"ttir": module("k", "", "%0 = x\n    ")})
    assert whole.snapshots[0].changed is True
    assert not any("does not hold" in note for note in whole.notes)
    assert completed(only, {"ttir": module("k")}).snapshots[0].changed is False
    assert completed(only, {}) == only


# Cut and mutated logs


@cache
def short_log() -> str:
    text = log("3.9.0.cuda90.mlir")
    starts = [match.start() for match in re.finditer("// -----// IR Dump Before InlinerPass", text)]
    first, second = text[: starts[1]], text[starts[1] : starts[2]]
    # The dialect of LLVM is nearly all of a log: the first passes over it stand for the others.
    return "".join(part[: part.index("IR Dump Before ConvertNVVM")] for part in (first, second))


def test_a_log_that_is_cut_tells_of_what_came_before() -> None:
    text = short_log()
    whole = [snapshot for item in read_mlir_dump(text) for snapshot in item.snapshots]
    places = random.Random(7).sample(range(len(text)), 200)
    for place in places:
        found = captures_from_log(text[:place], "")
        snapshots = [snapshot for capture in found for snapshot in capture.snapshots]
        known = [snapshot for snapshot in snapshots if not snapshot.text_left_out]
        assert len(known) >= len(snapshots) - 3
        for index, snapshot in enumerate(snapshots):
            assert snapshot.argument == whole[index].argument
            if not snapshot.text_left_out:
                assert (snapshot.changed, snapshot.text) == (whole[index].changed, whole[index].text)


def test_a_log_that_is_cut_at_its_start_is_read() -> None:
    text = short_log()
    whole = [snapshot for item in read_mlir_dump(text) for snapshot in item.snapshots]
    for place in random.Random(3).sample(range(len(text)), 50):
        snapshots = [snapshot for capture in captures_from_log(text[place:], "") for snapshot in capture.snapshots]
        # The dumps of what a pass ran within itself can't be told for such, where its own is missing.
        arguments = [each.argument for each in snapshots[3:]]
        assert arguments == [each.argument for each in whole[len(whole) - len(arguments) :]]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    text = log("3.6.0.failing") + short_log()[:60_000] + log("3.9.0.cuda90.stderr")[-40_000:]
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.sampled_from([0, 1, 5, 80, 3_000])))
        fresh = draw(
            st.one_of(
                st.text(max_size=20),
                st.sampled_from(
                    ["\n", "}\n", '"', "(", "{", "// -----// IR Dump Before ", "module {", "tt.func @", "<"]
                ),
                st.just(text[start:end] * 2),
            )
        )
        text = text[:start] + fresh + text[end:]
    return text


@settings(max_examples=80, deadline=None)
@given(mutated())
def test_a_damaged_log_is_read_without_an_exception(text: str) -> None:
    for capture in captures_from_log(text, "log"):
        assert from_bytes(to_bytes(capture)) == capture
    read_llvm_dump(text, "llir")


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_any_text_is_read_without_an_exception(text: str) -> None:
    captures_from_log(text, "")
    captures_from_log(f"// -----// IR Dump Before {text}", "")
    read_llvm_dump(f"; *** IR Dump After {text}", "llir")
    assert is_dump(f"IR Dump {text}")


@pytest.mark.parametrize(
    "line",
    [
        "// -----// ",
        "// -----// IR Dump Before X (x) ('tt.func' operation: @",
        "module {\n",
        "define void @f() {\n",
        "; *** IR Dump After ",
        "; *** IR Dump After X on loop a in function f ***\n",
        "// -----// IR Dump Before X (x)\nmodule {\n  llvm.func @",
        "\n",
        " ",
        "#-}\nmodule\n",
        "@",
    ],
)
def test_hostile_logs_take_no_longer_than_their_length(line: str) -> None:
    text = line * (400_000 // len(line))
    for whole in (
        text,
        "// -----// IR Dump Before " + text,
        f"{module('k')}; *** IR Dump After A on [module] ***\n{text}",
    ):
        started = time.process_time()
        captures_from_log(whole, "")
        read_llvm_dump(whole, "llir")
        assert time.process_time() - started < 10


# Against Triton


@pytest.mark.triton
def test_every_builder_has_its_name() -> None:
    from types import ModuleType

    from triton._C.libtriton import amd, ir, nvidia, passes

    context = ir.context()
    ir.load_dialects(context)
    nvidia.load_dialects(context)
    amd.load_dialects(context)
    arguments = ((), (1,), (True,), (90,), ("gfx942",), (90, 80), (3, True), (True, 1), ("cuda:90", 4, 32, 1))
    arguments += (("gfx942", True), ("gfx942", 0, 1), ("gfx942", True, True, True), (True, True, True))

    def builders(group: ModuleType) -> list[tuple[str, object]]:
        found: list[tuple[str, object]] = []
        for name, value in vars(group).items():
            if isinstance(value, ModuleType):
                found += builders(value)
            elif callable(value) and not isinstance(value, type):
                found.append((name.removeprefix("add_"), value))
        return found

    checked = 0
    for name, builder in [each for group in (passes, nvidia.passes, amd.passes) for each in builders(group)]:
        for values in arguments:
            manager = ir.pass_manager(context)
            try:
                builder(manager, *values)  # type: ignore[operator]
            except Exception:
                continue
            match = re.fullmatch(r"any\((?:[\w.]+\()?([\w-]+)(?:\{.*\})?\)*", manager.get_pipeline_str())
            if match is not None:
                assert builder_name(match[1]) == name, match[1]
                checked += 1
            break
    assert checked > 80


@pytest.mark.triton
@pytest.mark.slow
@pytest.mark.parametrize("target", ["cuda:80", "cuda:90", "cuda:100", "cuda:120", "hip:gfx942"])
def test_the_dump_says_what_the_tap_saw(target: str) -> None:
    from irscope.cli.subject import How
    from irscope.cli.via import captures_via_mlir_dump

    path = Path(__file__).parent.parent / "record" / "kernels" / "no_torch.py"
    signature = "*fp16:16, *fp16:16, *fp32:16, i32:16, 64"
    tapped = irscope.record_all(path, kernel="tile_product", signature=signature, target=target, snapshots="all")
    dumped = captures_via_mlir_dump(f"{path}::tile_product", How(targets=(target,), signature=signature))
    assert [capture.id for capture in dumped] == [capture.id for capture in tapped]
    for ours, theirs in zip(dumped, tapped, strict=True):
        mine = [each for each in ours.snapshots if each.argument]
        its = [each for each in theirs.snapshots if each.argument]
        assert [described(each) for each in mine] == [described(each) for each in its]
        for index, (one, other) in enumerate(zip(mine[:-1], its, strict=False)):
            text, expected = ours.text_before(mine[index + 1]), theirs.text_before(its[index + 1])
            assert text is not None
            assert expected is not None
            assert strip_locations(text, "mlir") == strip_locations(expected, "mlir"), one.label
            assert one.changed == other.changed, one.label
        assert mine[-1].text_left_out


def described(snapshot: PassSnapshot) -> tuple[str, str]:
    return snapshot.label, snapshot.argument
