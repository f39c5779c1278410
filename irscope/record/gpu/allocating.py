"""`python -m irscope.record.gpu.allocating SCRIPT …`: a script whose kernels may take memory of their own."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from irscope.record.triton import api as triton_api

if __name__ == "__main__":
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    triton_api.use_torch_memory()
    runpy.run_path(sys.argv[0], run_name="__main__")
