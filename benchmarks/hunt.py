"""A hunt for faults of released Tritons: `python -m benchmarks.hunt -o FOLDER [FILE…] [--triton PYTHON…] [--budget S]`.

Kernels of scripts are recorded once, on the virtual GPU. Variants that have to compile and mean the same (other warps,
stages and CTAs, another target, operands exchanged, loops split, dead code) are drawn by chance and compiled by each
Triton. What fails in a pass, in LLVM or in an assembler is kept, one of each kind; of what compiles a share is executed
after each pass (`irscope verify --passes`) and checked for accesses and races (`irscope verify`). What is wrong is
reduced at the end, compiled once more by a file that Triton alone runs, and written to FOLDER as a text for an issue.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from irscope.analysis.reduce.model import Reduced, likeness_of
from irscope.api import record_all
from irscope.api.reduction.kept import KeptOf, failing_alike, if_it_holds, kept_meaning
from irscope.api.reduction.run import Reduction, origins_of
from irscope.errors import IrscopeError
from irscope.model.capture import Artifact, Capture, PassSnapshot
from irscope.model.recording_options import RecordingOptions
from irscope.record.process.requests import RecordRequest, request_for
from irscope.record.process.session import record_request
from irscope.record.variants.pool import VariantPool, own_request
from irscope.record.variants.reproduced import checked_program
from irscope.render.reproduction.program import render_reproduction
from irscope.render.text.searches import reduced_file, reduction_markdown
from irscope.render.text.verdict import render_meaning
from irscope.store.file import load, save
from irscope.verify.meaning import LOWERING, verify_passes
from irscope.verify.safety import QUICK_ELEMENTS, verify_launch
from irscope.verify.verdict import KERNEL

OWN_KERNELS = Path(__file__).with_name("hunted.py")
TARGETS = ("cuda:75", "cuda:80", "cuda:90", "cuda:100", "cuda:120", "hip:gfx942", "hip:gfx950", "hip:gfx1201")
WARPS, STAGES = (1, 2, 4, 8, 16), (1, 2, 3, 4, 5)
LIMIT_S = 60.0
_PROGRAMS = 4
"""Programs that are executed after each pass."""
_REFUSALS = ("out of resource", "not supported", "unsupported", "does not support", "requires", "must be")
"""What a compiler says of a kernel that it refuses as it should."""


# ── variants ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def exchanged(text: str, chosen: random.Random) -> str:
    """The IR with the operands of some commutative operations exchanged."""
    # %7 = arith.addf %5, %6 : tensor<…>
    pattern = r"(= arith\.(?:addf|mulf|addi|muli|andi|ori|maxsi|minsi) )(%[\w#]+), (%[\w#]+)"
    return re.sub(pattern, lambda one: f"{one[1]}{one[3]}, {one[2]}" if chosen.random() < 0.5 else one[0], text)


def with_dead_code(text: str, chosen: random.Random) -> str:
    """The IR with a value that is computed from another one, and not used."""
    # %7 = arith.addf %5, %6 : tensor<16xf32> loc(#loc4)
    lines = text.splitlines()
    places = [number for number, line in enumerate(lines) if re.match(r" +%\w+ = arith\.\w+ %\w+, %\w+ : [^,]*$", line)]
    if not places:
        return text
    number = chosen.choice(places)
    lines.insert(number + 1, re.sub(r"%\w+ =", "%hunt_dead =", lines[number], count=1))
    return "\n".join(lines)


def split_loop(text: str, chosen: random.Random) -> str:
    """The IR with one loop in two: its first iteration, and the others."""
    # %4:3 = scf.for %arg5 = %c0 to %c8 step %c1 iter_args(%arg6 = %1, …) -> (…)  : i32 {
    lines = text.splitlines()
    head = re.compile(r"( *)(?:%(\w+)(?::\d+)? = )?scf\.for %\w+ = (%\w+) to (%\w+) step (%\w+) .*\{$")
    places = [(number, match) for number, line in enumerate(lines) if (match := head.match(line))]
    if not places:
        return text
    number, match = chosen.choice(places)
    indent, result, first, last, step = match.groups()
    end = next(place for place in range(number + 1, len(lines)) if lines[place].startswith(f"{indent}}}"))
    kind = re.search(r" : (\w+) *\{$", lines[number])
    body, tail = lines[number + 1 : end], lines[end]
    middle = [f"{indent}%hunt_{name}" for name in ("next", "middle")]
    type_ = kind[1] if kind else "i32"
    made = [
        f"{middle[0]} = arith.addi {first}, {step} : {type_}", f"{middle[1]} = arith.minsi %hunt_next, {last} : {type_}"
    ]  # fmt: skip
    one = lines[number].replace(f" to {last} ", " to %hunt_middle ", 1)
    two = lines[number].replace(f"= {first} to", "= %hunt_middle to", 1)
    if result:
        one = one.replace(f"%{result}", "%hunt_first", 1)
        carried = re.search(r"iter_args\((.*?)\) ->", two)
        if carried is None:
            return text
        names = re.findall(r"(%\w+) = ", carried[1])
        values = ", ".join(
            f"{name} = %hunt_first" + (f"#{place}" if len(names) > 1 else "") for place, name in enumerate(names)
        )
        two = two.replace(carried[1], values, 1)
    return "\n".join([*lines[:number], *made, one, *body, tail, two, *body, *lines[end:]])


EDITS: dict[str, Callable[[str, random.Random], str]] = {
    "": lambda text, chosen: text,
    "operands exchanged": exchanged,
    "dead code": with_dead_code,
    "loop split": split_loop,
}


WAYS: tuple[tuple[str, dict[str, int]], ...] = (
    ("cuda:90", {"num_ctas": 2}),
    ("cuda:90", {"num_warps": 16, "num_stages": 5}),
    ("hip:gfx1201", {"num_warps": 8}),
    ("cuda:100", {"num_warps": 8, "num_stages": 2}),
    ("hip:gfx942", {"num_warps": 8, "num_stages": 4}),
    ("cuda:75", {}),
    ("cuda:120", {"num_warps": 1}),
    ("hip:gfx950", {"num_warps": 1, "num_stages": 3}),
    ("cuda:100", {"num_ctas": 2}),
)
"""What every kernel is compiled with first; then all is drawn by chance."""


def variants(captures: Sequence[Capture], version: str, chosen: random.Random) -> Iterator[tuple[str, RecordRequest]]:
    """(variant in words, request) without end."""
    for target, options in WAYS:
        for capture in chosen.sample(captures, len(captures)):
            yield _variant(capture, version, target, options, "", chosen)
    while True:
        target = chosen.choice(TARGETS)
        options = {"num_warps": chosen.choice(WARPS), "num_stages": chosen.choice(STAGES)}
        if target in ("cuda:90", "cuda:100") and chosen.random() < 0.25:
            options["num_ctas"] = 2
        if target.startswith("hip"):
            options["num_warps"] = min(options["num_warps"], 8)
        yield _variant(chosen.choice(captures), version, target, options, chosen.choice(["", "", *EDITS]), chosen)


def _variant(
    capture: Capture, version: str, target: str, options: dict[str, int], edit: str, chosen: random.Random
) -> tuple[str, RecordRequest]:
    asked = RecordingOptions(
        targets=(target,), options=tuple(options.items()), layouts=False, disassemble=False, timeout_s=LIMIT_S
    )
    request = own_request(capture, asked, version)
    words = ", ".join([f"{name}={value}" for name, value in options.items()] + [edit] * bool(edit))
    return f"{capture.name} {target} {words}", replace(request, text=EDITS[edit](request.text, chosen))


# ── what is wrong ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Suspect:
    """One thing that is wrong with a compile."""

    kind: str
    """`fails`, `changed`, `wrong`."""
    where: str
    """The pass or stage, without its number."""
    said: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What is the same fault."""
        return (self.kind, self.where, self.said)


