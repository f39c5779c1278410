"""Whether `irscope verify --passes` blames the right pass: `python -m benchmarks.meaning CAPTURE... [--planted N]`.

Without `--planted` every pass of the captures (real compiles) has to mean the same; what does not is printed. With it,
N miscompiles are planted: the IR after a pass is edited by a row of the table below, as if that pass had made it so.
Edits that change no bit of the launch's results, in all programs and on several inputs, are no miscompiles, and are
left out. With `--ptx` the PTX is edited instead, as if the lowering had made it so; its own bits tell what is none.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from irscope.errors import IrscopeError, NotRun, UsageError, WrongProgram
from irscope.machine.captured import Inputs, captured_inputs, run_text
from irscope.machine.values import Array
from irscope.model.capture import Capture, PassSnapshot
from irscope.store.file import load
from irscope.verify.lowering import left_by_ptx
from irscope.verify.meaning import MeaningVerdict, verify_lowering, verify_passes

_INPUTS = 2
"""Seeds on which an edit has to change no bit to be none."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One way in which a pass may go wrong."""

    name: str
    pattern: str
    """Of a line of the IR."""
    edit: str | Callable[[re.Match[str]], str]
    """What stands in place of the match, as `re.sub` takes it."""


_SWAPPED = r"\1\3, \2\4"


def _turned_root(match: re.Match[str]) -> str:
    return "math.sqrt" if match[0] == "math.rsqrt" else "math.rsqrt"


def _next_range(match: re.Match[str]) -> str:
    return f"tt.make_range {{end = {int(match[1]) + 1} : i32, start = 1 : i32"


def _later_wait(match: re.Match[str]) -> str:
    return f"{match[1]}{int(match[2]) + 2}"


