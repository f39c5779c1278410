"""The installed packages and tools, the working targets, and how to install missing ones."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import shutil
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from irscope import __version__
from irscope.errors import MissingTool, RecordingError, installing
from irscope.model.evidence import Ceilings
from irscope.store.disk import default_folder
from irscope.store.recent import CaptureStore

_PROBE_TIMEOUT_S = 120
_GET_TRITON = f"{installing('triton')} (on Linux), or a PyTorch that brings its own; reading captures needs none"


@dataclass(frozen=True, slots=True)
class Installed:
    """One row of the table."""

    component: str
    state: str
    """ok, missing or note."""
    detail: str
    fix: str = ""


def look(interpreter: str) -> list[Installed]:
    """Examine the installation; the findings in the order of the table."""
    install_dot = "apt-get install graphviz, or brew install graphviz"
    return [
        Installed("irscope", "ok", f"{__version__} on Python {platform.python_version()}, {platform.platform()}"),
        *_triton(interpreter),
        _found(shutil.which("dot"), Installed("dot", "missing", "not found (graphviz draws graphs)", install_dot)),
        _store(),
        *map(_package, ("click", "pygments", "rich", "graphviz", "msgspec")),
        _found(
            _version("numpy"),
            Installed("numpy", "note", "not installed: why, verify and time need it", installing("machine")),
        ),
    ]


def try_gpus(interpreter: str) -> tuple[list[Installed], list[Ceilings]]:
    """Compile, launch and check a kernel on each GPU, each in its own process, and measure what they reach."""
    try:
        answer = _ask(interpreter, "irscope.record.gpu.timing")
    except (MissingTool, RecordingError) as error:
        fix = f"it needs torch, and a GPU with its driver; {installing('triton,torch')}"
        return [Installed("GPU", "missing", f"nothing could be launched: {error}", fix)], []
    if not answer["devices"]:
        fix = "launching needs a GPU, its driver, and a torch built for it; all but bench and profile works without"
        return [Installed("GPU", "missing", f"none: {answer['why']}", fix)], []
    tried = [_try_gpu(interpreter, number) for number in range(answer["devices"])]
    return [finding for finding, _ in tried], [one for _, one in tried if one is not None]


def _try_gpu(interpreter: str, number: int) -> tuple[Installed, Ceilings | None]:
    from irscope.render.text.bench import rate_text

    what = f"GPU {number}"
    try:
        seen = _ask(interpreter, "irscope.record.gpu.timing", str(number))
    except (MissingTool, RecordingError) as error:
        fix = "nvidia-smi may show the state of the GPU"
        return Installed(what, "missing", f"a kernel ended its process: {error}", fix), None
    name = f"{seen['name']}, capability {seen['capability']}, driver {seen['driver'] or 'unknown'}"
    if seen["error"]:
        fix = "a script that launches one kernel shows details"
        return Installed(what, "missing", f"{name}: {seen['error']}", fix), None
    error = f"relative error {seen['relative_error']:.1e}"
    if not seen["right"]:
        fix = "do not trust results of this GPU"
        return Installed(what, "missing", f"{name}: a wrong result, {error}", fix), None
    times = f"compiled and launched in {seen['compile_s']:.1f} s, then {seen['launch_us']:.0f} µs a launch"
    rates = tuple(seen["flops_per_s"].items())
    today = datetime.now(timezone.utc).date().isoformat()
    ceilings = Ceilings(seen["name"], seen["target"], seen["bytes_per_s"], rates, today)
    reached = [f"a large copy moves {rate_text(ceilings.bytes_per_s, 'B/s')}"]
    reached += [f"torch.matmul of {dtype} makes {rate_text(rate, 'FLOP/s')}" for dtype, rate in rates]
    detail = f"{name}: the right result ({error}); {times}; {', '.join(reached)}"
    return Installed(what, "ok", detail), ceilings


def _ask(interpreter: str, module: str, *arguments: str) -> dict[str, Any]:
    """What a probe prints; raises MissingTool if it prints nothing, RecordingError if it cannot be started or ended."""
    from irscope.record.process.child import ask_child

    return ask_child(module, *arguments, interpreter=interpreter, timeout_s=_PROBE_TIMEOUT_S)


def _triton(interpreter: str) -> list[Installed]:
    try:
        seen = _ask(interpreter, "irscope.record.triton.identity")
    except RecordingError as error:
        return [Installed("Triton", "missing", str(error), "give a Python with --python")]
    except MissingTool as error:
        return [Installed("Triton", "missing", str(error), _GET_TRITON)]
    if seen["error"]:
        return [Installed("Triton", "missing", seen["error"], _GET_TRITON)]
    findings = [Installed("Triton", "ok", f"{seen['triton']} (backends {', '.join(seen['backends'])})")]
    if seen["untried"]:
        findings.append(Installed("Triton", "note", seen["untried"]))
    findings.append(Installed("targets", "ok", ", ".join(seen["targets"])))
    if seen["refused"]:
        findings.append(Installed("targets", "note", "not supported by this Triton: " + ", ".join(seen["refused"])))
    no_torch = Installed("torch", "note", "not installed", f"{installing('torch')}, if your scripts import it")
    no_gpu = Installed("GPU", "note", "none: scripts run on the virtual GPU, which launches nothing")
    findings += [_found(seen["torch"], no_torch), _found(seen["gpu"], no_gpu)]
    for name in ("ptxas", "nvdisasm", "cuobjdump"):
        missing = Installed(name, "missing", "not in Triton's package", "pip install Triton again")
        findings.append(_found(seen["tools"].get(name), missing))
    return findings


def _found(detail: str | None, otherwise: Installed) -> Installed:
    return Installed(otherwise.component, "ok", detail) if detail else otherwise


def _package(name: str) -> Installed:
    return _found(_version(name), Installed(name, "missing", "not installed", f"pip install {name}"))


def _version(name: str) -> str | None:
    return importlib.metadata.version(name) if importlib.util.find_spec(name) is not None else None


def _store() -> Installed:
    store = CaptureStore()
    if store.missing:
        return Installed("stored captures", "missing", store.missing)
    paths = store.paths()
    total = sum(path.stat().st_size for path in paths) >> 20
    return Installed(
        "stored captures", "ok", f"{len(paths)} in {default_folder()}, {total} of {store.limit_bytes >> 20} MiB"
    )
