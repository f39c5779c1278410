"""What only one line of a kernel can make, and that line, for each stage: the kind of table, and two kernels.

Made by hand: read off the kernels and what compilers do, never off irscope's output. Places are as in source_marks.py.
"""

from __future__ import annotations

from dataclasses import dataclass

FUNCTIONS, SOFTMAX, ATTENTION = "functions", "softmax", "attention"


@dataclass(frozen=True, slots=True)
class Row:
    """What only one line of Python can make, and how that is written at each stage.

    A piece of text is a regular expression, looked for in the lines of a stage without their locations: every line that
    has it is the Python line's, or the nth of them where ` #n` stands behind it (` #-1`: the last).
    """

    kernel: str
    place: str
    mlir: str = ""
    """In ttir and ttgir alike, on both targets."""
    ttir: str = ""
    ttgir_cuda: str = ""
    llir_cuda: str = ""
    ptx: str = ""
    sass: str = ""
    llir_hip: str = ""
    amdgcn: str = ""

    def text_at(self, target: str, stage: str) -> str:
        """What to look for; empty where the stage has nothing that tells the line."""
        backend = target.partition(":")[0]
        if (
            stage == "ttgir"
            and backend == "hip"
            and self.kernel == ATTENTION
            and not self.mlir.endswith((" #1", " #-1"))
        ):
            # The pipeliner takes turns out of the loops: only the first and the last of a kind are what they were.
            return self.mlir if "#" not in self.mlir else ""
        if stage in ("ttir", "ttgir"):
            return self.mlir or (self.ttir if stage == "ttir" else self.ttgir_cuda if backend == "cuda" else "")
        if stage == "llir":
            return self.llir_cuda if backend == "cuda" else self.llir_hip
        return {"ptx": self.ptx, "sass": self.sass, "amdgcn": self.amdgcn}[stage]


_SINE = "x = tl.sin(x)"

