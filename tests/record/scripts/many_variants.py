"""Launches variants of small kernels without torch: `many_variants.py [all|failing|ending|changing|leaving]`."""

import os
import signal
import sys

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

    def data_ptr(self):
        return 4096


def copy_of_fill():
    @triton.jit
    def fill(x_ptr, value, BLOCK: tl.constexpr):
        tl.store(x_ptr + tl.arange(0, BLOCK), value)

    return fill


@triton.autotune([triton.Config({"BLOCK": 64}, num_warps=warps) for warps in (64, 1, 2, 4)], key=[])
@triton.jit
def tuned(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)


@triton.jit
def refused_by_the_assembler(x_ptr):
    value = tl.inline_asm_elementwise("no such instruction $0, $1;", "=r,r", [0], tl.int32, True, 1)
    tl.store(x_ptr, value.to(tl.float32))


def every():
    fill, again = copy_of_fill(), copy_of_fill()
    for block in (32, 64, 128):
        fill[(block,)](Buffer(), 1.0, BLOCK=block)
    # The same compile while that of the other function is under way.
    again[(7,)](Buffer(), 1.0, BLOCK=128)
    kernel = fill[(1,)](Buffer(), 1.0, BLOCK=256)
    print(kernel.n_regs, kernel.n_spills, kernel.metadata.shared, kernel.name, sorted(kernel.asm), type(kernel.module))
    print(fill.warmup(Buffer(), 1.0, BLOCK=512, grid=(1,)).metadata.num_warps)
    tuned[(2,)](Buffer())
    print(tuned.best_config.num_warps, [times[0] for times in tuned.configs_timings.values()])
    try:
        refused_by_the_assembler[(1,)](Buffer())
    except Exception as error:
        print("caught", type(error).__name__)
        fill[(3,)](Buffer(), 1.0, BLOCK=1024)


def failing():
    fill = copy_of_fill()
    fill[(1,)](Buffer(), 1.0, BLOCK=32)
    refused_by_the_assembler[(1,)](Buffer())
    fill[(1,)](Buffer(), 1.0, BLOCK=64)
    print(refused_by_the_assembler[(1,)](Buffer()).metadata)


def ending():
    """The fourth compile ends in a fault of the compiler."""
    from triton.backends.nvidia.compiler import CUDABackend

    fill, make_ptx = copy_of_fill(), CUDABackend.make_ptx

    def ends(backend, source, metadata, *more):
        if metadata["num_warps"] == 8:
            os.kill(os.getpid(), signal.SIGSEGV)
        return make_ptx(backend, source, metadata, *more)

    CUDABackend.make_ptx = ends
    for number in range(10):
        fill[(1,)](Buffer(), 1.0, BLOCK=32 << number, num_warps=8 if number == 3 else 4)


def changing():
    """Each launch is compiled with the settings that it is made with, whenever that is."""
    fill = copy_of_fill()
    for number in range(10):
        os.environ["DISABLE_LLVM_OPT"] = str(number % 2)
        if number > 4:
            triton.knobs.compilation.disable_line_info = number % 3 == 0
        os.environ["TRITON_DISABLE_LINE_INFO"] = str(number % 3 == 1)
        fill[(1,)](Buffer(), 1.0, BLOCK=32 << number)


def leaving():
    """Ends at once, as some programs do, when no fork has had the time to compile anything."""
    fill = copy_of_fill()
    for number in range(6):
        fill[(1,)](Buffer(), 1.0, BLOCK=32 << number)
    if "killed" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(0)


{"all": every, "failing": failing, "ending": ending, "changing": changing, "leaving": leaving}[sys.argv[1]]()
