"""Logs of LLVM_IR_ENABLE_DUMP: what LLVM printed after each of its passes."""

from __future__ import annotations

import re

from irscope.ir.logs.dump import captures_from_log, read_llvm_dump
from tests.ir.dump_logs import log

MODULE = 'source_filename = "m"\n\ndefine void @f(ptr %0) #0 !dbg !4 {\n  ret void, !dbg !5\n}\n\ndeclare void @g()\n'
FUNCTION = "define void @f(ptr %0) #{n} !dbg !{n} {{\n  {body}ret void, !dbg !{n}\n}}\n"
CALL = "call void @g()\n  "


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