FUNCTION_ROWS = (
    Row(FUNCTIONS, "offsets = tl.arange(0, BLOCK)#2", "tt.make_range"),
    Row(
        FUNCTIONS,
        "x = tl.load(x_ptr + offsets)#2",
        "(?:tt\\.|amdg\\.buffer_)load #1",
        llir_cuda="ld\\.global\\.b32",
        ptx="ld\\.global\\.b32",
        sass="LDG\\.E R",
        llir_hip="raw\\.ptr\\.buffer\\.load\\.f32",
        amdgcn="buffer_load_dword #1",
    ),
    Row(
        FUNCTIONS,
        "x = tl.exp2(x)",
        "math.exp2",
        llir_cuda="nvvm\\.ex2",
        ptx="ex2\\.approx",
        sass="MUFU\\.EX2",
        llir_hip="(?:amdgcn|llvm)\\.exp2\\.v?\\d?f",
        amdgcn="v_exp_f32",
    ),
    # 2^23, by which libdevice's logarithm scales denormal numbers.
    Row(
        FUNCTIONS,
        "x = tl.log2(x)",
        "math.log2",
        llir_cuda="fmul float %.*(?:f0x4B000000|8388608|0x4160000000000000)",
        ptx="mul\\.f32.*0f4B000000",
        sass="FMUL.*, 8388608",
        llir_hip="llvm\\.log2",
        amdgcn="v_log_f32",
    ),
    Row(
        FUNCTIONS,
        "x = tl.sqrt(x)",
        "math.sqrt",
        llir_cuda="call float @llvm\\.nvvm\\.sqrt",
        ptx="\\bsqrt\\.approx",
        sass="MUFU\\.SQRT",
        llir_hip="amdgcn\\.sqrt",
        amdgcn="v_sqrt_f32",
    ),
    # The reduction of a large angle: in double precision on one target, by long multiplication on the other.
    Row(
        FUNCTIONS,
        _SINE,
        "math.sin",
        llir_cuda="fmul (?:nnan )?double",
        ptx="mul\\.f64",
        sass="DMUL",
        llir_hip="llvm\\.fshr",
        amdgcn="v_alignbit_b32",
    ),
    Row(FUNCTIONS, _SINE, llir_cuda="sitofp i64", ptx="cvt\\.rn\\.f64\\.s64", sass="I2F\\.F64", amdgcn="v_mad_u64_u32"),
    Row(FUNCTIONS, _SINE, llir_cuda="fptrunc double", ptx="cvt\\.rn\\.f32\\.f64", sass="F2F\\.F32\\.F64"),
    Row(FUNCTIONS, _SINE, ptx="__cudart_i2opi_f;", sass="LDG\\.E\\.CONSTANT", llir_hip="llvm\\.ctlz", amdgcn="v_ffbh"),
    Row(
        FUNCTIONS,
        "x = tl.rsqrt(x)",
        "math.rsqrt",
        llir_cuda="call float @llvm\\.nvvm\\.rsqrt",
        ptx="rsqrt\\.approx",
        sass="MUFU\\.RSQ",
        llir_hip="amdgcn\\.rsq",
        amdgcn="v_rsq_f32",
    ),
    Row(
        FUNCTIONS,
        "x = tl.floor(x)",
        "math.floor",
        llir_cuda="nvvm\\.floor",
        ptx="cvt\\.rmi",
        sass="FRND.*FLOOR",
        llir_hip="float @llvm\\.floor",
        amdgcn="v_floor_f32",
    ),
    Row(
        FUNCTIONS,
        "x = 1.0 / x",
        "arith.divf",
        llir_cuda="nvvm\\.div\\.full",
        ptx="div\\.full",
        sass="MUFU\\.RCP",
        llir_hip="fdiv",
        amdgcn="v_div_\\w+_f32|v_rcp_f32",
    ),
    Row(
        FUNCTIONS,
        "tl.store(y_ptr + offsets, x)#2",
        "(?:tt\\.|amdg\\.buffer_)store",
        llir_cuda="st\\.global",
        ptx="st\\.global",
        sass="STG",
        llir_hip="raw\\.ptr\\.buffer\\.store",
        amdgcn="buffer_store",
    ),
    Row(
        FUNCTIONS,
        "n = tl.load(z_ptr",
        "(?:tt\\.|amdg\\.buffer_)load #2",
        llir_cuda="ld\\.global\\.cg",
        ptx="ld\\.global\\.cg",
        sass="LDG\\.E\\.STRONG",
        llir_hip="raw\\.ptr\\.buffer\\.load\\.i32",
        amdgcn="buffer_load_dword #2",
    ),
    # Lines of Triton's library count for the line that called. (Later on ptxas makes such instructions of atomics.)
    Row(
        FUNCTIONS,
        "most = tl.max(n)",
        "arith.maxsi",
        llir_cuda="nvvm\\.redux\\.sync\\.max",
        ptx="redux\\.sync\\.max",
        sass="REDUX\\.MAX #1",
        llir_hip="llvm\\.smax",
        amdgcn="v_max_i32",
    ),
    Row(
        FUNCTIONS,
        "least = tl.min(n)",
        "arith.minsi",
        llir_cuda="nvvm\\.redux\\.sync\\.min",
        ptx="redux\\.sync\\.min",
        sass="REDUX\\.MIN #1",
        llir_hip="llvm\\.smin",
        amdgcn="v_min_i32",
    ),
    Row(
        FUNCTIONS,
        "odd = tl.xor_sum(n)",
        "arith.xori",
        llir_cuda="nvvm\\.redux\\.sync\\.xor",
        ptx="redux\\.sync\\.xor",
        sass="REDUX\\.XOR #1",
        amdgcn="v_xor_b32_dpp",
    ),
    # The function that combines is the user's own.
    Row(
        FUNCTIONS,
        "return a | b < every = tl.reduce(n, 0, either)",
        "arith.ori",
        amdgcn="v_or_b32_dpp",
    ),
    Row(
        FUNCTIONS,
        "every = tl.reduce(n, 0, either)",
        llir_cuda="nvvm\\.redux\\.sync\\.or",
        ptx="redux\\.sync\\.or",
        sass="REDUX\\.OR #1",
    ),
    Row(
        FUNCTIONS,
        "tl.atomic_add(",
        "tt.atomic_rmw add",
        llir_cuda="atom\\.global\\S*add",
        ptx="atom\\.global\\S*add",
        sass="ATOMG\\.E\\.ADD",
        llir_hip="atomicrmw add",
        amdgcn="global_atomic_add",
    ),
    Row(
        FUNCTIONS,
        "tl.atomic_xchg(",
        "tt.atomic_rmw exch",
        llir_cuda="atom\\.global\\S*exch",
        ptx="atom\\.global\\S*exch",
        sass="ATOMG\\.E\\.EXCH",
        llir_hip="atomicrmw xchg",
        amdgcn="global_atomic_swap",
    ),
    Row(
        FUNCTIONS,
        "tl.atomic_min(",
        "tt.atomic_rmw min",
        llir_cuda="atom\\.global\\S*min",
        ptx="atom\\.global\\S*min",
        sass="ATOMG\\.E\\.MIN",
        llir_hip="atomicrmw min",
        amdgcn="global_atomic_smin",
    ),
    Row(
        FUNCTIONS,
        "tl.atomic_and(",
        "tt.atomic_rmw and",
        llir_cuda="atom\\.global\\S*and",
        ptx="atom\\.global\\S*and",
        sass="ATOMG\\.E\\.AND",
        llir_hip="atomicrmw and",
        amdgcn="global_atomic_and",
    ),
)