def suspects(capture: Capture, executes: bool = True) -> Iterator[Suspect]:
    """What is wrong with a compile; a refusal of the front end, or for too few resources, is not.

    `executes`: whether what compiles is executed, too.
    """
    failure = capture.failure
    if failure is not None:
        likeness = likeness_of(failure)
        said = f"{failure.message} {failure.diagnostics}".lower()
        is_crash = failure.kind in ("abort", "timeout") or "assertion" in said
        is_refused = failure.kind in ("fit", "compile", "parse", "resources") or any(one in said for one in _REFUSALS)
        if (is_crash and "only supported on" not in said) or not is_refused:
            yield Suspect("fails", likeness.where, likeness.said)
    if failure is not None or not executes:
        return
    meaning = verify_passes(capture, programs=_PROGRAMS)
    if meaning.culprit is not None:
        yield Suspect("changed", meaning.culprit.label.partition("#")[0], capture.name)
    safety = verify_launch(capture, elements=QUICK_ELEMENTS)
    for violation in safety.violations:
        if violation.made_by != KERNEL:
            yield Suspect("wrong", violation.made_by.partition("#")[0], f"{violation.code} {capture.name}")


@dataclass(slots=True)
class Hunt:
    """One hunt: what was compiled, and what was found of each Triton."""

    folder: Path
    found: dict[tuple[str, str, str], dict[str, list[str]]]
    """Fault → version → the variants that show it."""
    counts: Counter[str]

    def run(self, interpreter: str, files: Sequence[Path], budget_s: float, seed: int, share: float) -> None:
        """Compile and judge variants by one Triton until the budget is spent; a share of them is executed."""
        with VariantPool(jobs=1, timeout_s=LIMIT_S, interpreter=interpreter) as pool:
            version = pool.compiler[0]
            captures = self._recorded(files)
            started = time.monotonic()
            chosen = random.Random(f"{seed} {version}")
            rows = variants(captures, version, chosen)
            while time.monotonic() - started < budget_s:
                words, request = next(rows)
                try:
                    made = pool.compile_one(request)
                    self.counts[f"{version}: compiles"] += 1
                    executes = chosen.random() < share
                    self.counts[f"{version}: executed"] += executes and made.has_compiled
                    wrong = [*suspects(made, executes)]
                except IrscopeError as error:
                    self.counts[f"{version}: not judged"] += 1
                    print(f"  not judged: {words}: {str(error)[:150]}", flush=True)
                    continue
                for one in wrong:
                    self._keep(one, version, words, made)

    def _recorded(self, files: Sequence[Path]) -> list[Capture]:
        """The launches of the files; those of an earlier hunt are taken from the folder."""
        folder = self.folder / "recorded"
        if not folder.is_dir():
            folder.mkdir(parents=True)
            for file in files:
                try:
                    made = record_all(file, target="cuda:90", snapshots="none", virtual=True)
                except IrscopeError as error:
                    print(f"  not recorded: {file}: {str(error)[:150]}", flush=True)
                    continue
                for capture in made:
                    save(capture, folder / f"{file.stem}-{capture.name}-{capture.id[:8]}.irscope")
        captures = [load(path) for path in sorted(folder.glob("*.irscope"))]
        return [one for one in captures if one.begun_from and one.launch.record is not None]

    def _keep(self, suspect: Suspect, version: str, words: str, capture: Capture) -> None:
        versions = self.found.setdefault(suspect.key, {})
        if version not in versions:
            print(f"  {version} {suspect.kind} {suspect.where}: {suspect.said[:150]}: {words}", flush=True)
            save(capture, self._path(suspect.key, version))
        versions.setdefault(version, []).append(words)
        rows = [{"key": key, "versions": value} for key, value in self.found.items()]
        (self.folder / "found.json").write_text(json.dumps(rows, indent=1))

    def _path(self, key: tuple[str, str, str], version: str) -> Path:
        number = [*self.found].index(key)
        place = re.sub(r"\W+", "-", key[1])
        return self.folder / f"{number:03}-{key[0]}-{place}-{version}.irscope"

    def reduce(self, interpreters: dict[str, str]) -> None:
        """Reduce one capture of each fault that was not reduced before, by the newest version that has it."""
        for key, versions in self.found.items():
            version = max(versions)
            path = self._path(key, version)
            issue = path.with_suffix(".md")
            if issue.is_file() or version not in interpreters:
                continue
            try:
                issue.write_text(reduced_issue(load(path), key, versions, interpreters[version]), "utf-8")
                print(f"  wrote {issue}", flush=True)
            except IrscopeError as error:
                print(f"  not reduced: {path.name}: {str(error)[:200]}", flush=True)


