"""Launches kernels in processes of its own making: `children.py [here]`; prints how each of them ended.

With `here`, it launches all of them itself.
"""

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


@triton.jit
def spawned_kernel(x_ptr):
    tl.store(x_ptr, 3.0)


@triton.jit
def started_kernel(x_ptr):
    tl.store(x_ptr, 4.0)


@triton.jit
def served_kernel(x_ptr):
    tl.store(x_ptr, 5.0)


def work():
    child_kernel[(1,)](Buffer())


def spawned():
    spawned_kernel[(1,)](Buffer())


def served():
    served_kernel[(1,)](Buffer())


def started():
    started_kernel[(1,)](Buffer())


def idle():
    pass


if __name__ == "__main__" and "here" in sys.argv:
    for kernel in (own_kernel, child_kernel, spawned_kernel, served_kernel, started_kernel):
        kernel[(1,)](Buffer())
elif __name__ == "__main__":
    own_kernel[(1,)](Buffer())
    fork, spawn = multiprocessing.get_context("fork"), multiprocessing.get_context("spawn")
    children = [fork.Process(target=work), fork.Process(target=work), fork.Process(target=idle)]
    children.append(spawn.Process(target=spawned))
    children.append(multiprocessing.get_context("forkserver").Process(target=served))
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
    here = os.path.dirname(__file__)
    subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.append({here!r}); import children; children.started()"]
    )
    found = "import sys; print('found 1 of irscope\\'s on the path of a child:', any('hook' in p for p in sys.path))"
    subprocess.run([sys.executable, "-c", found], check=True)
    subprocess.run([sys.executable, "-I", "-c", "pass"], check=True)
    subprocess.run(["true"], check=True)
    os.system("python3 -c pass")
    own_kernel[(2,)](Buffer())