MUTATIONS = (
    # tt.store %9, %8, %6 : tensor<1024x!tt.ptr<f32>, #blocked>
    Mutation("a store loses its mask", r"(tt\.store %\S+, %[^,\s]+), %\S+( [{:])", r"\1\2"),
    # %7 = tt.load %6, %mask, %other : …
    Mutation("a load loses its mask", r"(tt\.load %[^,\s]+), %[^,\s]+(?:, %\S+)?( [{:])", r"\1\2"),
    Mutation(
        "a load has another `other`",
        r"^( *)(%\S+ = tt\.load %\S+, %\S+, )(%[^,\s]+)( .*: (tensor<[^!]*?)x!tt\.ptr<(f\d+)>(.*>))$",
        r"\1%planted = arith.constant dense<1.000000e+00> : \5x\6\7\n\1\2%planted\4",
    ),
    Mutation("operands of a subtraction are swapped", r"(arith\.sub[fi] )(%[^,\s]+), (%\S+)( .*)$", _SWAPPED),
    Mutation("operands of a division are swapped", r"(arith\.(?:div|rem)\w+ )(%[^,\s]+), (%\S+)( .*)$", _SWAPPED),
    Mutation("the sides of a select are swapped", r"(arith\.select %\S+, )(%[^,\s]+), (%\S+)( .*)$", _SWAPPED),
    Mutation("a comparison takes the border in", r"arith\.cmpi slt,", "arith.cmpi sle,"),
    Mutation("a comparison is turned round", r"arith\.cmpi slt,", "arith.cmpi sge,"),
    Mutation("a comparison of floats is turned round", r"arith\.cmpf o[lg]t,", "arith.cmpf oeq,"),
    Mutation(
        "a loop begins one iteration late",
        r"^( *)(.*scf\.for %\S+ = )(%\S+)( to %\S+ step )(%\S+)(.*)$",
        r"\1%planted = arith.addi \3, \5 : i32\n\1\2%planted\4\5\6",
    ),
    Mutation(
        "a loop ends one iteration early",
        r"^( *)(.*scf\.for %\S+ = %\S+ to )(%\S+)( step )(%\S+)(.*)$",
        r"\1%planted = arith.subi \3, \5 : i32\n\1\2%planted\4\5\6",
    ),
    Mutation("a sum becomes a maximum", r"= arith\.addf (%\S+, %\S+ : f32)", r"= arith.maxnumf \1"),
    Mutation("a maximum becomes a minimum", r"= arith\.maxnumf", "= arith.minnumf"),
    Mutation("an addition becomes a subtraction", r"= arith\.addf", "= arith.subf"),
    Mutation("a product becomes a sum", r"= arith\.mulf", "= arith.addf"),
    Mutation("an index is added, not multiplied", r"= arith\.muli", "= arith.addi"),
    Mutation("an accumulator does not begin with zero", r"dense<0\.0+e\+00> : (?=tensor<\w+xf32)", "dense<1.0> : "),
    Mutation("the identity of a maximum is zero", r"dense<0xFF800000>", "dense<0.000000e+00>"),
    Mutation("a constant is another one", r"(arith\.constant (?:dense<)?)1\.(\d+e)", r"\g<1>2.\2"),
    Mutation("exp2 becomes exp", r"math\.exp2", "math.exp"),
    Mutation("exp becomes exp2", r"math\.exp ", "math.exp2 "),
    Mutation("a square root is turned over", r"math\.r?sqrt", _turned_root),
    Mutation("a range begins at one", r"tt\.make_range \{end = (\d+) : i32, start = 0 : i32", _next_range),
    Mutation("a program has another number", r"tt\.get_program_id x", "tt.get_program_id y"),
    Mutation("a wait lets more copies be late", r"(async_wait .*\{num = )(\d+)", _later_wait),
    Mutation(
        "a buffer is stale",
        r"^( *)(.*memdesc_index %[^\[,]+[\[,] ?)(%[^\],\s]+)(\]? .*)$",
        r"\1%planted = arith.constant 0 : i32\n\1\2%planted\4",
    ),
    Mutation("a store to shared memory is lost", r"^ *ttg\.local_store .*$", ""),
    Mutation("a store is lost", r"^ *tt\.(descriptor_)?store .*$", ""),
    Mutation("a store of a tile is lost", r"^ *ttng\.async_tma_copy_local_to_global .*$", ""),
    Mutation(
        "a copy is lost",
        r"^( *%\S+ = )ttg\.async_copy_global_to_local .*$",
        r"\1ub.poison : !ttg.async.token",
    ),
    Mutation(
        "a wait looks at the other phase",
        r"^( *)(ttng\.wait_barrier %[^,\s]+, )(%[^,\s]+)(.*)$",
        r"\1%planted_one = arith.constant 1 : i32\n\1%planted = arith.xori \3, %planted_one : i32\n\1\2%planted\4",
    ),
    Mutation("a wait for a barrier is lost", r"^ *ttng\.wait_barrier .*$", ""),
    Mutation(
        "a dot forgets its accumulator",
        r"^( *)(%\S+ = (?:tt\.dot|ttng\.warp_group_dot) %\S+, %\S+, )%[^,\s]+( .* -> (tensor<.*>))$",
        r"\1%planted = arith.constant dense<1.000000e+00> : \4\n\1\2%planted\3",
    ),
    Mutation(
        "two values of a loop are exchanged", r"(scf\.yield )(%\S+), (%\S+?)(,? .*: (tensor<[^>]*>), \5.*)$", _SWAPPED
    ),
    Mutation("an atomic addition becomes a maximum", r"tt\.atomic_rmw fadd", "tt.atomic_rmw max"),
)


