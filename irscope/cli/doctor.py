"""`irscope doctor`: what is installed, which targets work, and what is missing and how to get it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import platform
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from irscope import __version__
from irscope.cli import app, options
from irscope.cli.output import colored, emit, emit_json, width
from irscope.errors import MissingTool
from irscope.recent import CaptureStore, default_folder

_PROBE_TIMEOUT_S = 120


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    what: str
    state: str
    """ok, missing or note."""
    found: str
    remedy: str = ""


@app.command(rich_help_panel="Record and read")
def doctor(
    as_json: options.AsJson = False,
    color: options.Color = None,
    interpreter: Annotated[
        str, typer.Option("--python", metavar="PATH", help="Look at another interpreter's Triton.", show_default=False)
    ] = sys.executable,
    gpu: Annotated[bool, typer.Option("--gpu", help="Compile, launch and check a kernel on each GPU.")] = False,
) -> int:
    """Say what is installed: Triton, targets, GPU, tools; what is missing, and how to get it."""
    from irscope.render.terminal import table

    findings = try_gpus(interpreter) if gpu else look(interpreter)
    missing = any(finding.state == "missing" for finding in findings)
    if as_json:
        emit_json([asdict(finding) for finding in findings])
        return int(missing)
    rows = [[finding.state, finding.what, finding.found, finding.remedy] for finding in findings]
    emit(table(["", "what", "found", "remedy"], rows, width=width(), color=colored(color)), painted=colored(color))
    return int(missing)


def look(interpreter: str) -> list[Finding]:
    """Everything worth looking at, in the order a reader wants it."""
    findings = [
        Finding("irscope", "ok", f"{__version__} on Python {platform.python_version()}, {platform.platform()}"),
        *_triton(interpreter),
        _program("dot", "graphviz draws graphs", "apt-get install graphviz, or brew install graphviz"),
        _store(),
    ]
    for package in ("typer", "pygments", "rich", "graphviz"):
        findings.append(_package(package))
    return findings


def try_gpus(interpreter: str) -> list[Finding]:
    """A kernel compiled, launched and checked on each GPU, each in a process of its own."""
    try:
        answer = _ask(interpreter)
    except MissingTool as error:
        remedy = "it needs torch, and a GPU with its driver; pip install torch"
        return [Finding("GPU", "missing", f"nothing could be launched: {error}", remedy)]
    if not answer["devices"]:
        remedy = "launching needs a GPU, its driver, and a torch built for it; all but run and bench works without"
        return [Finding("GPU", "missing", f"none: {answer['why']}", remedy)]
    return [_try_gpu(interpreter, number) for number in range(answer["devices"])]


def _try_gpu(interpreter: str, number: int) -> Finding:
    what = f"GPU {number}"
    try:
        seen = _ask(interpreter, str(number))
    except MissingTool as error:
        return Finding(what, "missing", f"a kernel ended its process: {error}", "nvidia-smi may say what the GPU is at")
    name = f"{seen['name']}, capability {seen['capability']}, driver {seen['driver'] or 'unknown'}"
    if seen["error"]:
        return Finding(what, "missing", f"{name}: {seen['error']}", "a script that launches one kernel says more")
    error = f"relative error {seen['relative_error']:.1e}"
    if not seen["right"]:
        return Finding(what, "missing", f"{name}: a wrong result, {error}", "do not trust what runs there")
    times = f"compiled and launched in {seen['compile_s']:.1f} s, then {seen['launch_us']:.0f} µs a launch"
    return Finding(what, "ok", f"{name}: the right result ({error}); {times}")


def _ask(interpreter: str, *arguments: str) -> dict[str, Any]:
    """What the probe says; raises MissingTool where it says nothing."""
    command = [interpreter, "-m", "irscope.record.device_probe", *arguments]
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, env=_environment(), check=False
        )
    except subprocess.TimeoutExpired as error:
        raise MissingTool(f"no end after {_PROBE_TIMEOUT_S} s") from error
    except OSError as error:
        raise MissingTool(f"{interpreter} cannot be started: {error.strerror}") from error
    try:
        return json.loads(run.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        tail = run.stderr.strip().splitlines()[-1:] or [f"exit code {run.returncode}"]
        raise MissingTool(tail[0]) from None


def _triton(interpreter: str) -> list[Finding]:
    try:
        answer = subprocess.run(
            [interpreter, "-m", "irscope.record.probe"],
            capture_output=True,
            text=True,
            timeout=_PROBE_TIMEOUT_S,
            env=_environment(),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return [Finding("Triton", "missing", f"{interpreter} cannot be asked: {error}", "name a Python with --python")]
    line = answer.stdout.strip().splitlines()[-1:] or [""]
    try:
        seen: dict[str, Any] = json.loads(line[0])
    except ValueError:
        tail = answer.stderr.strip().splitlines()[-1:] or [f"exit code {answer.returncode}"]
        return [
            Finding("Triton", "missing", tail[0], "pip install 'triton>=3.6' (Linux); captures can be read without it")
        ]
    if seen["error"]:
        return [
            Finding(
                "Triton", "missing", seen["error"], "pip install 'triton>=3.6' (Linux); captures can be read without it"
            )
        ]
    findings = [
        Finding("Triton", "ok", f"{seen['triton']} (backends {', '.join(seen['backends'])})"),
        Finding("targets", "ok", ", ".join(seen["targets"])),
    ]
    if seen["refused"]:
        findings.append(Finding("targets", "note", "not taken by this Triton: " + ", ".join(seen["refused"])))
    findings.append(
        Finding("torch", "ok", seen["torch"])
        if seen["torch"]
        else Finding("torch", "note", "not installed", "pip install torch, if your scripts import it")
    )
    findings.append(
        Finding("GPU", "ok", seen["gpu"])
        if seen["gpu"]
        else Finding("GPU", "note", "none: scripts run on the virtual GPU, and nothing is launched")
    )
    for name in ("ptxas", "nvdisasm", "cuobjdump"):
        path = seen["tools"].get(name)
        findings.append(
            Finding(name, "ok", path)
            if path
            else Finding(name, "missing", "not in Triton's package", "pip install triton again")
        )
    return findings


def _environment() -> dict[str, str]:
    import os
    from pathlib import Path

    parent = str(Path(__file__).resolve().parent.parent.parent)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [parent, os.environ.get("PYTHONPATH", "")]))}


def _program(name: str, purpose: str, remedy: str) -> Finding:
    path = shutil.which(name)
    return Finding(name, "ok", path) if path else Finding(name, "missing", f"not found ({purpose})", remedy)


def _package(name: str) -> Finding:
    if importlib.util.find_spec(name) is None:
        return Finding(name, "missing", "not installed", f"pip install {name}")
    return Finding(name, "ok", importlib.metadata.version(name))


def _store() -> Finding:
    store = CaptureStore()
    paths = store.paths()
    total = sum(path.stat().st_size for path in paths) >> 20
    return Finding(
        "stored captures", "ok", f"{len(paths)} in {default_folder()}, {total} of {store.limit_bytes >> 20} MiB"
    )