# ── what is written of it ─────────────────────────────────────────────────────────────────────────────────────────────


def reduced_issue(capture: Capture, key: tuple[str, str, str], versions: dict[str, list[str]], interpreter: str) -> str:
    """A text for an issue: the reduced IR, how it was found, and what Triton alone says of it."""
    if key[0] == "wrong" or key[1] == LOWERING:
        return (
            f"### {capture.name}: {key[2]} by {key[1]}\n\n{_versions(versions)}\n\n```\n{_evidence(capture, key)}```\n"
        )
    kept_of: KeptOf
    snapshot: PassSnapshot | None = None
    if key[0] == "fails":
        kept_of = failing_alike(capture)
    else:
        culprit = verify_passes(capture, programs=_PROGRAMS).culprit
        snapshot = next(one for one in capture.passes() if culprit is not None and one.label == culprit.label)
        kept_of = if_it_holds(kept_meaning(capture, snapshot))
    with VariantPool(jobs=1, timeout_s=LIMIT_S, interpreter=interpreter) as pool:
        stage, level = (snapshot.stage, "triton") if snapshot is not None else ("", "none")
        reduction = Reduction(pool, capture, kept_of, key[1], lambda text: None, True, stage, level)
        made = reduction.run(origins_of(capture, None, snapshot))
    parts = [reduction_markdown(made), _versions(versions)]
    if key[0] == "fails":
        parts += [
            f"The kernel's Python, with Triton alone: {_by_triton_alone(capture, interpreter)[0]}.",
            "The reduced IR, with Triton alone: {}.\n\n```python\n{}```".format(
                *_by_triton_alone(_compiled_again(made, interpreter), interpreter)
            ),
        ]
    return "\n\n".join(parts) + "\n"


