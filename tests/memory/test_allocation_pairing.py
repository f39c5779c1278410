"""Operations of two texts of a module: each with itself, whatever passes renamed, moved or added between."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from irscope.memory.allocation import allocations_of, paired_lines
from irscope.model.capture import PassSnapshot
from irscope.store.file import load
from tests.memory.kernels import compiled

DATA = Path(__file__).parent.parent / "data" / "layouts"
NAMES = ("ttg.local_alloc", "ttg.convert_layout", "tt.reduce", "ttg.async_copy_global_to_local")


def text_of(name: str) -> str:
    return load(DATA / f"{name}.irscope").text("ttgir")


def passed(text: str) -> tuple[str, dict[int, int]]:
    """The text with other names of values and layouts and more operations; and each line's new number."""
    lines: list[str] = []
    numbers: dict[int, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        lines.append(re.sub(r"%(\w+)", r"%r_\1", line).replace("#blocked", "#layout").replace("#mma", "#other"))
        numbers[number] = len(lines)
        if "ttg.local_alloc" in line:
            lines.append("    %new = arith.constant 1 : i32")
    return "\n".join(lines), numbers


@pytest.mark.parametrize("name", ["flash_attention-cuda-90", "matmul-cuda-80", "matmul-hip-gfx942"])
def test_every_operation_is_paired_with_itself(name: str) -> None:
    text = text_of(name)
    other, numbers = passed(text)
    found = paired_lines(text, other, NAMES)
    assert found
    assert found == {line: numbers[line] for line in found}
    begins = re.compile(rf'(?:{"|".join(map(re.escape, NAMES))})[" ]')
    written = [number for number, line in enumerate(text.split("\n"), 1) if begins.search(line)]
    assert sorted(found) == written


def test_where_one_is_gone_none_of_its_likes_is_guessed() -> None:
    text = text_of("flash_attention-cuda-90")
    lines = text.split("\n")
    gone = next(number for number, line in enumerate(lines, 1) if "ttg.convert_layout" in line)
    other = "\n".join(line for number, line in enumerate(lines, 1) if number != gone)
    found = paired_lines(text, other, NAMES)
    assert gone not in found
    assert found == {line: line - (line > gone) for line in found}
    assert len(found) > 5


@pytest.mark.triton
@pytest.mark.parametrize(
    ("kernel", "target"), [("product", "cuda:90"), ("sums", "hip:gfx942"), ("gathered", "cuda:80")]
)
def test_buffers_know_their_operation_of_the_ttgir(kernel: str, target: str) -> None:
    capture = compiled(kernel, target)
    lines = capture.text("ttgir").split("\n")
    buffers = [one for memory in allocations_of(capture) for one in memory.buffers]
    assert buffers
    for one in buffers:
        line = lines[one.ttgir_line - 1]
        assert one.owner in line
        if one.kind == "buffer":
            shape = one.what.replace("×", "x")
            assert f"!ttg.memdesc<{shape}," in line


def test_without_a_ttgir_no_line_is_named() -> None:
    text = re.sub(r"(ttg\.local_alloc)", r"\1 {allocation.offset = 0 : i32}", text_of("flash_attention-cuda-90"))
    text = text.replace("module attributes {", "module attributes {ttg.shared = 65536 : i32, ", 1)
    capture = load(DATA / "flash_attention-cuda-90.irscope").with_(
        artifacts=(), snapshots=(PassSnapshot(0, "llir", "allocate_shared_memory", 1, changed=True, text=text),)
    )
    assert {one.ttgir_line for memory in allocations_of(capture) for one in memory.buffers} == {0}
