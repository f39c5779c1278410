"""The kinds of mutated files, and what is asked of each: every command that views it, every reader of its language."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from irscope.analysis.diff.texts import diff_texts
from irscope.analysis.flow.control_flow_fold import fold_flows
from irscope.analysis.flow.dataflow import read_dataflow
from irscope.ir.asm.control_flow import read_control_flow, read_functions
from irscope.ir.asm.readers import parse_amdgcn, parse_ptx
from irscope.ir.asm.sass import parse_sass
from irscope.ir.columns import operation_counts, read_body
from irscope.ir.locations.stages import filter_lines, read_locations
from irscope.ir.locations.strip import strip_locations
from irscope.ir.logs.dump import captures_from_log
from irscope.ir.logs.launch_text import launch_of_module
from irscope.ir.mlir.reader import parse_mlir
from irscope.layout.rows import layout_rows
from irscope.model.capture import Artifact, Capture, PassSnapshot, stage_named
from irscope.render.text.diff import render_side_by_side, render_unified
from irscope.render.text.terminal import highlight
from irscope.store.file import from_bytes, load, save, to_bytes
from tests.hostile.mutations import change_value, mutated_bytes, mutated_capture, mutated_text
from tests.hostile.originals import LANGUAGES, binaries, capture_files, inductor_files, logs, texts, traces
from tests.hostile.viewing import COMMANDS, run_quietly
from tests.hostile.worker import Case, Step

KINDS = ("captures", "logs", *LANGUAGES)
_CUT = 300_000
_PARSERS: dict[str, Callable[[str], object]] = {
    "ttir": parse_mlir, "ttgir": parse_mlir, "ptx": parse_ptx, "sass": parse_sass,
    "llir": partial(read_body, kind="llvm", ignore=frozenset({"locations"})), "amdgcn": parse_amdgcn,
}  # fmt: skip


def steps_of(case: Case, folder: Path) -> Iterator[Step]:
    """What is asked of a case; its files are in `folder`."""
    draw = random.Random(f"{case.kind} {case.seed}")
    if case.kind == "captures":
        return _of_capture(case.seed, draw, folder)
    if case.kind == "logs":
        if case.seed % 5 == 4:
            return _of_trace(draw, folder) if case.seed % 2 else _of_inductor(draw, folder)
        return _of_cache(draw, folder) if case.seed % 3 == 0 else _of_log(draw, folder)
    return _of_text(case.kind, draw, folder)


def unmutated(folder: Path) -> Iterator[Step]:
    """Every command on the captures as they are: none may fail. Also loads what the workers are forked with."""
    for path in capture_files():
        yield from _viewing(path, path, folder, must_work=True)


def _viewing(file: Path, other: Path, out: Path, *, must_work: bool = False) -> Iterator[Step]:
    stages = load(other).stages
    for words in COMMANDS:
        command = tuple(word.format(file=file, other=other, out=out) for word in words)
        named = {"ptx", "sass", "amdgcn"} & set(",".join(words).split(","))
        yield Step(" ".join(words), command, must_work and named <= set(stages))


def _of_capture(seed: int, draw: random.Random, folder: Path) -> Iterator[Step]:
    original = draw.choice(capture_files())
    file = folder / "mutated.irscope"
    file.write_bytes(mutated_capture(original.read_bytes(), seed))
    yield from _viewing(file, original, folder)


def _of_log(draw: random.Random, folder: Path) -> Iterator[Step]:
    log = draw.choice(logs())
    if draw.random() < 0.9:
        # A part of it, which is as a log that was cut; from its beginning half of the time.
        start = draw.randrange(len(log)) if draw.random() < 0.5 else 0
        log = log[start : start + draw.choice((20_000, 100_000, _CUT))]
    others = [draw.choice(logs())[:100_000], draw.choice(texts("ptx"))]
    text = mutated_text(log, draw, others) if draw.random() < 0.95 else log
    data = _encoded(text)
    if draw.random() < 0.1:
        data = gzip.compress(data, 1)
        data = mutated_bytes(data, draw) if draw.random() < 0.5 else data
    file, made = folder / "mutated.log", folder / "made"
    file.write_bytes(data)
    made.mkdir()
    yield Step("captures_from_log", partial(_round_trip, _encoded(text).decode("utf-8", "surrogateescape")))
    yield Step("import LOG --json", ("import", str(file), "--json"))
    yield Step("import LOG -o FOLDER/", ("import", str(file), "-o", str(made / "x.irscope")))
    yield from _look_at_stored(made)


def _of_trace(draw: random.Random, folder: Path) -> Iterator[Step]:
    """A trace of which values, lines or bytes are mutated."""
    events = draw.choice(traces()).splitlines(keepends=True)
    for at in draw.sample(range(len(events)), draw.randint(0, 3)):
        event = json.loads(events[at])
        change_value(event, draw)
        events[at] = json.dumps(event) + "\n"
    text = "".join(events)
    text = mutated_text(text, draw) if draw.random() < 0.5 else text
    data = _encoded(text)
    if draw.random() < 0.3:
        data = b"".join(gzip.compress(line, 1) for line in data.splitlines(keepends=True))
        data = mutated_bytes(data, draw) if draw.random() < 0.5 else data
    file, made = folder / "mutated.ndjson", folder / "made"
    file.write_bytes(data)
    made.mkdir()
    yield Step("import TRACE --json", ("import", str(file), "--json"))
    yield Step("import TRACE -o FOLDER/", ("import", str(file), "-o", str(made / "x.irscope")))
    yield from _look_at_stored(made)


def _of_inductor(draw: random.Random, folder: Path) -> Iterator[Step]:
    """The folders of TorchInductor's, of which files are mutated, missing, links, folders or pipes."""
    made = folder / "made"
    made.mkdir()
    files = inductor_files()
    changed = set(draw.sample(sorted(name for name in files if name.endswith(".py")), 4))
    for name, text in files.items():
        path = folder / "inductor" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_encoded(mutated_text(text, draw) if name in changed else text))
    for name in draw.sample(sorted(files), draw.randint(0, 3)):
        _mutate_file(folder / "inductor" / name, draw)
    yield Step("import INDUCTOR -o", ("import", str(folder / "inductor"), "-o", str(made / "x.irscope")))
    yield from _look_at_stored(made)


