"""How long comparing takes, and whether it grows with the length alone: python benchmarks/diff.py.

The last table compiles the flash attention of tests/data/diff, and needs Triton; the others do not.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tests" / "data" / "diff")]

from irscope.analysis.diff.texts import diff_texts  # noqa: E402
from irscope.ir.columns import read_body  # noqa: E402
from irscope.ir.mlir.reader import parse_mlir  # noqa: E402
from irscope.render.text.diff import render_unified  # noqa: E402

# "// -----// IR Dump Before CSEPass: cse ('builtin.module' operation) //----- //"
HEADER = re.compile(r"^// -----// IR Dump Before (\S+?):? .*//----- //\n", re.MULTILINE)
INNER = re.compile(r"^// -----// .*", re.MULTILINE)


def llvm_dialect(lines: int, seed: int) -> list[str]:
    """A kernel in the LLVM dialect with about that many operations, as Triton's lowering makes them."""
    rng = random.Random(seed)
    struct = "!llvm.struct<(" + ", ".join(["f32"] * 16) + ")>"
    body: list[str] = []
    numbers = ["%arg0", "%arg1"]
    structs = ["%s0"]
    body.append(f"    %s0 = llvm.mlir.undef : {struct}")
    while len(body) < lines:
        name = f"%{len(body)}"
        one, other = rng.choice(numbers[-40:]), rng.choice(numbers[-200:])
        match rng.randint(0, 5):
            case 0:
                body.append(f"    {name} = llvm.mlir.constant({rng.randint(0, 4096)} : i32) : i32")
            case 1:
                body.append(f"    {name} = llvm.{rng.choice(['add', 'mul', 'xor', 'or', 'and'])} {one}, {other} : i32")
            case 2:
                body.append(f'    {name} = llvm.icmp "slt" {one}, {other} : i32')
                body.append(f"    %{len(body)} = llvm.select {name}, {one}, {other} : i1, i32")
                name = f"%{len(body) - 1}"
            case 3:
                body.append(f"    {name} = llvm.insertvalue {one}, {structs[-1]}[{rng.randint(0, 15)}] : {struct}")
                structs.append(name)
                continue
            case 4:
                body.append(
                    f"    {name} = llvm.extractvalue {rng.choice(structs[-9:])}[{rng.randint(0, 15)}] : {struct}"
                )
            case _:
                body.append(f"    llvm.store {one}, %p : i32, !llvm.ptr<3>")
                continue
        numbers.append(name)
    return body


def module_of(body: list[str], prefix: str = "%") -> str:
    """The body as a module, its values renamed."""
    text = "\n".join(body)
    if prefix != "%":
        text = re.sub(r"%(\d+)\b", rf"{prefix}\1", text)
    head = "module {\n  llvm.func @kernel(%arg0: i32, %arg1: i32, %p: !llvm.ptr<3>) {\n"
    return f"{head}{text}\n    llvm.return\n  }}\n}}\n"


def altered(body: list[str], share: float, seed: int) -> list[str]:
    """The body with that share of its lines altered, dropped or doubled."""
    rng = random.Random(seed)
    changed: list[str] = []
    for line in body:
        if rng.random() >= share:
            changed.append(line)
            continue
        kind = rng.randint(0, 2)
        if kind == 0 and "constant(" in line:
            changed.append(line.replace("constant(", "constant(9", 1))
        elif kind == 1:
            changed += [line, f"    llvm.store %arg0, %p : i32, !llvm.ptr<{rng.randint(4, 9)}>"]
        elif " = " in line:
            changed.append(line.replace("llvm.add", "llvm.sub", 1))
    return changed


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of the best of three, everything read anew."""
    best, value = float("inf"), None
    for _ in range(3):
        read_body.cache_clear()
        start = time.process_time()
        value = action()
        best = min(best, time.process_time() - start)
    return best, value


def growth() -> None:
    print("Two texts in the LLVM dialect, values renamed throughout (processor seconds)")
    print(f"{'lines':>8} {'read':>8} {'renamed':>9} {'1 % altered':>12} {'unrelated':>10} {'drawn':>7}")
    for lines in (1_000, 10_000, 100_000):
        body = llvm_dialect(lines, seed=1)
        left, renamed = module_of(body), module_of(body, "%v")
        changed = module_of(altered(body, 0.01, seed=2), "%v")
        unrelated = module_of(llvm_dialect(lines, seed=3), "%v")
        read, _ = timed(lambda text=left: parse_mlir(text))
        same, empty = timed(lambda a=left, b=renamed: diff_texts(a, b, "mlir"))
        assert empty.is_empty
        some, diff = timed(lambda a=left, b=changed: diff_texts(a, b, "mlir"))
        other, _ = timed(lambda a=left, b=unrelated: diff_texts(a, b, "mlir"))
        drawn, _ = timed(lambda d=diff: render_unified(d))
        print(f"{lines:>8} {read:>8.3f} {same:>9.3f} {some:>12.3f} {other:>10.3f} {drawn:>7.3f}   {diff.summary}")


def flash_attention() -> None:
    try:
        from make import compile_apart
    except ImportError as error:
        print(f"left out: {error}")
        return
    print("\nAll consecutive snapshots of a flash attention forward")
    print(
        f"{'target':>10} {'passes':>7} {'changed':>8} {'lines':>8} {'compile s':>10} {'diffs s':>9} {'slowest s':>10}"
    )
    for target in ("cuda:80", "cuda:90", "cuda:100", "hip:gfx942"):
        seconds = float(compile_apart("flash_attention", target, 4)["seconds"])
        with tempfile.TemporaryDirectory() as folder:
            dump = str(Path(folder) / "dump")
            compile_apart("flash_attention", target, 4, dump)
            modules = [INNER.split(text)[0] for text in HEADER.split(Path(dump).read_text("utf-8"))[2::2]]
        read_body.cache_clear()
        total = slowest = 0.0
        changed = lines = 0
        for before, after in pairwise(modules):
            if before == after:
                continue
            start = time.process_time()
            diff_texts(before, after, "mlir")
            taken = time.process_time() - start
            total, slowest = total + taken, max(slowest, taken)
            changed += 1
            lines += before.count("\n") + after.count("\n")
        print(f"{target:>10} {len(modules):>7} {changed:>8} {lines:>8} {seconds:>10.2f} {total:>9.2f} {slowest:>10.2f}")


def main() -> None:
    """Print both tables."""
    growth()
    flash_attention()


if __name__ == "__main__":
    main()
