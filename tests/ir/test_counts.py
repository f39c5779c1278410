"""Operation counts, against what other readers count."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from irscope.ir.asm import parse_functions
from irscope.ir.counts import operation_counts

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize("path", sorted((DATA / "diff").glob("*.sass.xz")), ids=lambda path: path.name)
def test_sass_counts_are_its_instructions(path: Path) -> None:
    from irscope.ir.sass import format_sass
    from irscope.ir.sass_reader import parse_sass

    text = format_sass(
        [function.without_padding() for function in parse_sass(lzma.decompress(path.read_bytes()).decode())]
    )
    instructions = [item for function in parse_functions("sass", text) for item in function.instructions]
    counts = operation_counts(text, "sass")
    assert counts.total() == len(instructions) > 50
    assert counts["EXIT"] == sum(item.opcode == "EXIT" for item in instructions) > 0


def test_a_name_is_a_whole_token() -> None:
    text = "define void @k() {\n  %1 = add i32 1, 2\n  %2 = addrspacecast ptr %p to ptr addrspace(1)\n  ret void\n}\n"
    assert operation_counts(text, "llvm") == {"add": 1, "addrspacecast": 1, "ret": 1}
