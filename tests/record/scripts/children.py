"""Launches kernels in processes of its own making: `children.py [only]`; prints how each of them ended."""

import multiprocessing
import os
import subprocess
import sys

import triton
import triton.language as tl


class Buffer:
    dtype = "fp32"

    def data_ptr(self):
        return 4096


@triton.jit
def own_kernel(x_ptr):
    tl.store(x_ptr, 1.0)


@triton.jit
def child_kernel(x_ptr):
    tl.store(x_ptr, 2.0)


def work():
    child_kernel[(1,)](Buffer())


def idle():
    pass


if __name__ == "__main__":
    if "only" not in sys.argv:
        own_kernel[(1,)](Buffer())
    fork, spawn = multiprocessing.get_context("fork"), multiprocessing.get_context("spawn")
    children = [fork.Process(target=work), fork.Process(target=work), fork.Process(target=idle)]
    children.append(spawn.Process(target=idle))
    for child in children:
        child.start()
    for child in children:
        child.join()
    print("processes", [child.exitcode for child in children])
    pid = os.fork()
    if pid == 0:
        work()
        sys.exit(5)
    print("fork", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    subprocess.run(["true"], check=True)
    os.system("python3 -c pass")
    if "only" not in sys.argv:
        own_kernel[(2,)](Buffer())
