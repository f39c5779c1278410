// Instructions of LLVM IR, PTX, SASS and AMDGCN, by the beginning of their mnemonics.

type Table = Record<string, string>;

// prettier-ignore
const LLVM: Table = {
  add: "integer sum", sub: "integer difference", mul: "integer product", sdiv: "signed quotient", udiv: "unsigned quotient", srem: "signed remainder",
  urem: "unsigned remainder", shl: "shift left", lshr: "logical shift right", ashr: "arithmetic shift right", and: "bitwise and", or: "bitwise or",
  xor: "bitwise exclusive or", fadd: "floating-point sum", fsub: "floating-point difference", fmul: "floating-point product", fdiv: "floating-point quotient",
  fneg: "floating-point negation", icmp: "integer comparison", fcmp: "floating-point comparison", select: "one of two values, by a condition",
  phi: "the value that belongs to the block one came from", br: "jumps to a block", ret: "returns", load: "reads memory", store: "writes memory",
  getelementptr: "an address, from a base and indices", extractvalue: "one member of a struct", insertvalue: "a struct with one member replaced",
  extractelement: "one element of a vector", insertelement: "a vector with one element replaced", shufflevector: "a vector from elements of two",
  bitcast: "the same bits as another type", zext: "wider, by zeros", sext: "wider, by the sign", trunc: "narrower", fpext: "to a wider float",
  fptrunc: "to a narrower float", sitofp: "signed integer to float", fptosi: "float to signed integer", addrspacecast: "a pointer for another address space",
  call: "calls a function or an intrinsic", inttoptr: "an address as a pointer", ptrtoint: "a pointer as an address", asm: "inline assembly",
};

// prettier-ignore
const PTX: Table = {
  "ld.param": "loads a kernel parameter", "ld.global": "loads from global memory; v2 and v4 are vectors", "ld.shared": "loads from shared memory",
  "ld.local": "loads from the thread's own memory: a spill, as a rule", ld: "loads", "st.global": "stores to global memory", "st.shared": "stores to shared memory",
  "st.local": "stores to the thread's own memory: a spill, as a rule", st: "stores", "cp.async.wait_group": "waits for groups of asynchronous copies",
  "cp.async.commit_group": "closes a group of asynchronous copies", "cp.async.bulk": "bulk copy (TMA)", "cp.async": "copies global to shared memory without registers",
  "mma.sync": "matrix product of a warp, in registers", "wgmma.mma_async": "matrix product of a warp group, from shared memory", "wgmma.fence": "orders registers and shared memory before wgmma",
  "wgmma.commit_group": "closes a group of wgmma", "wgmma.wait_group": "waits for groups of wgmma", tcgen05: "tensor-core operations of Blackwell, on tensor memory",
  ldmatrix: "8×8 matrices from shared memory into a warp's registers", stmatrix: "8×8 matrices from registers to shared memory", "shfl.sync": "exchanges registers between the lanes of a warp",
  "bar.sync": "threads of the block wait for each other", barrier: "threads wait for each other", mbarrier: "barrier object in shared memory", "fence.proxy": "orders ordinary and asynchronous accesses",
  fence: "orders memory accesses", membar: "orders memory accesses", red: "atomic update without a result", atom: "atomic update that gives the old value", "redux.sync": "reduction over a warp",
  "vote.sync": "a condition over all lanes", "mov.b64": "moves, packs or unpacks 64 bits", mov: "moves", setp: "compares into a predicate", selp: "one of two, by a predicate", bra: "jumps", ret: "returns",
  "mad.lo": "product and sum, low half", "mad.wide": "product and sum, twice as wide", mad: "product and sum", "fma.rn": "product and sum, rounded once", fma: "product and sum, rounded once",
  add: "sum", sub: "difference", "mul.wide": "product, twice as wide", "mul.lo": "product, low half", "mul.hi": "product, high half", mul: "product", div: "quotient", rem: "remainder", min: "minimum", max: "maximum",
  neg: "negation", abs: "absolute value", and: "bitwise and", or: "bitwise or", xor: "bitwise exclusive or", not: "bitwise not", shl: "shift left", shr: "shift right", shf: "funnel shift", bfe: "extracts bits",
  bfi: "inserts bits", lop3: "any bitwise function of three operands", prmt: "picks bytes of two registers", cvt: "converts between types", "cvta.to": "generic address to a state space", cvta: "address of another state space",
  "ex2.approx": "2 to the power of, approximately", "lg2.approx": "logarithm to base 2, approximately", rcp: "reciprocal", rsqrt: "one over the square root", sqrt: "square root", "tanh.approx": "hyperbolic tangent",
  elect: "picks one lane of the warp", griddepcontrol: "dependent launches", setmaxnreg: "changes the registers a warp may use", "createpolicy": "a policy for the cache",
};