_LOAD, _STORE = "x = tl.load(", "tl.store("
_MAX, _SUM = "numerator = tl.exp(x - tl.max", "out = numerator / tl.sum"

SOFTMAX_ROWS = (
    Row(
        SOFTMAX,
        "row = tl.program_id(0)",
        "tt.get_program_id",
        llir_cuda="sreg\\.ctaid",
        ptx="%ctaid",
        sass="SR_CTAID",
        llir_hip="workgroup\\.id",
    ),
    Row(SOFTMAX, "row = tl.program_id(0)", "arith.extsi #1"),
    Row(SOFTMAX, "cols = tl.arange", "tt.make_range"),
    Row(SOFTMAX, "mask = cols", "arith.cmpi", ptx="setp\\.[gl]t\\.s32", llir_cuda="icmp [su][gl]t"),
    Row(
        SOFTMAX,
        _LOAD,
        "(?:tt\\.|amdg\\.buffer_)load",
        llir_cuda="ld\\.global",
        ptx="ld\\.global",
        sass="LDG",
        llir_hip="raw\\.ptr\\.buffer\\.load",
        amdgcn="(?:buffer|global)_load",
    ),
    Row(SOFTMAX, _LOAD, "arith.muli #1"),
    Row(
        SOFTMAX,
        _MAX,
        "arith.maxnumf",
        llir_cuda="llvm\\.maxnum",
        ptx="max\\.f32",
        sass="FMNMX",
        llir_hip="llvm\\.maxnum",
        amdgcn="v_max(?:3)?_f32",
    ),
    Row(SOFTMAX, _MAX, '"tt.reduce" #1', ptx="shfl\\.sync #1", sass="SHFL #1", llir_cuda="shfl\\.sync\\S*\\( #1"),
    Row(SOFTMAX, _MAX, "arith.subf", llir_cuda="fsub", ptx="sub\\.f32", llir_hip="fsub"),
    # log2(e), of exp(x) = exp2(x * log2(e)).
    Row(
        SOFTMAX,
        _MAX,
        llir_cuda="fmul.*(?:f0x3FB8AA3B|0x3FF7154760000000)",
        ptx="0f3FB8AA3B",
        sass="1\\.4426950216",
        llir_hip="fmul.*(?:f0x3FB8AA3B|0x3FF7154760000000)",
        amdgcn="0x3fb8aa3b",
    ),
    Row(
        SOFTMAX,
        _MAX,
        "math.exp",
        llir_cuda="nvvm\\.ex2",
        ptx="ex2\\.approx",
        sass="MUFU\\.EX2",
        llir_hip="(?:amdgcn|llvm)\\.exp2\\.v?\\d?f",
        amdgcn="v_exp_f32",
    ),
    Row(SOFTMAX, _MAX, llir_cuda="barrier #1", ptx="bar\\.sync #1", sass="BAR\\.SYNC #1", llir_hip="s\\.barrier #1"),
    Row(SOFTMAX, _SUM, '"tt.reduce" #2', ptx="shfl\\.sync #-1", sass="SHFL #-1", llir_cuda="shfl\\.sync\\S*\\( #-1"),
    Row(SOFTMAX, _SUM, "arith.addf", llir_cuda="fadd", ptx="add\\.f32", llir_hip="fadd"),
    Row(
        SOFTMAX,
        _SUM,
        "arith.divf",
        llir_cuda="nvvm\\.div\\.full",
        ptx="div\\.full",
        sass="MUFU\\.RCP",
        llir_hip="fdiv",
        amdgcn="v_rcp_f32|v_div_\\w+_f32",
    ),
    Row(
        SOFTMAX, _SUM, llir_cuda="barrier #-1", ptx="bar\\.sync #-1", sass="BAR\\.SYNC #-1", llir_hip="s\\.barrier #-1"
    ),
    Row(
        SOFTMAX,
        _STORE,
        "(?:tt\\.|amdg\\.buffer_)store",
        llir_cuda="st\\.global",
        ptx="st\\.global",
        sass="STG",
        llir_hip="raw\\.ptr\\.buffer\\.store",
        amdgcn="(?:buffer|global)_store",
    ),
    Row(SOFTMAX, _STORE, "arith.muli #-1"),
)