_TWO = r"(\S+\s+%\w+, )(%\w+), (%\w+);"
PTX_MUTATIONS = (
    Mutation("operands of a subtraction are swapped", r"(sub\." + _TWO[1:], r"\1\3, \2;"),
    Mutation("operands of a division are swapped", r"(div\." + _TWO[1:], r"\1\3, \2;"),
    Mutation("an addition becomes a subtraction", r"\badd(\.(?:rn\.)?(?:f|bf)\w+\s)", r"sub\1"),
    Mutation("a product becomes a sum", r"\bmul(\.(?:rn\.)?(?:f|bf)\w+\s)", r"add\1"),
    Mutation("a fused sum loses a term", r"\bfma\.rn(\.\w+\s+%\w+, %\w+, %\w+), %\w+;", r"mul\1;"),
    Mutation("a maximum becomes a minimum", r"\bmax\.", "min."),
    Mutation("exp2 is left out", r"ex2\.approx\S*(\s)", r"mov.f32\1"),
    Mutation("a comparison is turned round", r"setp\.lt\.", "setp.ge."),
    Mutation("a comparison takes the border in", r"setp\.lt\.", "setp.le."),
    Mutation("a comparison of floats is turned round", r"setp\.gt\.f", "setp.lt.f"),
    Mutation("the sides of a select are swapped", r"(selp\.\S+\s+%\w+, )([^,]+), ([^,]+), ", r"\1\3, \2, "),
    Mutation("a shuffle takes another lane", r"(shfl\.sync\.\S+\s.*, )(?:16|8|4|2), ", r"\g<1>1, "),
    Mutation("a load is one element off", r"(ld\.global\.\S+ .*\[ ?%\w+ \+ )0( ?\])", r"\g<1>4\2"),
    Mutation("a store is lost", r".*\bst\.global\..*", ""),
    Mutation("a store to shared memory is lost", r".*\bst(?:matrix\S*)?\.shared\..*", ""),
    Mutation("a load of shared memory is off", r"(ld\.shared\.b32\s.*\[%\w+)\]", r"\1+4]"),
    Mutation("a shift by one more", r"(shl\.b32\s+%\w+, %\w+, )(\d);", lambda match: f"{match[1]}{int(match[2]) + 1};"),
    Mutation("a mask of bits is narrower", r"(and\.b32\s+%\w+, %\w+, )(\d+);", lambda m: f"{m[1]}{int(m[2]) >> 1};"),
    Mutation("an index is added, not multiplied", r"mul\.lo\.s32", "add.s32"),
    Mutation("a constant is another one", r"0f3F800000", "0f40000000"),
    Mutation("bytes are permuted otherwise", r"(prmt\.b32\s.*, )0x5410U?;", r"\g<1>0x1054;"),
    Mutation("a copy is one element off", r"(cp\.async\.c[ag]\S+ \[ ?%\w+ \+ )0( ?\])", r"\g<1>16\2"),
    Mutation(
        "the halves of a conversion are swapped",
        r"cvt\.rn(\.bf16x2|\.f16x2)(\.f32\s+%\w+, )(%\w+), (%\w+);",
        r"cvt.rn\1\2\4, \3;",
    ),
    Mutation("a product forgets its sum", r"(wgmma\.mma_async\S* .*), p, (1|-1), (1|-1)", r"\1, 0, \2, \3"),
    Mutation("the coordinates of a tile are swapped", r"(bulk\.tensor\.2d\S* .*\{)(%\w+), (%\w+)\}", r"\1\3, \2}"),
    Mutation("a tile lies elsewhere in shared memory", r"(bulk\.tensor\.2d\.shared\S* \[%\w+)\]", r"\1+128]"),
    Mutation("a tile is swizzled otherwise", r"(tensormap\.replace\.tile\.swizzle_mode\S* .*, 0x)3;", r"\g<1>2;"),
    Mutation("a descriptor has another stride", r"(tensormap\.replace\.tile\.global_stride\S* .*, )%\w+;", r"\g<1>64;"),
    Mutation("a descriptor ends earlier", r"(tensormap\.replace\.tile\.global_dim\S* .*, )%\w+;", r"\g<1>24;"),
    Mutation("a wait for an mbarrier is lost", r"mbarrier\.try_wait\.parity\S* +(\w+), .*;", r"mov.pred \1, -1;"),
    Mutation("a copy of a tile to memory is lost", r".*bulk\.tensor\.2d\.global.*", ""),
    Mutation("a sum of a tile becomes a maximum", r"(cp\.reduce\S*)\.add\.", r"\1.max."),
    Mutation("a product in tensor memory forgets its sum", r"(tcgen05\.mma\S* .*, )%\w+;", r"\g<1>0;"),
    Mutation("the factors of a product are swapped", r"(tcgen05\.mma\S* \[[^]]*\], )(%\w+), (%\w+)", r"\1\3, \2"),
    Mutation("a load of tensor memory is a column off", r"(tcgen05\.ld\S* .*\[%\w+ \+ )0\]", r"\g<1>1]"),
    Mutation("a store to tensor memory is lost", r".*tcgen05\.st\..*", ""),
    Mutation("a commit is lost", r".*tcgen05\.commit.*", ""),
    Mutation("a factor is negative", r"(wgmma\.mma_async\S* .*, \w+), 1, 1(?=[,;])", r"\1, -1, 1"),
)
"""The same, of the PTX."""


def sites(text: str, mutations: Sequence[Mutation] = MUTATIONS) -> Iterator[tuple[Mutation, int]]:
    """Each mutation with each line that it can edit."""
    for number, line in enumerate(text.splitlines()):
        for mutation in mutations:
            if re.search(mutation.pattern, _unlocated(line)):
                yield mutation, number