// prettier-ignore
const SASS: Table = {
  LDG: "loads from global memory; 64 and 128 are the bits a thread", STG: "stores to global memory", LDS: "loads from shared memory", STS: "stores to shared memory",
  LDL: "loads from local memory: a register that was spilled", STL: "stores to local memory: a register spills", LDC: "loads a constant or a parameter", LDCU: "loads a constant into a uniform register",
  ULDC: "loads a constant into a uniform register", LDSM: "ldmatrix: matrices from shared memory into a warp's registers", STSM: "stmatrix: matrices from registers to shared memory", LDGSTS: "copies global to shared memory without registers (cp.async)",
  LDGDEPBAR: "closes a group of asynchronous copies", DEPBAR: "waits until few enough of a scoreboard's operations are under way", "DEPBAR.LE": "waits until few enough of a scoreboard's operations are under way",
  HMMA: "matrix product of a warp, 16-bit floats", IMMA: "matrix product of a warp, integers", DMMA: "matrix product of a warp, doubles", QMMA: "matrix product of a warp, 8-bit floats", HGMMA: "matrix product of a warp group, 16-bit floats (wgmma)",
  QGMMA: "matrix product of a warp group, 8-bit floats (wgmma)", IGMMA: "matrix product of a warp group, integers (wgmma)", WARPGROUP: "orders a warp group before and after wgmma", UTMALDG: "TMA load", UTMASTG: "TMA store", UTCHMMA: "tcgen05 matrix product",
  SYNCS: "operates on an mbarrier", BAR: "threads of the block wait for each other", MEMBAR: "orders memory accesses", FENCE: "orders memory accesses", ERRBAR: "waits for errors of memory accesses", CCTL: "controls a cache",
  ATOMG: "atomic update of global memory", ATOMS: "atomic update of shared memory", ATOM: "atomic update", RED: "atomic update without a result", REDG: "atomic update of global memory without a result", REDUX: "reduction over a warp", SHFL: "exchanges registers between lanes",
  VOTE: "a condition over all lanes", VOTEU: "a condition over all lanes, into a uniform register", MATCH: "which lanes hold the same value", ELECT: "picks one lane", IMAD: "integer product and sum; IMAD.MOV is a move", IADD3: "sum of three integers", IADD: "integer sum", UIADD3: "sum of three, uniform",
  UIMAD: "product and sum, uniform", LEA: "shift and sum, for addresses", ULEA: "shift and sum, uniform", LOP3: "any bitwise function of three operands", ULOP3: "bitwise function, uniform", SHF: "funnel shift", USHF: "funnel shift, uniform", ISETP: "integer comparison into predicates",
  UISETP: "integer comparison, uniform", FSETP: "float comparison into predicates", SEL: "one of two, by a predicate", USEL: "one of two, uniform", FSEL: "one of two floats, by a predicate", PLOP3: "logic of predicates", UPLOP3: "logic of uniform predicates", MOV: "moves", UMOV: "moves, uniform",
  R2UR: "register to uniform register", S2R: "reads a special register", S2UR: "special to uniform register", CS2R: "reads a special register; CS2R … SRZ writes zero", PRMT: "picks bytes", UPRMT: "picks bytes, uniform", IABS: "absolute value", IMNMX: "minimum or maximum", VIADD: "integer sum", VIMNMX: "minimum or maximum",
  POPC: "counts bits", FLO: "finds the leading one", BREV: "reverses bits", FADD: "float sum", FMUL: "float product", FFMA: "float product and sum", FMNMX: "float minimum or maximum", HADD2: "sum of two 16-bit pairs", HMUL2: "product of two 16-bit pairs", HFMA2: "product and sum of 16-bit pairs",
  DADD: "double sum", DMUL: "double product", DFMA: "double product and sum", MUFU: "special function: EX2, LG2, RCP, RSQ, SIN, COS, …", F2F: "between float types", F2FP: "packs two floats into a pair", F2I: "float to integer", I2F: "integer to float", I2FP: "integer to float",
  BRA: "jumps", BRX: "jumps to a computed place", EXIT: "the thread ends", RET: "returns", CALL: "calls", NOP: "nothing; padding", BSSY: "marks where threads come together again", BSYNC: "threads come together again", WARPSYNC: "lanes wait for each other", YIELD: "gives way to another warp", NANOSLEEP: "sleeps", BPT: "trap",
};

