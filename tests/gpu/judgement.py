"""How `irscope run` and `ablate` judge results on a GPU: planted mistakes, and every single pass off.

`python tests/gpu/judgement.py plants`: mistakes in ten kernels, in their text and in what they leave in memory, each in
float32, bfloat16 and float16; none may be close. `… passes [-j N]`: each pass off in turn in every launch of the
examples, of those ten kernels and of two libraries, as far as they are installed; none may be different. Both print a
line a case that went wrong, figures, and exit 1 where there is any.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "tests" / "gpu" / "scripts"
sys.path.insert(0, str(ROOT))

LIGER = (
    *("softmax", "sparsemax", "layer_norm", "rms_norm", "fused_add_rms_norm", "swiglu", "geglu", "relu_squared"),
    *("dyt", "cross_entropy", "kl_div", "jsd", "tvd", "rope", "group_norm"),
)
ATTORCH = (
    *("softmax", "log_softmax", "layer_norm", "rms_norm", "gelu", "mish", "glu", "cross_entropy", "nll_loss"),
    *("mse_loss", "batch_norm", "linear"),
)


def planted(only: str) -> int:
    """Every plant in every dtype; returns how many were missed."""
    import torch

    missed = count = 0
    rows: list[dict[str, Any]] = []
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        kernels = _module(SCRIPTS / "ten_kernels.py", "ten_kernels")
        for name, mistakes in kernels.PLANTS.items():
            if only not in f"{name} {dtype}":
                continue
            kept, base, run = _held(kernels, name, dtype)
            found = kept.check(lambda run=run, base=base: run(base))
            rows.append({"kernel": name, "dtype": str(dtype), "plant": "none", **found.as_json()})
            if not found.passes:
                print(f"FALSE {name} {dtype}: {found}", flush=True)
                missed += 1
            for what, variant in (*_texts(mistakes, base, run, name), *_memory(kept, base, run)):
                count += 1
                found = kept.check(variant)
                rows.append({"kernel": name, "dtype": str(dtype), "plant": what, **found.as_json()})
                if found.verdict not in ("different", "nan"):
                    missed += 1
                    print(f"MISSED {name} {dtype} {what!r}: {found}", flush=True)
            for storage in kept.storages:
                if (noise := storage.noise) is not None:
                    rows.append(
                        {
                            "kernel": name,
                            "dtype": str(dtype),
                            "noise_in": storage.name,
                            "typical_moved": noise.typical_moved,
                            "typical_other": noise.typical_other,
                            "limit": noise.typical_limit,
                            "strays": noise.strays,
                            "reach": noise.reach,
                            "largest": noise.largest,
                            "of": kept.noise_of,
                        }
                    )
    _write("plants.json", rows)
    print(f"{count} plants, {missed} judged wrongly")
    return missed


def _module(path: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _held(kernels: Any, name: str, dtype: Any) -> tuple[Any, Any, Callable[[Any], None]]:
    """One launch, held with its noise measured: (what is kept, its CompiledKernel, what launches another)."""
    import torch

    from irscope.record.gpu.kernels import SeenLaunch, launch, other_baselines, watched_launches
    from irscope.record.gpu.launch import compile_again, keep_arguments

    seen: list[SeenLaunch] = []
    with watched_launches(lambda one, proceed: seen.append(one)):
        kernels.launch(name, dtype)
    (one,) = seen
    kept = keep_arguments(one, one.kernel)

    def run(kernel: Any) -> None:
        launch(kernel, one.grid, kept.arguments)
        torch.cuda.synchronize()

    options = {key: getattr(one.kernel.metadata, key) for key in ("num_warps", "num_stages", "enable_fp_fusion")}

    def others() -> Iterator[tuple[str, Callable[[], None]]]:
        for label, kernel in other_baselines(one.kernel, options, lambda own: compile_again(one.kernel, options | own)):
            yield label, lambda kernel=kernel: run(kernel)

    kept.take_reference(lambda: run(one.kernel), others)
    kept.measure_noise()
    return kept, one.kernel, run


def _texts(
    mistakes: list[tuple[str, str]], base: Any, run: Callable[[Any], None], name: str
) -> Iterator[tuple[str, Callable[[], None]]]:
    """The kernel compiled from its text with a mistake in it."""
    from irscope.record.gpu.launch import compile_again

    whole = (SCRIPTS / "ten_kernels.py").read_text()
    # The first place after the kernel's head is in the kernel.
    before, head, after = whole.partition(f"def {name}(")
    options = {key: getattr(base.metadata, key) for key in ("num_warps", "num_stages")}
    for right, wrong in mistakes:
        assert right in after, (name, right)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "planted.py"
            path.write_text(before + head + after.replace(right, wrong, 1))
            function = getattr(_module(path, "planted"), name)
            source = type(base.src)(function, base.src.signature, base.src.constants, base.src.attrs)
            made = compile_again(SimpleNamespace(src=source, metadata=base.metadata), options)
        yield f"{right} → {wrong}", lambda made=made: run(made)


def _memory(kept: Any, base: Any, run: Callable[[Any], None]) -> Iterator[tuple[str, Callable[[], None]]]:
    """The right result, made wrong in memory."""
    import torch

    from tests.record.device.noisy_kernels import PLANTS, plant

    changed = [storage for storage in kept.storages if storage.reference is not None]
    outputs = [value for value in kept.arguments if torch.is_tensor(value)]
    outputs = [
        value
        for value in outputs
        if any(value.untyped_storage().data_ptr() == one.buffer.untyped_storage().data_ptr() for one in changed)
    ]
    for seed in range(3):
        for kind in PLANTS:

            def spoilt(seed: int = seed, kind: str = kind) -> None:
                run(base)
                plant(kind, outputs, torch.Generator().manual_seed(seed))

            yield f"{kind}, {seed}", spoilt


def passes_off(jobs: int, only: str) -> int:
    """Every pass off in turn in every launch; returns how many are called different, or fail on the GPU."""
    programs = [(str(path), ()) for path in sorted((ROOT / "examples").glob("*.py"))]
    programs += [
        (str(SCRIPTS / "ten_kernels.py"), (name, dtype))
        for name in _module(SCRIPTS / "ten_kernels.py", "ten_kernels").PLANTS
        for dtype in ("float32",)
    ]
    for library, layers, dtypes in (
        ("liger_kernel", [f"liger:{layer}" for layer in LIGER], ("bfloat16",)),
        ("attorch", [f"attorch:{layer}" for layer in ATTORCH], ("float32",)),
    ):
        if importlib.util.find_spec(library) is None:
            print(f"{library} is not installed: left out")
            continue
        programs += [(str(SCRIPTS / "libraries.py"), (layer, dtype)) for layer in layers for dtype in dtypes]
    programs = [program for program in programs if only in " ".join((program[0], *program[1]))]
    with ThreadPoolExecutor(jobs) as pool:
        launches = [row for rows in pool.map(_launches, programs) for row in rows]
        print(f"{len(programs)} programs, {len(launches)} launches", flush=True)
        answers = list(pool.map(_ablated, launches))
    wrong = variants = distinct = close = 0
    for answer in answers:
        programs_seen: dict[str, str] = {}
        for row in answer.get("variants", ()):
            variants += 1
            if row["agreement"] is None:
                continue
            programs_seen[row["program"]] = row["agreement"]["verdict"]
            if not row["agreement"]["passes"]:
                wrong += 1
                print(f"{answer['what']} without {row['off']}: {row['agreement']}", flush=True)
        distinct += len(programs_seen)
        close += list(programs_seen.values()).count("close")
        if "error" in answer:
            print(f"{answer['what']}: {answer['error']}", flush=True)
    print(
        f"{variants} variants, {distinct} programs that differ from one another, {close} of them close, {wrong} wrong"
    )
    return wrong


def _command(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    line = [sys.executable, "-m", "irscope", *arguments]
    try:
        return subprocess.run(line, capture_output=True, text=True, env=environment, timeout=280, check=False)
    except subprocess.TimeoutExpired as error:
        return subprocess.CompletedProcess(line, 1, "", f"took more than {error.timeout:g} s")


def _launches(program: tuple[str, tuple[str, ...]]) -> list[tuple[str, tuple[str, ...], int]]:
    script, arguments = program
    answer = _command("run", script, "--json", "--", *arguments)
    try:
        found = json.loads(answer.stdout)
    except ValueError:
        print(f"{script} {arguments}: {answer.stderr[-600:]}", flush=True)
        return []
    if not found["passes"]:
        print(f"{script} {arguments}: {json.dumps(found)[-600:]}", flush=True)
    return [(script, arguments, row["launch"]) for row in found["launches"] if row["launch"] and row["count"]]


def _ablated(launch: tuple[str, tuple[str, ...], int]) -> dict[str, Any]:
    script, arguments, number = launch
    what = " ".join((Path(script).stem, *arguments, f"launch {number}"))
    began = time.monotonic()
    options = ("--stage", "all", "--jobs", "1", "--rounds", "6", "--json", "--launch", str(number))
    answer = _command("ablate", script, *options, "--", *arguments)
    try:
        found = json.loads(answer.stdout)
    except ValueError:
        return {"what": what, "error": answer.stderr[-600:]}
    _write("passes.jsonl", {"what": what, "seconds": time.monotonic() - began, **found})
    return {"what": what, **found}


def _write(name: str, rows: Any) -> None:
    if folder := os.environ.get("OUT"):
        # A line each, as they come.
        with (Path(folder) / name).open("a") as file:
            file.write(json.dumps(rows) + "\n")


def main() -> int:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("plants", "passes"))
    parser.add_argument("-j", "--jobs", type=int, default=4)
    parser.add_argument("--only", default="", help="what holds this in its command line, or its name and dtype")
    asked = parser.parse_args()
    return int(bool(planted(asked.only) if asked.what == "plants" else passes_off(asked.jobs, asked.only)))


if __name__ == "__main__":
    sys.exit(main())