def _unlocated(line: str) -> str:
    # … : f32 loc(#loc12)
    return re.sub(r" loc\(.*\)$", "", line)


def mutated(text: str, mutation: Mutation, number: int) -> str:
    """The text with one line edited."""
    lines = text.splitlines()
    lines[number] = re.sub(mutation.pattern, mutation.edit, _unlocated(lines[number]), count=1)
    return "\n".join(lines)


def planted(capture: Capture, chosen: random.Random) -> Iterator[tuple[Mutation, PassSnapshot, Capture, str, str]]:
    """Captures in each of which one pass did something wrong, with the text before and after the edit; without end."""
    steps = [
        (place, one, text)
        for place, one in enumerate(capture.snapshots)
        if one.stage in ("ttir", "ttgir") and one.group == "mlir" and (text := capture.text_after(one)) is not None
    ]
    before = [capture.begun_text, *[text for _, _, text in steps]]
    steps = [step for step, text in zip(steps, before, strict=False) if step[2] != text]
    while steps and capture.launch.grid is not None:
        place, snapshot, text = chosen.choice(steps)
        options: dict[str, list[tuple[Mutation, int]]] = {}
        for mutation, number in sites(text):
            options.setdefault(mutation.name, []).append((mutation, number))
        if not options:
            continue
        mutation, number = chosen.choice(options[chosen.choice(sorted(options))])
        edited = mutated(text, mutation, number)
        if edited == text:
            continue
        wrong = replace(snapshot, text=edited)
        yield mutation, snapshot, replace(capture, snapshots=(*capture.snapshots[:place], wrong)), text, edited


def planted_in_ptx(capture: Capture, chosen: random.Random) -> Iterator[tuple[Mutation, Capture]]:
    """Captures whose PTX has one edit; without end."""
    text = capture.texts.get("ptx", "")
    options: dict[str, list[tuple[Mutation, int]]] = {}
    for mutation, number in sites(text, PTX_MUTATIONS):
        options.setdefault(mutation.name, []).append((mutation, number))
    while options and capture.launch.grid is not None:
        mutation, number = chosen.choice(options[chosen.choice(sorted(options))])
        edited = mutated(text, mutation, number)
        artifacts = tuple(replace(one, data=edited) if one.stage == "ptx" else one for one in capture.artifacts)
        yield mutation, capture.with_(artifacts=artifacts, snapshots=capture.snapshots)


def changes_ptx(capture: Capture, wrong: Capture) -> bool:
    """Whether the PTX of program 0 leaves other bits, on any of the inputs, or never ends; raises NotRun."""
    for seed in range(_INPUTS):
        right = left_by_ptx(capture, _drawn(capture, seed), [0])
        try:
            found = left_by_ptx(wrong, _drawn(capture, seed), [0])
        except WrongProgram:
            return True
        if any(right[name].tobytes() != found[name].tobytes() for name in right):
            return True
    return False


def plant_in_ptx(captures: list[Path], count: int, seed: int) -> Counter[str]:
    """Plant faults of the lowering, and print those that are not reported."""
    chosen = random.Random(seed)
    streams = {path: planted_in_ptx(capture, chosen) for path in captures if (capture := load(path)).has_compiled}

    def judge(path: Path, step: tuple[Mutation, Capture]) -> str:
        mutation, wrong = step
        if not changes_ptx(load(path), wrong):
            return ""
        found = verify_lowering(wrong)
        if found.answer == "changed":
            return "reported"
        print(f"  {found.answer}: {path.stem}: {mutation.name}: {found.detail[:200]}", flush=True)
        return f"missed ({found.answer})"

    return _judged(streams, judge, count, chosen)


def is_effective(capture: Capture, before: str, after: str) -> bool:
    """Whether an edit changes a bit of the results of any program, on any of the inputs, or makes the kernel fail."""
    grid = capture.launch.grid or (1, 1, 1)
    for seed in range(_INPUTS):
        baseline = run_text(before, grid, _drawn(capture, seed))
        try:
            found = run_text(after, grid, _drawn(capture, seed))
        except WrongProgram:
            return True
        if any(baseline[name].tobytes() != found[name].tobytes() for name in baseline):
            return True
    return False