// prettier-ignore
const AMDGCN: Table = {
  global_load: "loads from global memory", global_store: "stores to global memory", global_atomic: "atomic update of global memory", buffer_load: "loads through a buffer descriptor", buffer_store: "stores through a buffer descriptor", buffer_atomic: "atomic update through a buffer descriptor",
  flat_load: "loads from any memory", flat_store: "stores to any memory", scratch_load: "loads from scratch: a register that was spilled", scratch_store: "stores to scratch: a register spills", s_load: "scalar load, as of kernel arguments", s_buffer_load: "scalar load through a descriptor",
  ds_read: "loads from LDS", ds_load: "loads from LDS", ds_write: "stores to LDS", ds_store: "stores to LDS", ds_bpermute: "exchanges registers between lanes, through LDS hardware", ds_permute: "exchanges registers between lanes", ds_swizzle: "exchanges registers between lanes in a pattern",
  v_mfma: "matrix product of a wave", v_smfmac: "sparse matrix product of a wave", v_wmma: "matrix product of a wave", v_accvgpr_read: "accumulation register to VGPR", v_accvgpr_write: "VGPR to accumulation register", s_waitcnt: "waits until few enough memory operations are under way", s_wait: "waits for memory operations",
  s_barrier: "waves of the group wait for each other", s_endpgm: "the wave ends", s_branch: "jumps", s_cbranch: "jumps by a condition", s_nop: "waits a few cycles", s_setprio: "sets the wave's priority", s_delay_alu: "tells the scheduler of a dependency", s_clause: "groups memory operations", v_readfirstlane: "first lane's value to a scalar",
  v_readlane: "one lane's value to a scalar", v_writelane: "a scalar to one lane", v_cndmask: "one of two, by a mask", v_cmp: "comparison into a mask", v_mov: "moves", v_perm: "picks bytes", v_exp: "2 to the power of", v_log: "logarithm to base 2", v_rcp: "reciprocal", v_rsq: "one over the square root", v_sqrt: "square root",
  v_fma: "product and sum", v_fmac: "product and sum, in place", v_mad: "product and sum", v_pk: "on pairs of 16 or 32 bits", v_add: "sum", v_sub: "difference", v_mul: "product", v_max: "maximum", v_min: "minimum", v_lshlrev: "shift left", v_lshrrev: "shift right", v_ashrrev: "arithmetic shift right", v_and: "bitwise and", v_or: "bitwise or",
  v_xor: "bitwise exclusive or", v_lshl_add: "shift and sum", v_lshl_or: "shift and or", v_bfe: "extracts bits", v_bfi: "inserts bits", v_cvt: "converts between types", s_mov: "moves a scalar", s_add: "scalar sum", s_sub: "scalar difference", s_mul: "scalar product", s_and: "scalar and", s_or: "scalar or", s_lshl: "scalar shift left", s_lshr: "scalar shift right",
  s_cmp: "scalar comparison", s_cselect: "one of two scalars", s_bfe: "extracts bits of a scalar",
};

export const ASSEMBLY: Record<string, Table> = { llvm: LLVM, ptx: PTX, sass: SASS, amdgcn: AMDGCN };
