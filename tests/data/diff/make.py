"""Makes the samples beside this file: python tests/data/diff/make.py [FOLDER].

Each compile runs in a process of its own (Triton opens MLIR_DUMP_PATH once), on any machine, with or without a GPU.
"""

import json
import lzma
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
SIGNATURES = {
    "matmul": ("*fp16 *fp16 *fp16 i32 i32 i32 i32 i32 i32", {"BM": 128, "BN": 128, "BK": 64}, {0, 1, 2, 4, 5, 6, 7, 8}),
    "softmax": ("*fp32 *fp32 i32 i32 i32", {"BLOCK": 1024}, {0, 1, 2, 3}),
    "flash_attention": ("*fp16 *fp16 *fp16 *fp16 i32 i32 fp32 i32", {"BM": 128, "BN": 64, "D": 64}, set(range(6))),
}
SAMPLES = [
    # kernel, target, warps, the dump of all passes or the texts of some stages
    ("matmul", "cuda:80", 4, ["dump"]),
    ("matmul", "cuda:90", 4, ["dump"]),
    ("softmax", "cuda:90", 4, ["dump", "llir", "ptx", "sass"]),
    ("softmax", "cuda:90", 8, ["llir", "ptx", "sass"]),
    ("softmax", "hip:gfx942", 4, ["dump", "llir", "amdgcn"]),
    ("softmax", "hip:gfx942", 8, ["llir", "amdgcn"]),
]
LARGEST_DUMP = 1_500_000


def compile_kernel(kernel: str, target: str, warps: int) -> dict[str, object]:
    """Compile in this process; returns the texts of all stages, and the seconds it took."""
    import kernels
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    backend, arch = target.split(":")
    gpu = GPUTarget(backend, int(arch) if backend == "cuda" else arch, 32 if backend == "cuda" else 64)
    types, constants, aligned = SIGNATURES[kernel]
    function = getattr(kernels, kernel)
    names = function.arg_names
    signature = dict(zip(names, [*types.split(), *["constexpr"] * len(constants)]))
    source = ASTSource(
        fn=function,
        signature=signature,
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs={(index,): [["tt.divisibility", 16]] for index in aligned},
    )
    start = time.perf_counter()
    compiled = triton.compile(source, target=gpu, options={"num_warps": warps})
    seconds = time.perf_counter() - start
    texts = {stage: text for stage, text in compiled.asm.items() if isinstance(text, str)}
    if backend == "cuda":
        tool = Path(triton.__file__).parent / "backends/nvidia/bin/nvdisasm"
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(compiled.asm["cubin"])
            file.flush()
            command = [tool, "-c", "-g", "-hex", file.name]
            texts["sass"] = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {"texts": texts, "seconds": seconds}


def compile_apart(kernel: str, target: str, warps: int, dump: str = "") -> dict[str, object]:
    """Compile in a process of its own, with a fresh cache; `dump` is the file that MLIR_ENABLE_DUMP writes."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "TRITON_CACHE_DIR": cache}
        if dump:
            environment |= {"MLIR_ENABLE_DUMP": "1", "MLIR_DUMP_PATH": dump}
        command = [sys.executable, __file__, "--compile", kernel, target, str(warps)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=HERE)
    return json.loads(done.stdout.splitlines()[-1])


def without_paths(text: str, stage: str) -> str:
    """The text without this machine's folders, and without PTX's debug sections, which spell them out in bytes."""
    if stage == "ptx":
        text = text.partition("\t.section\t.debug_abbrev")[0]
    if stage == "amdgcn":
        # So do comments and strings of its debug sections.
        text = re.sub(r"/[\w./-]*/(?:tests/data/diff|site-packages/triton)\b", ".", text)
    text = re.sub(r'"/[^"\n]*/site-packages/', '"', text)
    text = re.sub(r'"/[^"\n]*/([\w.]+)"', r'"\1"', text)
    return re.sub(r'"/[^"\n]*"', '"."', text)


def main(folder: Path) -> None:
    for kernel, target, warps, wanted in SAMPLES:
        name = f"{kernel}.{target.replace(':', '')}.{warps}warps"
        with tempfile.TemporaryDirectory() as scratch:
            dump = str(Path(scratch) / "dump") if "dump" in wanted else ""
            texts = compile_apart(kernel, target, warps, dump)["texts"]
            if dump:
                # Whole passes, up to a size that tests read fast.
                whole = Path(dump).read_text("utf-8")
                end = whole.rfind("// -----// IR Dump Before", 0, LARGEST_DUMP) if len(whole) > LARGEST_DUMP else None
                texts["dump"] = whole[:end]
        for stage in wanted:
            data = without_paths(texts[stage], stage).encode()
            (folder / f"{name}.{stage}.xz").write_bytes(lzma.compress(data, preset=9))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--compile"]:
        print(json.dumps(compile_kernel(sys.argv[2], sys.argv[3], int(sys.argv[4]))))
    else:
        main(Path(sys.argv[1]) if sys.argv[1:] else HERE)