def _evidence(capture: Capture, key: tuple[str, str, str]) -> str:
    """What `irscope verify` says of a fault whose IR is not reduced."""
    if key[1] == LOWERING:
        return render_meaning(verify_passes(capture, programs=_PROGRAMS))
    violations = verify_launch(capture, elements=QUICK_ELEMENTS).violations
    made = next(one for one in violations if one.made_by != KERNEL)
    return "".join(f"{line}\n" for line in (f"{made.code} {made.detail}", *made.evidence))


def _versions(versions: dict[str, list[str]]) -> str:
    return "\n".join(f"Triton {version}: {len(rows)} times, first {rows[0]}." for version, rows in versions.items())


def _compiled_again(made: Reduced, interpreter: str) -> Capture:
    """What the file of a reduction is compiled to by the command in it."""
    asked = RecordingOptions(
        into=made.into, plan=made.case.pipeline.plan, targets=(str(made.capture.target),), options=made.case.options,
        interpreter=interpreter, layouts=False, disassemble=False,
    )  # fmt: skip
    with TemporaryDirectory() as folder:
        path = Path(folder, "reduced.mlir")
        path.write_text(reduced_file(made))
        (again,) = record_request(request_for(path, asked)).captures
    # A text within a stage is what that stage begins with, where the plan leaves out the passes before it.
    stage = {"ttir": "source", "ttgir": "ttir", "glir": "source", "llir": "ttgir"}[made.into]
    return again.with_(artifacts=(Artifact(stage, made.text),))


def _by_triton_alone(capture: Capture, interpreter: str) -> tuple[str, str]:
    """(whether a file without irscope fails as the capture does, the file)."""
    try:
        program = render_reproduction(capture).text
    except IrscopeError as error:
        return f"not known: {error}", ""
    check = checked_program(program, capture, interpreter)
    return (f"does NOT fail alike: {check.failure}" if check.failure else "fails alike"), program


def main() -> None:
    """Hunt, reduce, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="scripts; default: benchmarks/hunted.py")
    parser.add_argument("--triton", action="append", default=[], help="a Python with another Triton; repeatable")
    parser.add_argument("--budget", type=float, default=600.0, help="seconds for each Triton")
    parser.add_argument("--executed", type=float, default=0.5, help="the share of the compiles that is executed, too")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-reduce", action="store_true")
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    known = given.output / "found.json"
    rows = json.loads(known.read_text()) if known.is_file() else []
    hunt = Hunt(given.output, {tuple(row["key"]): row["versions"] for row in rows}, Counter())
    interpreters: dict[str, str] = {}
    for interpreter in given.triton or [sys.executable]:
        with VariantPool(jobs=1, interpreter=interpreter) as pool:
            interpreters[pool.compiler[0]] = interpreter
        hunt.run(interpreter, given.files or [OWN_KERNELS], given.budget, given.seed, given.executed)
    if not given.no_reduce:
        hunt.reduce(interpreters)
    for name, count in sorted(hunt.counts.items()):
        print(f"{count:6} {name}")
    for key, versions in hunt.found.items():
        told = ", ".join(f"{version} ({len(rows)})" for version, rows in versions.items())
        print(f"| {key[0]} | {key[1]} | `{key[2][:100]}` | {told} |")


if __name__ == "__main__":
    main()
