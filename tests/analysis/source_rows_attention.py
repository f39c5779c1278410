"""What only one line of the attention kernel can make, and that line, as in source_rows.py.

Its helper is called twice, so that each of its lines has two places.
"""

from __future__ import annotations

from tests.analysis.source_rows import ATTENTION, Row

_CALLS = tuple(f"acc, total, largest = attend(#{number}" for number in (1, 2))
_KEYS, _VALUES = tuple(f"k = tl.load( < {one}" for one in _CALLS), tuple(f"v = tl.load( < {one}" for one in _CALLS)
_QK = tuple(f"scores = tl.dot(q, k.T) < {one}" for one in _CALLS)
_PV = tuple(f"acc = tl.dot(weights < {one}" for one in _CALLS)
_LARGEST = tuple(f"new_largest = tl.maximum( < {one}" for one in _CALLS)
_RESCALE = tuple(f"rescale = tl.exp2( < {one}" for one in _CALLS)
_WEIGHTS = tuple(f"weights = tl.exp2( < {one}" for one in _CALLS)
_TOTAL = tuple(f"total = total * rescale < {one}" for one in _CALLS)
_LOOP = tuple(f"for first_key in < {one}" for one in _CALLS)
_HIDDEN = f"scores = tl.where(visible < {_CALLS[1]}"

