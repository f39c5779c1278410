"""Writes mlp.tar.xz: what TorchInductor leaves of a small model on disk. irscope dump make.py -- FOLDER

`debug` is the folder of TORCH_COMPILE_DEBUG=1, `cache` what TORCHINDUCTOR_CACHE_DIR names: the code of the graphs and of
the kernels, and Triton's own cache. It is made on irscope's virtual GPU, which keeps both elsewhere. What no reader
needs (LLVM IR, assembly, logs) is left out, and what names the machine.
"""

import io
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

os.environ["TORCH_COMPILE_DEBUG"] = "1"


def plain(path: Path) -> bytes:
    text = path.read_text("utf-8")
    text = re.sub(r"/[^\s'\"]*/irscope-inductor-\w+/tmp\w+", "/tmp/torchinductor_user", text)
    text = re.sub(r"/[^\s'\"]*/site-packages", "/site-packages", text)
    return text.replace(str(HERE), "/home/user").encode()


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
    named = {name: data.replace(temporary.encode(), b"/home/user") for name, data in found.items()}
    with tarfile.open(folder / "mlp.tar.xz", "w:xz") as archive:
        for name, data in sorted(named.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


main(Path(sys.argv[1]).resolve())
