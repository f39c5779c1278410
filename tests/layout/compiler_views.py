"""Run as a script, by the interpreter whose Triton is the oracle: prints the compiler's own text views of some types.

Cases come as JSON lines on standard input, views go out the same way; a child of this process looks at the cases one
after another, and where it dies at one another child goes on behind it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile

import triton


def look(cases: list[dict], out: int) -> None:
    library = triton._C.libtriton
    for number, case in enumerate(cases):
        os.write(out, json.dumps({"begin": case["index"]}).encode() + b"\n")
        try:
            view = view_of(library, case)
        except Exception as error:
            view = {"error": f"{type(error).__name__}: {error}"}
        os.write(out, json.dumps({"index": case["index"], "number": number, **view}).encode() + b"\n")


def view_of(library, case: dict) -> dict:
    context = library.ir.context()
    for module in (library.ir, library.nvidia, library.amd):
        module.load_dialects(context)
    source = f"""module attributes {{"ttg.num-ctas" = {case["num_ctas"]} : i32,
      "ttg.num-warps" = {case["num_warps"]} : i32, ttg.target = "{case["target"]}",
      "ttg.threads-per-warp" = {case["warp_size"]} : i32}} {{
      tt.func public @f(%arg0: {case["type"]}) {{ tt.return }} }}"""
    with tempfile.NamedTemporaryFile("w", suffix=".ttgir") as file:
        file.write(source)
        file.flush()
        module = library.ir.parse_mlir_module(file.name, context)
    builder = library.gluon_ir.GluonOpBuilder(context)
    value = module.get_function("f").args(0)
    shape = case["shape"]
    if case["type"].startswith("tensor"):
        layout = builder.get_gluon_layout_from_tensor(value)
        if hasattr(library.gluon_ir, "get_layout_view"):
            return {"tensor": library.gluon_ir.get_layout_view(layout, shape, False)}
        linear = builder.to_linear_layout(layout._to_ir(builder), shape)
        rows = [
            ("register", linear.reg_bases),
            ("lane", linear.lane_bases),
            ("warp", linear.warp_bases),
            ("block", linear.block_bases),
        ]
        own = library.linear_layout.LinearLayout.from_bases(rows, [f"dim{i}" for i in range(len(shape))], shape, True)
        return {"tensor": own.get_distributed_view(False)}
    if hasattr(library.gluon_ir, "get_layout_view"):
        layout = builder.get_gluon_layout_from_memdesc(value)
        return {"offsets": library.gluon_ir.get_layout_view(layout, shape, True)}
    return {"error": "3.6 has no view of memory layouts"}


def main() -> None:
    cases = [json.loads(line) for line in sys.stdin]
    while cases:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            look(cases, writer)
            os._exit(0)
        os.close(writer)
        begun = None
        with os.fdopen(reader) as lines:
            for line in lines:
                row = json.loads(line)
                begun = row.get("begin", begun)
                if "index" in row:
                    print(line, end="")
        status = os.waitpid(pid, 0)[1]
        if not status:
            return
        print(json.dumps({"index": begun, "error": f"the compiler died, status {status}"}))
        cases = [case for case in cases if case["index"] > begun]


if __name__ == "__main__":
    main()