ATTENTION_ROWS = (
    Row(ATTENTION, "first_query = (", "tt.get_num_programs", llir_cuda="sreg\\.nctaid", ptx="%nctaid\\.x"),
    Row(ATTENTION, "first_query = (", "tt.get_program_id x", llir_cuda="sreg\\.ctaid\\.x", sass="SR_CTAID\\.X"),
    Row(ATTENTION, "batch = (tl.program_id(1)", "arith.divsi #1", llir_cuda="sdiv #1", llir_hip="sdiv i32 #1"),
    Row(ATTENTION, "batch = (tl.program_id(1)", ptx="div\\.s32", sass="I2F\\.RP|F2I\\.FTZ\\.U32"),
    Row(ATTENTION, "head = (tl.program_id(1)", "arith.remsi"),
    Row(ATTENTION, "full = (tl.minimum(nk", "arith.divsi #2"),
    Row(
        ATTENTION,
        "q = tl.load(",
        "(?:tt\\.|amdg\\.buffer_)load #1",
        llir_cuda="ld\\.global",
        ptx="ld\\.global",
        sass="LDG\\.",
        amdgcn="global_load #1",
    ),
    Row(ATTENTION, _LOOP[0], "scf.for #1"),
    Row(ATTENTION, _LOOP[1], "scf.for #2"),
    # The loop's loads, asynchronous on the target that has such copies.
    Row(
        ATTENTION,
        _KEYS[0],
        ttir="tt.load #2",
        llir_cuda="cp\\.async\\.cg #1",
        ptx="cp\\.async\\.cg #1",
        sass="LDGSTS #1",
    ),
    Row(ATTENTION, _VALUES[0], ttir="tt.load #3"),
    Row(ATTENTION, _KEYS[1], ttir="tt.load #4"),
    Row(ATTENTION, _VALUES[1], ttir="tt.load #5"),
    Row(ATTENTION, _QK[0], ttir="tt.trans #1", ttgir_cuda="ttg.memdesc_trans #1"),
    Row(ATTENTION, _QK[1], ttir="tt.trans #2", ttgir_cuda="ttg.memdesc_trans #2"),
    # Four multiplications of 16 a dot on one target, 24 of 8 on the other.
    Row(
        ATTENTION,
        _QK[0],
        ttir="= tt.dot #1",
        ttgir_cuda="warp_group_dot %.* #1",
        llir_cuda="wgmma\\.mma_async #1",
        ptx="wgmma\\.mma_async #1",
        sass="HGMMA #1",
        llir_hip="call .*amdgcn\\.mfma #1",
        amdgcn="v_mfma #1",
    ),
    Row(
        ATTENTION,
        _QK[0],
        llir_cuda="wgmma\\.mma_async #4",
        ptx="wgmma\\.mma_async #4",
        sass="HGMMA #4",
    ),
    Row(
        ATTENTION,
        _PV[0],
        ttir="= tt.dot #2",
        ttgir_cuda="warp_group_dot %.* #2",
        llir_cuda="wgmma\\.mma_async #5",
        ptx="wgmma\\.mma_async #5",
        sass="HGMMA #5",
    ),
    Row(
        ATTENTION,
        _QK[1],
        ttir="= tt.dot #3",
        ttgir_cuda="warp_group_dot %.* #3",
        llir_cuda="wgmma\\.mma_async #9",
        ptx="wgmma\\.mma_async #9",
        sass="HGMMA #9",
    ),
    Row(
        ATTENTION,
        _PV[1],
        ttir="= tt.dot #4",
        ttgir_cuda="warp_group_dot %.* #4",
        llir_cuda="wgmma\\.mma_async #-1",
        ptx="wgmma\\.mma_async #-1",
        sass="HGMMA #-1",
        llir_hip="call .*amdgcn\\.mfma #-1",
        amdgcn="v_mfma #-1",
    ),
    # A reduction over the four lanes of a row: two exchanges a row, two rows a thread.
    Row(
        ATTENTION,
        _LARGEST[0],
        '"tt.reduce" #1',
        llir_cuda="shfl\\.sync\\S*\\( #1",
        ptx="shfl\\.sync #1",
        sass="SHFL #1",
        llir_hip="llvm\\.maxnum\\.f32\\( #1",
    ),
    Row(
        ATTENTION, _TOTAL[0], '"tt.reduce" #2', llir_cuda="shfl\\.sync\\S*\\( #5", ptx="shfl\\.sync #5", sass="SHFL #5"
    ),
    Row(
        ATTENTION,
        _LARGEST[1],
        '"tt.reduce" #3',
        llir_cuda="shfl\\.sync\\S*\\( #9",
        ptx="shfl\\.sync #9",
        sass="SHFL #9",
    ),
    Row(
        ATTENTION,
        _TOTAL[1],
        '"tt.reduce" #4',
        llir_cuda="shfl\\.sync\\S*\\( #-1",
        ptx="shfl\\.sync #-1",
        sass="SHFL #-1",
    ),
    Row(
        ATTENTION,
        _LARGEST[0],
        "arith.maxnumf #1",
        llir_cuda="llvm\\.maxnum\\.f32\\( #1",
        ptx="max\\.f32 #1",
        sass="FMNMX #1",
        amdgcn="v_max3?_f32 #1",
    ),
    Row(
        ATTENTION,
        _LARGEST[1],
        "arith.maxnumf #-1",
        llir_cuda="tail call float @llvm\\.maxnum\\.f32\\( #-1",
        ptx="max\\.f32 #-1",
        sass="FMNMX #-1",
        llir_hip="= (?:tail )?call float @llvm\\.maxnum\\.f32\\( #-1",
        amdgcn="v_max3?_f32 #-1",
    ),
    Row(ATTENTION, _RESCALE[0], "arith.subf #1", llir_cuda="fsub #1", ptx="\\bsub\\.f32 #1", llir_hip="fsub #1"),
    Row(ATTENTION, _RESCALE[0], "math.exp2 #1", ptx="ex2\\.approx #1", sass="MUFU\\.EX2 #1"),
    Row(ATTENTION, _WEIGHTS[0], "math.exp2 #2"),
    Row(ATTENTION, _WEIGHTS[0], "arith.subf #2"),
    Row(ATTENTION, _RESCALE[1], "math.exp2 #3"),
    Row(ATTENTION, _RESCALE[1], "arith.subf #3"),
    Row(ATTENTION, _WEIGHTS[1], "math.exp2 #4", ptx="ex2\\.approx #-1", sass="MUFU\\.EX2 #-1"),
    Row(ATTENTION, _WEIGHTS[1], "arith.subf #4", llir_cuda="fsub #-1"),
    # Minus infinity in a selection: the keys that are hidden.
    Row(ATTENTION, _HIDDEN, ttir="arith.select", ptx="selp\\.f32.*0fFF800000", sass="FSEL .*-INF"),
    Row(ATTENTION, _HIDDEN, llir_cuda="select i1 .*(?:float -inf|0xFFF0000000000000)"),
    Row(ATTENTION, _PV[0], "arith.truncf #1", llir_cuda="fptrunc #1", ptx="cvt\\.rn\\.f16x2 #1", sass="F2FP #1"),
    Row(ATTENTION, _PV[0], amdgcn="v_cvt_f16_f32 #1", llir_hip="fptrunc #1"),
    Row(ATTENTION, _PV[1], "arith.truncf #2"),
    Row(
        ATTENTION,
        "z = acc / total",
        "arith.divf",
        llir_cuda="nvvm\\.div\\.full",
        ptx="div\\.full",
        sass="MUFU\\.RCP #-1",
        llir_hip="fdiv",
        amdgcn="v_div_\\w+_f32",
    ),
    Row(
        ATTENTION,
        "tl.store(z_ptr",
        "(?:tt\\.|amdg\\.buffer_)store",
        llir_cuda="st\\.global",
        ptx="st\\.global",
        sass="STG",
        llir_hip="store <\\d x half>.*addrspace\\(1\\)",
        amdgcn="global_store",
    ),
    Row(
        ATTENTION,
        "tl.store(z_ptr",
        "arith.truncf #3",
        llir_cuda="fptrunc #-1",
        ptx="cvt\\.rn\\.f16x2 #-1",
        sass="F2FP #-1",
    ),
)
