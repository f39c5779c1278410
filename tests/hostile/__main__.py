"""`python -m tests.hostile [CAPTURES [FIRST_SEED]]`: many mutated captures through every command that views.

Prints each fault with its seed, and how many there were; exit code 1 where there was one.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from pathlib import Path

from irscope import record
from irscope.store import to_bytes
from tests.hostile.mutations import mutated_capture
from tests.hostile.viewing import faults_of

WORKERS = int(os.environ.get("WORKERS", "2"))
KERNELS = (("examples/softmax.py", "cuda:90"), ("examples/matmul.py", "cuda:90"), ("examples/matmul.py", "hip:gfx942"))


def _one(job: tuple[int, str, str]) -> tuple[int, list[str]]:
    seed, whole, folder = job
    out = Path(folder) / str(seed)
    out.mkdir()
    os.environ["IRSCOPE_HOME"] = str(out / "home")
    file = out / "mutated.irscope"
    file.write_bytes(mutated_capture(Path(whole).read_bytes(), seed))
    return seed, [f"{' '.join(fault.command)}: {fault.what}" for fault in faults_of(file, Path(whole), out, timed=True)]


def main() -> int:
    """Run them; one process each, so that the peak of memory is that of one file."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        wholes: list[str] = []
        for number, (file, target) in enumerate(KERNELS):
            os.environ["IRSCOPE_HOME"] = str(Path(folder) / "home")
            path = Path(folder) / f"{number}.irscope"
            path.write_bytes(to_bytes(record(file, target=target)))
            wholes.append(str(path))
        jobs = [(seed, wholes[seed % len(wholes)], folder) for seed in range(first, first + count)]
        with multiprocessing.get_context("fork").Pool(WORKERS, maxtasksperchild=1) as pool:
            for seed, faults in pool.imap_unordered(_one, jobs):
                bad += bool(faults)
                for fault in faults:
                    print(f"seed {seed}: {fault}", flush=True)
    print(f"{count} captures, {bad} with a fault")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