def _encoded(text: str) -> bytes:
    """A text as bytes: what stands for a byte that is no character becomes it, other surrogates stay what they are."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _round_trip(text: str) -> None:
    """A log's captures, each as its file gives it back."""
    for capture in captures_from_log(text, "log")[:3]:
        if from_bytes(to_bytes(capture)) != capture:
            raise AssertionError("a log's capture is not what its file holds")


def _of_cache(draw: random.Random, folder: Path) -> Iterator[Step]:
    """A cache of Triton's with two variants, of which files are mutated, missing, links, folders or pipes."""
    cache, made = folder / "cache", folder / "made"
    made.mkdir()
    for number in range(2):
        variant = cache / ("AB" * 20 + str(number))
        variant.mkdir(parents=True)
        capture = load(draw.choice(capture_files()))
        name = draw.choice((capture.name, capture.name, "a" * 200, "k\x1b[31m", "-o", "核", "a b"))
        for item in capture.artifacts:
            if item.stage not in ("sass", "source"):
                data = binaries().get(item.stage, item.data)
                (variant / f"{name}.{item.stage}").write_bytes(data if isinstance(data, bytes) else data.encode())
        metadata = {
            "target": {"backend": capture.target.backend, "arch": capture.target.arch, "warp_size": 32},
            "num_warps": 4, "num_stages": 3, "num_ctas": 1, "shared": 16, "name": name, "hash": "ab" * 32,
            "triton_version": "3.9.0", "cluster_dims": [1, 1, 1], "extern_libs": [["libdevice", "x"]], "arch": "sm90",
        }  # fmt: skip
        (variant / f"{name}.json").write_text(json.dumps(metadata))
        (variant / f"__grp__{name}.json").write_text(json.dumps({"child_paths": {}}))
        for path in draw.sample(sorted(variant.iterdir()), draw.randint(0, 3)):
            _mutate_file(path, draw)
    yield Step("ls --cache-dir", ("ls", "--cache-dir", str(cache)))
    yield Step("ls --cache-dir --json", ("ls", "--cache-dir", str(cache), "--json"))
    yield Step("import FOLDER -o", ("import", str(cache), "-o", str(made / "x.irscope")))
    yield Step("import FOLDER --variant", ("import", str(cache), "--variant", "AB", "--json"))
    yield from _look_at_stored(made)


def _mutate_file(path: Path, draw: random.Random) -> None:
    data = path.read_bytes()
    kind = draw.random()
    if kind < 0.15 or not data:
        path.unlink()
        {
            0: lambda: path.symlink_to("/proc/self/environ"), 1: path.mkdir, 2: lambda: os.mkfifo(path),
            3: lambda: path.symlink_to(path.name), 4: lambda: path.write_bytes(b""), 5: lambda: None,
        }[draw.randrange(6)]()  # fmt: skip
    elif data[:4] == b"\x7fELF" or kind < 0.3:
        path.write_bytes(mutated_bytes(data, draw))
    else:
        text = mutated_text(data.decode("utf-8", "replace"), draw)
        path.write_bytes(_encoded(text))


def _look_at_stored(made: Path) -> Iterator[Step]:
    """Some commands on what was imported, once it is there."""
    yield Step("ls", ("ls",))
    for words in (("show",), ("passes",), ("passes", "--json"), ("draw dataflow", "--json"), ("layout",)):
        yield Step(f"{' '.join(words)} of what was imported", partial(_look, made, words))


