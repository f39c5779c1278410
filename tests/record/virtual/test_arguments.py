"""Which pointers a kernel may write through, for Triton IR that Triton made."""

from __future__ import annotations

from typing import Any

import pytest

from irscope.record.virtual.arguments import written_arguments

PARAMETERS = "%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f32>, %n: i32"
HEAD = f"module {{\n  tt.func public @k({PARAMETERS}) attributes {{noinline = false}} {{\n"
TAIL = "    tt.return\n  }\n}\n"
STORE = "    tt.store {0}, %v : !tt.ptr<f32>\n"

CASES: tuple[tuple[str, str, tuple[bool, ...] | None], ...] = (
    ("nothing", "", (False, False, False)),
    ("a copy", "    %v = tt.load %a : !tt.ptr<f32>\n" + STORE.format("%b"), (False, True, False)),
    (
        "through arithmetic",
        "    %p = tt.addptr %b, %n : !tt.ptr<f32>, i32\n" + STORE.format("%p"),
        (False, True, False),
    ),
    ("a pointer that is stored may be read again", "    tt.store %b, %a : !tt.ptr<f32>\n", (True, True, False)),
    (
        "an atomic",
        "    %0 = tt.atomic_rmw fadd, acq_rel, gpu, %b, %v, %m : (!tt.ptr<f32>, f32, i1) -> f32\n",
        (False, True, False),
    ),
    (
        "carried by a loop",
        "    %p:2 = scf.for %i = %c0 to %c1 step %c2 iter_args(%q = %a, %s = %c0) -> (!tt.ptr<f32>, i32)  : i32 {\n"
        "      %r = tt.addptr %q, %c2 : !tt.ptr<f32>, i32\n      scf.yield %r, %s : !tt.ptr<f32>, i32\n    }\n"
        + STORE.format("%p#0"),
        (True, False, False),
    ),
    (
        "written before it is carried there",
        "    %p = scf.for %i = %c0 to %c1 step %c2 iter_args(%q = %a) -> (!tt.ptr<f32>)  : i32 {\n"
        + STORE.format("%q")
        + "      %r = tt.addptr %b, %c2 : !tt.ptr<f32>, i32\n      scf.yield %r : !tt.ptr<f32>\n    }\n",
        (True, True, False),
    ),
    (
        "chosen by a branch",
        "    %p = scf.if %c -> (!tt.ptr<f32>) {\n      scf.yield %a : !tt.ptr<f32>\n    } else {\n"
        "      scf.yield %b : !tt.ptr<f32>\n    }\n" + STORE.format("%p"),
        (True, True, False),
    ),
    (
        "a while loop",
        "    %p = scf.while (%q = %a) : (!tt.ptr<f32>) -> !tt.ptr<f32> {\n      scf.condition(%c) %q : !tt.ptr<f32>\n"
        "    } do {\n    ^bb0(%r: !tt.ptr<f32>):\n" + STORE.format("%r") + "      scf.yield %r : !tt.ptr<f32>\n    }\n",
        (True, False, False),
    ),
    (
        "a jump",
        "    cf.br ^bb1(%a : !tt.ptr<f32>)\n  ^bb1(%r: !tt.ptr<f32>):\n" + STORE.format("%r"),
        (True, False, False),
    ),
    ("a call", "    tt.call @helper(%b) : (!tt.ptr<f32>) -> ()\n", (False, True, False)),
    ("an operation that is not known", "    ttx.scribble %a : !tt.ptr<f32>\n", (True, False, False)),
    (
        "a descriptor",
        "    %d = tt.make_tensor_descriptor %b, [%n], [%c1] : <f32>, <tensor<8xf32>>\n"
        "    tt.descriptor_store %d[%n], %v : !tt.tensordesc<tensor<8xf32>>, tensor<8xf32>\n",
        (False, True, False),
    ),
    (
        "a descriptor that is read",
        "    %d = tt.make_tensor_descriptor %b, [%n], [%c1] : <f32>, <tensor<8xf32>>\n"
        "    %v = tt.descriptor_load %d[%n] : !tt.tensordesc<tensor<8xf32>> -> tensor<8xf32>\n",
        (False, False, False),
    ),
    ("an address made of a number", "    %p = tt.int_to_ptr %n : i32 -> !tt.ptr<f32>\n" + STORE.format("%p"), None),
    ("pointers that are read", "    %p = tt.load %x : !tt.ptr<!tt.ptr<f32>>\n" + STORE.format("%p"), None),
)


class Kernel:
    """A compiled kernel, as far as its texts go."""

    def __init__(self, text: str) -> None:
        self.asm = {"source": None, "ttir": text}


@pytest.mark.parametrize(("body", "expected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_a_text(body: str, expected: Any) -> None:
    arguments = ("a", "b", 7)
    written = written_arguments(Kernel(HEAD + body + TAIL), {"a": "*fp32", "b": "*fp32", "n": "i32"}, arguments)
    if expected is not None:
        expected = [argument for argument, is_written in zip(arguments, expected, strict=True) if is_written]
    assert written == expected


def test_a_text_without_a_kernel_may_write_to_all_it_is_given() -> None:
    assert written_arguments(Kernel("module {\n}\n"), {"a": "*fp32"}, ("a",)) == ["a"]


def test_pointers_in_a_tuple_may_all_be_written() -> None:
    text = HEAD + TAIL
    assert written_arguments(Kernel(text), {"t": ("*fp32", "*fp32"), "n": "i32"}, (("a", "b"), 7)) == [("a", "b"), 7]
