"""Launches six small kernels and appends to the file it is given which it began and ended; starts a process too."""

import os
import subprocess
import sys
import time

import triton
import triton.language as tl


class NoTorch:
    """Whether torch is installed or not, this program has none."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")


sys.meta_path.insert(0, NoTorch)


class Buffer:
    """What Triton needs of a tensor."""

    dtype = "fp32"

    @staticmethod
    def data_ptr():
        return 4096


@triton.jit
def scale(x_ptr, value, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets) * value)


def tell(told, word, block):
    os.write(told, f"{word} {block} {time.time()}\n".encode())


told = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
# Something that outlives the script: a program, and a fork of it.
sleeper = subprocess.Popen(["sleep", "600"])
if os.fork() == 0:
    time.sleep(600)
for block in (32, 64, 128, 256, 512, 1024):
    tell(told, "begin", block)
    scale[(3,)](Buffer(), 2.0, BLOCK=block)
    tell(told, "end", block)
os._exit(0) if "exit" in sys.argv else None