def _look(made: Path, words: tuple[str, ...]) -> None:
    for file in sorted(made.glob("*.irscope"))[:2]:
        code, _, told = run_quietly((*words[0].split(), str(file), *words[1:]))
        if code not in (0, 1, 2) or "internal error" in told:
            raise AssertionError(f"exit {code}: {told[-300:]}")


def _of_text(language: str, draw: random.Random, folder: Path) -> Iterator[Step]:
    original = draw.choice(texts(language))
    others = [draw.choice(texts(name)) for name in LANGUAGES]
    return text_steps(language, original, mutated_text(original, draw, others), others, folder)


def text_steps(language: str, original: str, text: str, others: list[str], folder: Path) -> Iterator[Step]:
    """What is asked of a text that was made of `original`; `others` are texts of each language."""
    kind = stage_named(language).kind
    yield Step("parse", partial(_PARSERS[language], text))
    yield Step("locations", partial(_locations, text, language, others))
    yield Step("counts", lambda: operation_counts(text, kind))
    yield Step("strip", lambda: strip_locations(text, kind))
    yield Step("highlight", lambda: highlight(text, kind))
    yield Step("diff", partial(_diff, original, text, language))
    yield Step("diff of it with itself", partial(_no_difference, text, language))
    if kind in ("mlir", "llvm"):
        yield Step("launch", lambda: launch_of_module(text))
    if kind == "mlir":
        yield Step("dataflow", lambda: read_dataflow(text))
        yield Step("layouts", lambda: layout_rows(text))
    else:
        yield Step("control flow", lambda: fold_flows(read_control_flow(text, kind)))
    if kind in ("ptx", "sass", "amdgcn"):
        yield Step("functions", lambda: read_functions(text, kind))
    left, right = folder / f"original.{language}", folder / f"mutated.{language}"
    left.write_bytes(original.encode())
    right.write_bytes(_encoded(text))
    yield Step("diff FILE FILE", ("diff", str(left), str(right)))
    yield Step("diff FILE FILE -y", ("diff", str(right), str(left), "--side-by-side", "--color"))
    if kind == "mlir":
        yield Step("layout --ttgir", ("layout", "#blocked", "--shape", "64x64", "--ttgir", str(right)))
    graph = "dataflow" if kind in ("mlir", "llvm") else "control-flow"
    captures = [load(path) for path in capture_files()]
    capture = next(one for one in captures if language in one.stages)
    file, other = folder / "mutated.irscope", folder / "original.irscope"
    save(capture, other)
    save(_with_text(capture, language, text.encode("utf-8", "replace").decode("utf-8")), file)
    for words in (
        ("show", "{file}", "--stage", language, "--color"),
        ("show", "{file}", "--stage", language, "--lines", "5-30"),
        ("source", "{file}", "--stage", language),
        ("draw", graph, "{file}", "--stage", language, "--json"),
        ("draw", graph, "{file}", "--stage", language, "-o", "{out}/x.gv"),
        ("draw", graph, "{file}", "--stage", language, "--lines", "10-40", "--fold", "7"),
        ("draw", "control-flow", "{file}", "--stage", language),
        ("draw", "loop", "{file}"),
        ("layout", "{file}"),
        ("layout", "{file}", "--costs", "--json"),
        ("diff", "{file}", "{other}", "-s", language, "--json"),
        ("diff", "{file}", "{other}", "--schedule"),
        ("passes", "{file}", "--json"),
        ("report", "{file}", "-o", "{out}/report.html"),
    ):
        command = tuple(word.format(file=file, other=other, out=folder) for word in words)
        yield Step(" ".join(words), command)


def _with_text(capture: Capture, language: str, text: str) -> Capture:
    """A capture whose stage, and whose last pass of that stage, left another text."""
    artifacts = tuple(Artifact(language, text) if item.stage == language else item for item in capture.artifacts)
    snapshots: list[PassSnapshot] = list(capture.snapshots)
    last = next((at for at in reversed(range(len(snapshots))) if snapshots[at].stage == language), None)
    if last is not None:
        snapshots[last] = replace(snapshots[last], text=text)
    return replace(capture, artifacts=artifacts, snapshots=tuple(snapshots))


def _locations(text: str, language: str, others: list[str]) -> None:
    kind = stage_named(language).kind
    found = read_locations(text, kind)
    # With the texts it was made of, which need not fit.
    read_locations(text, kind, llir=others[LANGUAGES.index("llir")], ptx=others[LANGUAGES.index("ptx")])
    read_locations(others[LANGUAGES.index("sass")], "sass", llir=text, ptx=text)
    filter_lines(text, kind, {1, 5, 30, len(found.chains), 10**9})


def _diff(original: str, text: str, language: str) -> None:
    found = diff_texts(original, text, stage_named(language).kind)
    render_unified(found)
    render_side_by_side(found)


def _no_difference(text: str, language: str) -> None:
    found = diff_texts(text, text, stage_named(language).kind)
    if not found.is_empty:
        raise AssertionError("a text differs from itself")
