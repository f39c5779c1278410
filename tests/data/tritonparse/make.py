"""Writes the traces of this folder by tritonparse's own hooks, on irscope's virtual GPU: python make.py [FOLDER].

It needs torch, Triton, tritonparse and zstandard. tritonparse's hooks say the same as on a GPU; of the launches and
tunings, the addresses and the times are placeholder values. What names the machine is left out.
"""

from __future__ import annotations

import gzip
import json
import os
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

import zstandard

from irscope.record.virtual.gpu import virtual_gpu
from irscope.target import Target

HERE = Path(__file__).parent


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        raw, parsed = Path(temporary, "raw"), Path(temporary, "parsed")
        os.environ["TRITON_CACHE_DIR"] = str(Path(temporary, "cache"))
        os.chdir(HERE)
        with virtual_gpu(Target.parse("cuda:90"), configs="all"):
            import triton
            from tritonparse import structured_logging
            from tritonparse.parse.utils import unified_parse

            structured_logging.init(str(raw), enable_trace_launch=True)
            runpy.run_path("softmax.py", run_name="__main__")
            structured_logging.clear_logging_config()
            unified_parse(source=str(raw), out=str(parsed), overwrite=True)
        events = [_plain(json.loads(line)) for path in raw.iterdir() for line in path.read_text("utf-8").splitlines()]
        packages = str(Path(triton.__file__).parents[1])
        lines = [json.dumps(event).replace(packages, "/site-packages").encode() + b"\n" for event in events]
        (folder / "softmax.bin.ndjson").write_bytes(b"".join(gzip.compress(line, mtime=0) for line in lines))
        (folder / "softmax.zstd.ndjson").write_bytes(b"".join(zstandard.ZstdCompressor().compress(one) for one in lines))
        (folder / "mappings.json").write_text(json.dumps(_mappings(parsed), indent=1) + "\n", "utf-8")


def _plain(event: dict[str, Any]) -> dict[str, Any]:
    """An event without the call stack and the paths of this machine."""
    event = event | {"stack": [], "pid": 1}
    for holder in (event.get("payload", {}), event.get("payload", {}).get("metadata", {}), event):
        holder.pop("file_path", None)
        holder.pop("extern_libs", None)
        holder.get("compilation_metadata", {}).pop("extern_libs", None)
    return event


def _mappings(folder: Path) -> dict[str, dict[str, dict[str, int]]]:
    """For each compile and stage, the line of Python of each of its lines, by tritonparse's own parser."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    for path in folder.rglob("*.ndjson*"):
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for line in text.splitlines():
            event = json.loads(line)
            if event.get("event_type") == "compilation":
                stages = event["payload"]["source_mappings"]
                found[event["payload"]["metadata"]["hash"]] = {
                    stage: {number: row["line"] for number, row in rows.items() if row.get("file", "").endswith("softmax.py")}
                    for stage, rows in stages.items()
                    if stage in ("ttir", "ttgir", "ptx")
                }
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