def _drawn(capture: Capture, seed: int) -> Inputs:
    inputs = captured_inputs(capture, seed=seed)
    generator = np.random.default_rng(seed)
    for tensor in inputs.tensors.values():
        if tensor.dtype.kind not in "iub":
            drawn: Array = generator.standard_normal(tensor.shape) * (1 if seed else 3) - seed
            tensor[...] = drawn.astype(tensor.dtype)
    return inputs


def plant(captures: list[Path], count: int, seed: int) -> Counter[str]:
    """Plant miscompiles, and print those that are not blamed on their pass."""
    chosen = random.Random(seed)

    def judge(path: Path, step: tuple[Mutation, PassSnapshot, Capture, str, str]) -> str:
        mutation, snapshot, wrong, before, after = step
        if not is_effective(wrong, before, after):
            return ""
        verdict = verify_passes(wrong)
        outcome = _outcome(verdict, snapshot)
        if outcome != "blamed":
            print(f"  {outcome}: {path.stem} {snapshot.label}: {mutation.name}", flush=True)
            for row in verdict.rows[-1:]:
                print(f"    {row.label} {row.answer} {row.detail[:200]}", flush=True)
        return outcome

    return _judged({path: planted(load(path), chosen) for path in captures}, judge, count, chosen)


_Step = TypeVar("_Step", bound=tuple[Any, ...])


def _judged(
    streams: dict[Path, Iterator[_Step]], judge: Callable[[Path, _Step], str], count: int, chosen: random.Random
) -> Counter[str]:
    """Plant so many faults, of each mutation a twelfth at most, and count how each was judged.

    `judge`: of a fault, which begins with its mutation; empty where it changes no result.
    """
    results: Counter[str] = Counter()
    of_kind: Counter[str] = Counter()
    tries = 0
    while sum(of_kind.values()) < count and streams and tries < 20 * count:
        tries += 1
        path = chosen.choice(sorted(streams))
        step = next(streams[path], None)
        if step is None:
            del streams[path]
            continue
        mutation: Mutation = step[0]
        if of_kind[mutation.name] > count // 12:
            continue
        try:
            outcome = judge(path, step)
        except (NotRun, WrongProgram, UsageError) as error:
            results["not run"] += 1
            print(f"  not run: {path.stem}: {mutation.name}: {str(error)[:120]}", flush=True)
            continue
        results[outcome or "no miscompile"] += 1
        if outcome:
            of_kind[mutation.name] += 1
    for name, number in sorted(of_kind.items()):
        print(f"  {number:3} {name}")
    return results


def _outcome(verdict: MeaningVerdict, snapshot: PassSnapshot) -> str:
    if verdict.culprit is None:
        return f"missed ({verdict.answer})"
    return "blamed" if verdict.culprit.label == snapshot.label else f"blamed on {verdict.culprit.label}"


def check_compiles(captures: list[Path]) -> Counter[str]:
    """Print each pass of real compiles that is not known to mean the same."""
    results: Counter[str] = Counter()
    for path in captures:
        begin = time.process_time()
        try:
            verdict = verify_passes(load(path))
        except IrscopeError as error:
            print(f"  {path.stem}: {error}", flush=True)
            continue
        results[f"compiles {verdict.answer}"] += 1
        for row in (*verdict.rows, *([verdict.lowering] if verdict.lowering is not None else [])):
            kind = "lowering" if row is verdict.lowering else "passes"
            results[f"{kind} {row.answer}, {row.arithmetic or 'not run'}"] += 1
            if row.answer != "same":
                print(f"  {path.stem} {row.label}: {row.answer}: {row.detail[:200]}", flush=True)
        if verdict.reason:
            print(f"  {path.stem}: {verdict.reason}", flush=True)
        results["processor seconds"] += round(time.process_time() - begin)
    return results


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("captures", nargs="+", type=Path)
    parser.add_argument("--planted", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ptx", action="store_true", help="plant in the PTX")
    given = parser.parse_args()
    if given.planted is not None and given.ptx:
        results = plant_in_ptx(given.captures, given.planted, given.seed)
    elif given.planted is None:
        results = check_compiles(given.captures)
    else:
        results = plant(given.captures, given.planted, given.seed)
    for name, count in sorted(results.items()):
        print(f"{count:6} {name}")
    sys.exit(int(any(name.startswith(("missed", "blamed on")) for name in results)))


if __name__ == "__main__":
    main()
