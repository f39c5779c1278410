"""Compiles a kernel of kernels/reasons.py by Triton alone: `python tests/record/plain_reasons.py FOLDER KERNEL TARGET`.

Writes each artifact to the folder; what the compiler prints goes to standard error.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile

KERNELS = Path(__file__).parent / "kernels" / "reasons.py"


def main(folder: str, kernel: str, target: str, signature: str, constants: str) -> None:
    spec = importlib.util.spec_from_file_location("reasons", KERNELS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, kernel)
    given = [one.strip().partition(":") for one in signature.split(",")]
    constexprs = json.loads(constants)
    types = {name: "constexpr" if name in constexprs else given[at][0] for at, name in enumerate(function.arg_names)}
    attributes = {(at,): [["tt.divisibility", 16]] for at, one in enumerate(given) if one[2] == "16"}
    backend, _, arch = target.partition(":")
    gpu = GPUTarget(backend, int(arch) if backend == "cuda" else arch, 32 if backend == "cuda" else 64)
    made = compile(ASTSource(function, types, constexprs, attributes), target=gpu)
    for stage, data in made.asm.items():
        Path(folder, stage).write_bytes(data if isinstance(data, bytes) else str(data).encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
