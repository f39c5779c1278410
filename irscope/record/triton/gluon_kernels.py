# pyright: reportArgumentType=false, reportAttributeAccessIssue=false
"""Gluon kernels that find the thread of each element, and its place in shared memory, on the hardware.

Imported only by the process that verifies, on a machine with a GPU.
"""

import triton.experimental.gluon as gluon
import triton.experimental.gluon.language as gl

# 3.6 to 3.8 call it _reinterpret.
_IS_PUBLIC = gl.constexpr(hasattr(gl.shared_memory_descriptor, "reinterpret"))


@gluon.jit
def _indices(plain: gl.constexpr, shape: gl.constexpr):
    # Each element's row-major index, in a layout that any rank has. Branches that are not taken must not be compiled.
    if len(shape) == 1:
        index = gl.arange(0, shape[0], layout=plain)
    elif len(shape) == 2:
        rows = gl.arange(0, shape[0], layout=gl.SliceLayout(1, plain))
        columns = gl.arange(0, shape[1], layout=gl.SliceLayout(0, plain))
        index = gl.expand_dims(rows, 1) * shape[1] + gl.expand_dims(columns, 0)
    else:
        planes = gl.arange(0, shape[0], layout=gl.SliceLayout(1, gl.SliceLayout(2, plain)))
        lines = gl.arange(0, shape[1], layout=gl.SliceLayout(0, gl.SliceLayout(2, plain)))
        cells = gl.arange(0, shape[2], layout=gl.SliceLayout(0, gl.SliceLayout(1, plain)))
        planes = gl.expand_dims(gl.expand_dims(planes, 1), 2)
        lines = gl.expand_dims(gl.expand_dims(lines, 0), 2)
        cells = gl.expand_dims(gl.expand_dims(cells, 0), 1)
        index = (planes * shape[1] + lines) * shape[2] + cells
    return index


@gluon.jit
def store_threads(out, plain: gl.constexpr, layout: gl.constexpr, shape: gl.constexpr):
    """`out[i]` becomes the thread that holds element i under `layout`."""
    index = gl.convert_layout(_indices(plain, shape), layout)
    thread = gl.inline_asm_elementwise(
        "mov.u32 $0, %tid.x; // $1", "=r,r", [index], dtype=gl.int32, is_pure=False, pack=1
    )
    gl.store(out + index, thread)


@gluon.jit
def store_offsets(
    out, plain: gl.constexpr, layout: gl.constexpr, line: gl.constexpr, flat: gl.constexpr, shape: gl.constexpr,
    size: gl.constexpr, kind: gl.constexpr, shift: gl.constexpr, mask: gl.constexpr,
):  # fmt: skip
    """`out[i]` becomes some bits of the index of the element at offset i of shared memory under `layout`."""
    value = ((_indices(plain, shape) >> shift) & mask).to(kind)
    memory = gl.allocate_shared_memory(kind, shape, layout)
    memory.store(value)
    if _IS_PUBLIC:
        raw = memory.reinterpret(kind, [size], flat).load(line)
    else:
        raw = memory._reinterpret(kind, [size], flat).load(line)
    gl.store(out + gl.arange(0, size, layout=line), raw.to(gl.int32) & mask)
