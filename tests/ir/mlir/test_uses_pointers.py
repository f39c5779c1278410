"""What a kernel does with its pointers, read off its IR."""

from __future__ import annotations

import pytest

from irscope.ir.mlir.uses import read_pointer_uses


def uses(
    body: str, parameters: str = "%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32, %b: !tt.ptr<f32>"
) -> str:
    text = f"module {{\n  tt.func public @kernel({parameters}) {{\n{body}\n    tt.return\n  }}\n}}\n"
    found = read_pointer_uses(text)
    said = [f"{use.name}:{'r' * use.read}{'w' * use.written}" for use in found.parameters]
    return " ".join([*said, *(["elsewhere"] if found.elsewhere else [])])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    %0 = tt.load %a : !tt.ptr<f32>\n    tt.store %b, %0 : !tt.ptr<f32>", "a:r b:w"),
        ("    %0 = tt.load %a : !tt.ptr<f32>\n    tt.store %a, %0 : !tt.ptr<f32>", "a:rw b:"),
        (
            "    %0 = tt.load %a : !tt.ptr<f32>\n"
            "    %1 = tt.atomic_rmw fadd, relaxed, gpu, %b, %0 : (!tt.ptr<f32>, f32) -> f32",
            "a:r b:rw",
        ),
        (
            "    %0 = arith.cmpi eq, %n, %n : i32\n"
            "    %1 = arith.select %0, %a, %b : !tt.ptr<f32>\n    %2 = tt.load %1 : !tt.ptr<f32>",
            "a:r b:r",
        ),
        # Pointers that a loop carries, each for itself.
        (
            "    %c0 = arith.constant 0 : i32\n    %c1 = arith.constant 1 : i32\n"
            "    %0:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a, %q = %b)"
            " -> (!tt.ptr<f32>, !tt.ptr<f32>)  : i32 {\n"
            "      %2 = tt.load %p : !tt.ptr<f32>\n      tt.store %q, %2 : !tt.ptr<f32>\n"
            "      %3 = tt.addptr %p, %c1 : !tt.ptr<f32>, i32\n      %4 = tt.addptr %q, %c1 : !tt.ptr<f32>, i32\n"
            "      scf.yield %3, %4 : !tt.ptr<f32>, !tt.ptr<f32>\n    }",
            "a:r b:w",
        ),
        # What leaves the loop is followed too.
        (
            "    %c0 = arith.constant 0 : i32\n    %c1 = arith.constant 1 : i32\n"
            "    %0 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a) -> (!tt.ptr<f32>)  : i32 {\n"
            "      %3 = tt.addptr %p, %c1 : !tt.ptr<f32>, i32\n      scf.yield %3 : !tt.ptr<f32>\n    }\n"
            "    %5 = tt.load %0 : !tt.ptr<f32>\n    tt.store %b, %5 : !tt.ptr<f32>",
            "a:r b:w",
        ),
        # An address out of memory: nothing says whose it is.
        (
            "    %0 = tt.load %a : !tt.ptr<i64>\n    %1 = tt.int_to_ptr %0 : i64 -> !tt.ptr<f32>\n"
            "    %2 = tt.load %1 : !tt.ptr<f32>\n    tt.store %b, %2 : !tt.ptr<f32>",
            "a:r b:w elsewhere",
        ),
        # A pointer that becomes a number, or goes into a call, may be used for anything.
        ("    %0 = tt.ptr_to_int %a : !tt.ptr<f32> -> i64", "a:rw b:"),
        ("    %0 = tt.call @other(%a) : (!tt.ptr<f32>) -> !tt.ptr<f32>\n    %1 = tt.load %0 : !tt.ptr<f32>", "a:rw b:"),
    ],
)
def test_reads_and_writes(body: str, expected: str) -> None:
    assert uses(body) == expected


def test_descriptors() -> None:
    body = (
        "    %c0 = arith.constant 0 : i32\n"
        "    %0 = tt.descriptor_load %d[%c0] : !tt.tensordesc<tensor<64xf16>> -> tensor<64xf16>\n"
        "    %1 = arith.extsi %n : i32 to i64\n"
        "    %2 = tt.make_tensor_descriptor %o, [%n], [%1] : <f16>, <tensor<64xf16>>\n"
        "    tt.descriptor_store %2[%c0], %0 : !tt.tensordesc<tensor<64xf16>>, tensor<64xf16>"
    )
    assert uses(body, "%d: !tt.tensordesc<tensor<64xf16>>, %n: i32, %o: !tt.ptr<f16>") == "d:r o:w"


@pytest.mark.parametrize("text", ["", "module {", "tt.func @f(%a: !tt.ptr<f32>) {", "\x00%%%", "module {\n tt.func(\n"])
def test_never_raises(text: str) -> None:
    assert all(not use.written for use in read_pointer_uses(text).parameters)
