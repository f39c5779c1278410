"""Writes mlp.tar.xz: what TorchInductor leaves of a small model on disk. irscope dump make.py -- FOLDER

`debug` is the folder of TORCH_COMPILE_DEBUG=1, `cache` what TORCHINDUCTOR_CACHE_DIR names: the code of the graphs and of
the kernels, and Triton's own cache; `trace` is that of TORCH_TRACE, without stacks, counters and times of phases. It is made on irscope's virtual GPU, which keeps both elsewhere. What no reader
needs (LLVM IR, assembly, logs) is left out, and what names the machine.
"""

import hashlib
import io
import json
import os
import re
import runpy
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
KEPT = {".py", ".json", ".source", ".ttir", ".ttgir"}
DEBUG = {"output_code.py", "fx_graph_transformed.py", "fx_graph_readable.py"}

TRACED = ("artifact", "inductor_output_code", "aot_forward_graph", "aot_backward_graph")

os.environ["TORCH_COMPILE_DEBUG"] = "1"
TRACE = tempfile.mkdtemp()
# It is read when torch is imported, which the script does.
os.environ["TORCH_TRACE"] = TRACE


def trace(path: Path) -> bytes:
    """The trace with those of its events that hold a graph, its code or its kernels."""
    parts = re.split(r"^(?=[A-Z]\d{4} )", path.read_text("utf-8"), flags=re.MULTILINE)
    kept: list[str] = []
    for part in filter(None, parts):
        head, _, rest = part.partition("\n")
        before, _, event = head.partition("] ")
        said = json.loads(event)
        if next(iter(said)) not in TRACED:
            continue
        said.pop("stack", None)
        rest = without_paths(rest)
        payload = "\n".join(row.removeprefix("\t") for row in rest.removesuffix("\n").split("\n"))
        said["has_payload"] = hashlib.md5(payload.encode()).hexdigest()
        kept.append(f"{before}] {without_paths(json.dumps(said))}\n{rest}")
    return "".join(kept).encode()


def plain(path: Path) -> bytes:
    return without_paths(path.read_text("utf-8")).encode()


def without_paths(text: str) -> str:
    text = re.sub(r"/[^\s'\"]*/irscope-inductor-\w+/tmp\w+", "/tmp/torchinductor_user", text)
    text = re.sub(r"/[^\s'\"]*/site-packages", "/site-packages", text)
    text = re.sub(r"/[^\s'\"]*/compiled_models.py", "/home/user/compiled_models.py", text)
    return text.replace(str(HERE), "/home/user")


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        os.chdir(temporary)
        sys.argv[1:] = ["mlp"]
        script = HERE.parents[1] / "record" / "scripts" / "compiled_models.py"
        copy = Path(temporary, "compiled_models.py")
        copy.write_bytes(script.read_bytes())
        runpy.run_path(str(copy), run_name="__main__")
        found = {}
        for path in Path(temporary).rglob("torchinductor/model__*/*.py"):
            if path.name in DEBUG:
                found[f"debug/run/torchinductor/{path.parent.name}/{path.name}"] = plain(path)
        for path in Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).glob("*/??/*.py"):
            found[f"cache/{path.parent.name}/{path.name}"] = plain(path)
        for path in Path(os.environ["TRITON_CACHE_DIR"]).glob("*/triton_*"):
            if path.suffix in KEPT and not path.name.startswith("__grp__"):
                found[f"cache/triton/0/{path.parent.name}/{path.name}"] = plain(path)
        (path,) = Path(TRACE).glob("*.log")
        found["trace/dedicated_log_torch_trace_user_.log"] = trace(path)
    named = {name: data.replace(temporary.encode(), b"/home/user") for name, data in found.items()}
    with tarfile.open(folder / "mlp.tar.xz", "w:xz") as archive:
        for name, data in sorted(named.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


main(Path(sys.argv[1]).resolve())
