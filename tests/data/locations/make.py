"""Compiles the kernels of this folder and writes their stages: run it in this folder, see README.md."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types

os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp()

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TARGETS = {"cuda90": GPUTarget("cuda", 90, 32), "gfx942": GPUTarget("hip", "gfx942", 64)}
SIGNATURES = {
    "chains": ({"x_ptr": "*fp32", "y_ptr": "*fp32", "count": "i32", "factor": "fp32", "BLOCK": "constexpr"}, {"BLOCK": 512}),
    "product": ({"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp16", "K": "i32", "SIZE": "constexpr"}, {"SIZE": 64}),
    "twice": ({"x_ptr": "*fp32", "y_ptr": "*fp32", "factor": "fp32", "BLOCK": "constexpr"}, {"BLOCK": 512}),
}
TOOLS = pathlib.Path(triton.__file__).parent / "backends" / "nvidia" / "bin"


def load(name):
    """Import kernels/NAME.py under that relative path, so that no folder of this machine gets into the output."""
    path = f"kernels/{name}.py"
    module = sys.modules[name] = types.ModuleType(name)
    module.__file__ = path
    exec(compile(pathlib.Path(path).read_text(), path, "exec"), module.__dict__)
    return module


def compiled(kernel, target):
    signature, constants = SIGNATURES[kernel]
    aligned = {(i,): [["tt.divisibility", 16]] for i, kind in enumerate(signature.values()) if kind.startswith("*")}
    source = ASTSource(getattr(sys.modules["locations"], kernel), signature, constants, aligned)
    return triton.compile(source, target=TARGETS[target])


def sass(cubin):
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [TOOLS / "nvdisasm", "-c", "-g", "-gi", "-hex", file.name]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def llvm_dialect(kernel, target):
    """The module as it is translated to LLVM IR: the last dump of the pipeline, with its debug scopes."""
    from triton._C.libtriton import ir, nvidia, passes

    environment = {**os.environ, "MLIR_ENABLE_DUMP": "1", "TRITON_CACHE_DIR": tempfile.mkdtemp()}
    command = [sys.executable, __file__, "--compile", kernel, target]
    dump = subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stderr
    last = re.split(r"^// -----// IR Dump Before .*\n", dump, flags=re.M)[-1]
    module_text = re.match(r"(?:#.*\n|\n)*module[\s\S]*?\n\} loc\(#loc\d*\)\n(?:#.*\n)*", last)[0]
    context = ir.context()
    ir.load_dialects(context)
    nvidia.load_dialects(context)
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(module_text)
        file.flush()
        module = ir.parse_mlir_module(file.name, context)
    module.context = context
    manager = ir.pass_manager(context)
    passes.llvmir.add_di_scope(manager)
    manager.run(module, "add_di_scope")
    return str(module)


def write(folder, name, text):
    text = re.sub(r'/[^"]*?/site-packages/', "", text)
    assert "/tmp" not in text and "/home" not in text, name
    (folder / name).write_text(text)


def main(wanted):
    folder = pathlib.Path(triton.__version__)
    folder.mkdir(exist_ok=True)
    for name in wanted:
        kernel, target, stage = name.split(".")
        if stage == "mlir":
            text = llvm_dialect(kernel, target)
        elif stage == "sass":
            text = sass(compiled(kernel, target).asm["cubin"])
        else:
            text = str(compiled(kernel, target).asm[stage])
        write(folder, name, text)


load("helpers")
load("locations")
if sys.argv[1] == "--compile":
    compiled(*sys.argv[2:4])
else:
    main(sys.argv[1:])
