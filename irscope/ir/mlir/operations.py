"""The operation table: what each operation of each dialect is, which memory it accesses, and how its text is written.

A row has five columns: name, kind, memory effects, form, and the rule for the types of its results.

*Effects* are `reads`, `writes`, `allocates` or `frees`, a memory space, and the operand whose memory it is: `reads
global ptr`. Several are separated by a plus sign. `memory` is the space that the operand's type names. `none` has no
effect at all. `ordered` keeps its place for another reason (a barrier, a call, a wait); an empty column too.

*Forms* follow the assembly formats of the dialects' definitions: `$ptr` is an operand, `$tokens*` a list of operands,
`$a&b` a list of pairs `%x[%y]`, `@axis` an attribute outside of the dictionary (`@@callee` a symbol, `@~value` any
text), `!exact:isExact` a keyword for a unit attribute, `~` any text; braces enclose what may be absent. Operands are
numbered as MLIR's generic form numbers them: in the order of the form, unless it ends in `; order a b c`. A row
without a form has its operands in the order of the text. Attribute dictionaries, types and locations are no part of a
form.

*Rules* for the types of results: `first` or `last` type of the text; `pointee` of the first one; `boolean` of its
shape; `element` of it; `member` of a structure; `token`, for results behind those that are written; the type itself,
which begins with `!` or is `i1`, `i32` or `index`; `?TYPE`, which stands before an abbreviated last type. An empty
column reads what follows the arrow or `to`, or else the types in their order.

Sources: the definitions of MLIR's dialects and of Triton's (3.6 to 3.9). The oracle is MLIR's own generic form of
every text that the tests record (`tests/ir/mlir/test_reader_generic_form.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal, cast, get_args

OperationKind = Literal[
    "module", "function", "call", "return", "loop", "conditional", "branch", "yield", "constant", "arithmetic", "view",
    "index", "load", "store", "atomic", "copy", "prefetch", "pointer", "descriptor", "dot", "conversion", "reduction",
    "scan", "gather", "allocation", "deallocation", "memory_view", "barrier", "wait", "arrive", "commit", "fence",
    "specialization", "assembly", "debug", "hint",
]  # fmt: skip
_EffectKind = Literal["reads", "writes", "allocates", "frees"]
Space = Literal["global", "shared", "tensor", "local", "constant", "memory"]
"""`memory`: of the space that the operand's type names."""


@dataclass(frozen=True, slots=True)
class Effect:
    """An access to memory."""

    kind: _EffectKind
    space: Space
    operand: str = ""
    """The operand that the memory is reached through; empty for a result, or for memory that no operand names."""


@dataclass(frozen=True, slots=True)
class OperationInfo:
    """One row of the table."""

    opcode: str
    """The name without the dialect for Triton's own dialects, however a version spells it; else the whole name."""
    kind: OperationKind
    effects: tuple[Effect, ...] = ()
    is_pure: bool = False
    """Whether it has no effect: it may move, or be removed, if nothing uses its results."""
    form: str = ""
    order: tuple[str, ...] = ()
    """The operands as the generic form has them, where the text has another order."""
    results: str = ""
    """The rule for the types of the results."""

    def has_effect(self, kind: _EffectKind, space: Space | None = None) -> bool:
        """Whether it has an effect of a kind, on a memory space if one is given."""
        return any(effect.kind == kind and space in (None, effect.space) for effect in self.effects)


TRITON_DIALECTS = (
    "tt", "ttg", "ttng", "amdg", "nvws", "gluon", "tti", "proton", "ttn", "nvg", "triton_gpu", "triton_nvidia_gpu",
)  # fmt: skip
_RENAMED_DIALECTS = {"amdgpu": "amdg", "triton_gpu": "ttg", "triton_nvidia_gpu": "ttng"}
_RENAMED = {
    "tt.experimental_descriptor_load": "tt.descriptor_load",
    "tt.experimental_descriptor_store": "tt.descriptor_store",
    "tt.experimental_descriptor_gather": "tt.descriptor_gather",
    "tt.experimental_descriptor_scatter": "tt.descriptor_scatter",
    "tt.experimental_descriptor_reduce": "tt.descriptor_reduce",
    "tt.experimental_tensormap_create": "ttng.tensormap_create",
    "tt.experimental_tensormap_fenceproxy_acquire": "ttng.tensormap_fenceproxy_acquire",
    "ttng.tma_store_wait": "ttng.async_tma_store_wait",
    "ttg.local_barrier": "ttg.barrier",
    "gpu.barrier": "ttg.barrier",
    "module": "builtin.module",
}


_CACHES_FORM = "{ cacheModifier = @cache}{ evictionPolicy = @evict}"
"""What `CACHES` stands for in a form."""

# name, or several of one dialect | kind | effects | form | types of results; an indented line goes on.
_ROWS = """
builtin.module | module | none | {@@sym_name} |
builtin.unrealized_conversion_cast | view | none | |

tt.func | function | none | |
tt.call | call | | @@callee($operands*) |
tt.return | return | ordered | {$srcs*} |
tt.addptr | pointer | none | $ptr, $offset | first
tt.advance | pointer | none | $ptr, [$offsets*] | last
tt.assert | debug | ordered | $condition, @message |
tt.atomic_cas | atomic | reads global ptr + writes global ptr | @sem, @scope, $ptr, $cmp, $val |
tt.atomic_rmw | atomic | reads global ptr + writes global ptr | @atomic_rmw_op, @sem, @scope, $ptr, $val{, $mask} |
tt.atomic_poll | atomic | reads global ptr + writes global ptr | @sem, @scope, $ptr, $expected |
tt.bitcast | view | none | $src |
tt.broadcast | view | none | $src |
tt.cat | view | none | $lhs, $rhs |
tt.clampf | arithmetic | none | $x, $min, $max, propagateNan = @propagateNan | first
tt.descriptor_gather | load | reads global desc | $desc[$x_offsets, $y_offset] |
tt.descriptor_load | load | reads global desc | $desc[$indices*]CACHES |
tt.descriptor_store | store | writes global desc | $desc[$indices*], $src ; order desc src indices |
tt.descriptor_scatter | store | writes global desc | $desc[$x_offsets, $y_offset], $src |
tt.descriptor_reduce | atomic | reads global desc + writes global desc | @kind, $desc[$indices*], $src ; order desc
    src indices |
tt.descriptor_prefetch | prefetch | ordered | $desc[$indices*]CACHES |
tt.dot | dot | none | $a, $b, $c{, inputPrecision = @inputPrecision} |
tt.dot_scaled | dot | none | $a{ scale $a_scale}, $b{ scale $b_scale}, $c{ lhs = @a_elem_type}{ rhs = @b_elem_type}
    ; order a b c a_scale b_scale |
tt.elementwise_inline_asm | assembly | | @asm_string $args* |
tt.expand_dims | view | none | $src |
tt.extern_elementwise | arithmetic | | $srcs* |
tt.fp_to_fp | arithmetic | none | $src{, rounding = @rounding} |
tt.gather | gather | none | $src[$indices] |
tt.get_num_programs | index | none | @axis | i32
tt.get_program_id | index | none | @axis | i32
tt.histogram | reduction | none | $src{, $mask} |
tt.int_to_ptr | pointer | none | $src |
tt.join | view | none | $lhs, $rhs |
tt.load | load | reads global ptr | $ptr{, $mask}{, $other}CACHES | pointee
tt.make_range | constant | none | |
tt.make_tensor_descriptor | descriptor | none | $base, [$shape*], [$strides*] | ?!tt.tensordesc
tt.make_tensor_ptr | pointer | none | $base, [$shape*], [$strides*], [$offsets*] | last
tt.map_elementwise | arithmetic | | $srcs* |
tt.map_elementwise.return | yield | none | $srcs* |
tt.mulhiui | arithmetic | none | $x, $y | first
tt.approx_divf | arithmetic | none | $x, $y | first
tt.precise_divf | arithmetic | none | $x, $y | first
tt.approx_divf | arithmetic | none | $x, $y | first
tt.precise_sqrt | arithmetic | none | $x | first
tt.print | debug | ordered | @prefix{ : $args*} |
tt.ptr_to_int | pointer | none | $src |
tt.reduce | reduction | none | |
tt.reduce.return | yield | none | $srcs* |
tt.reshape | view | none | $src!allow_reorder:allow_reorder !efficient_layout:efficient_layout |
tt.scan | scan | none | |
tt.scan.return | yield | none | $srcs* |
tt.splat | view | none | $src |
tt.split | view | none | $src |
tt.store | store | writes global ptr | $ptr, $value{, $mask}CACHES |
tt.trans | view | none | $src |
tt.unsplat | view | none | $src | element

ttg.async_commit_group | commit | ordered | {tokens $inputTokens*} | !ttg.async.token
ttg.async_copy_global_to_local | copy | reads global src + writes shared result | $src, $result{ mask $mask}{ other
    $other}CACHES | !ttg.async.token
ttg.async_copy_local_to_global | copy | reads shared src + writes global dst | $src, $dst{ mask $mask}CACHES |
    !ttg.async.token
ttg.async_wait | wait | ordered | $tokens* | !ttg.async.token
ttg.barrier | barrier | ordered | {@addrSpace} |
ttg.convert_layout | conversion | none | $src |
ttg.fp4_to_fp | arithmetic | none | $src |
ttg.global_scratch_alloc | allocation | allocates global | |
ttg.local_alloc | allocation | allocates shared + writes shared | {$src} |
ttg.local_dealloc | deallocation | frees shared src | $src |
ttg.local_load | load | reads shared src | $src{ token $token} |
ttg.local_store | store | writes shared dst | $src, $dst |
ttg.local_gather | load | reads shared src | $src[$indices]{ token $token} |
ttg.local_scatter | store | writes shared dst | $dst[$indices], $values |
ttg.local_atomic_rmw | atomic | reads shared dst + writes shared dst | @op, $dst[$indices*], $values |
ttg.local_atomic_scatter_rmw | atomic | reads shared dst + writes shared dst | @atomic_rmw_op, $dst[$indices],
    $values{, $mask} |
ttg.mask | conditional | | $pred |
ttg.mask.return | yield | none | $result* |
ttg.memdesc_index | memory_view | none | $src[$index] |
ttg.memdesc_reinterpret | memory_view | none | $src |
ttg.memdesc_reshape | memory_view | none | $src |
ttg.memdesc_subslice | memory_view | none | $src @offsets |
ttg.memdesc_subview | memory_view | none | $src[$offsets*] |
ttg.memdesc_trans | memory_view | none | $src |
ttg.predicate_stage | arithmetic | none | $iv, $lb, $ub, $step maxStage @maxStage stage @stage |
ttg.warp_id | index | none | | i32
ttg.warp_return | return | none | |
ttg.warp_specialize | specialization | | ($explicitCaptures*) |
ttg.warp_specialize.partitions | specialization | | |
ttg.warp_yield | yield | none | {$values*} |

ttng.arrive_barrier | arrive | ordered | $alloc, @count{, $pred} |
ttng.arrive_barrier_named | arrive | ordered | $bar, $numThreads |
ttng.wait_barrier_named | wait | ordered | $bar, $numThreads |
ttng.async_copy_mbarrier_arrive | arrive | ordered | $barrier |
ttng.async_tma_copy_global_to_local | copy | reads global desc + writes shared result | $desc[$coord*]{ offsets =
    [$offsets*]} $result, $barrier, $predCACHES ; order desc coord offsets barrier result pred |
ttng.async_tma_copy_local_to_global | copy | reads shared src + writes global desc | $desc[$coord*] $src |
ttng.async_tma_gather | copy | reads global desc + writes shared result | $desc[$x_offsets, $y_offset] $result,
    $barrier, $predCACHES ; order desc x_offsets y_offset barrier result pred |
ttng.async_tma_scatter | copy | reads shared src + writes global desc | $desc[$x_offsets, $y_offset] $src |
ttng.async_tma_prefetch | prefetch | ordered | $desc[$coord*], $pred |
ttng.async_tma_reduce | atomic | reads global desc + writes global desc + reads shared src | @kind, $desc[$coord*]
    $src |
ttng.async_tma_store_wait | wait | ordered | |
ttng.barrier_expect | arrive | ordered | $alloc, @size, $pred |
ttng.clc_is_canceled | arithmetic | none | |
ttng.clc_get_program_id | index | none | |
ttng.clc_load_result | load | reads shared | |
ttng.clc_read_result | load | reads shared | |
ttng.clc_try_cancel | copy | writes shared | |
ttng.cluster_arrive | arrive | ordered | |
ttng.cluster_barrier | barrier | ordered | |
ttng.cluster_wait | wait | ordered | |
ttng.fence | fence | ordered | {@sem}{, @scope} |
ttng.fence_async_shared | fence | ordered | |
ttng.fence_mbarrier_init_release_cluster | fence | ordered | |
ttng.init_barrier | barrier | ordered | $alloc, @count |
ttng.inval_barrier | barrier | ordered | $alloc |
ttng.prefetch_tensormap | prefetch | ordered | |
ttng.reinterpret_tensor_descriptor | descriptor | none | $rawDesc |
ttng.tc_gen5_commit | commit | ordered | $barrier{, $pred}{ descs $descs*} |
ttng.tc_gen5_mma | dot | reads memory a + reads memory b + reads tensor d + writes tensor d | $a, $b,
    $d{[{$acc_dep}]}, $useD, $pred$barriers&barrier_preds ; order a b d acc_dep useD pred barriers barrier_preds |
    !ttg.async.token
ttng.tc_gen5_mma_scaled | dot | reads memory a + reads memory b + reads tensor d + writes tensor d | $a, $b,
    $d{[{$acc_dep}]}, $a_scale, $b_scale, $useD, $pred{ lhs = @a_type}{ rhs = @b_type}$barriers&barrier_preds ;
    order a b d acc_dep a_scale b_scale useD pred barriers barrier_preds | !ttg.async.token
ttng.tensormap_create | descriptor | writes global desc_ptr | $desc_ptr, $global_address, [$box_dim*],
    [$global_dim*], [$global_stride*], [$element_stride*] |
ttng.tensormap_fenceproxy_acquire | fence | ordered | $desc_ptr |
ttng.tmem_alloc | allocation | allocates tensor + writes tensor | {$src} |
ttng.tmem_copy | copy | reads shared src + writes tensor dst | $src, $dst{, $barrier} |
ttng.tmem_load | load | reads tensor src | $src{[{$dep}]} | token
ttng.tmem_wait | wait | ordered | @kind |
ttng.tmem_store | store | writes tensor dst | $src, $dst{[{$dep}]}, $pred ; order dst dep src pred | !ttg.async.token
ttng.tmem_subslice | memory_view | none | $src |
ttng.tmem_physical_layout | conversion | none | |
ttng.two_cta_arrive | arrive | ordered | |
ttng.vote_ballot_sync | arithmetic | none | $mask, $pred |
ttng.wait_barrier | wait | ordered | $alloc, $phase{, $pred}{ deps $deps*} |
ttng.warp_group_dot | dot | reads memory a + reads memory b | $a, $b, $c{, $useC} |
ttng.warp_group_dot_wait | wait | ordered | $inputs* |

amdg.arrive_barrier | arrive | ordered | $alloc, @count | i32
amdg.async_copy_lds_barrier_arrive | arrive | ordered | $barrier |
amdg.async_copy_local_to_global | copy | reads shared src + writes global dst | $src, $dst{ mask $mask} |
amdg.async_tdm_copy_global_to_local | copy | reads global desc + writes shared result | $desc[$indices*] into
    $result, pred = $pred{, barrier = $barrier} |
amdg.async_tdm_copy_local_to_global | copy | reads shared src + writes global desc | $desc[$indices*] from $src{,
    barrier = $barrier} |
amdg.async_tdm_wait | wait | ordered | $tokens* | !ttg.async.token
amdg.async_wait | wait | ordered | $tokens* | !ttg.async.token
amdg.buffer_atomic_cas | atomic | reads global ptr + writes global ptr | @sem, @scope, $cmp, $val, $ptr[$offsets]{
    stride = $stride} ; order ptr offsets cmp val stride | last
amdg.buffer_atomic_rmw | atomic | reads global ptr + writes global ptr | @atomic_rmw_op, @sem, @scope, $value,
    $ptr[$offsets]{, $mask}{ stride = $stride} ; order ptr offsets value stride mask | last
amdg.buffer_load | load | reads global ptr | $ptr[$offsets]{, $mask}{, $other}{ cacheModifier = @cache}{ stride =
    $stride} ; order ptr offsets stride mask other | last
amdg.buffer_load_to_local | copy | reads global ptr + writes shared dest | $ptr[$offsets]{ mask = $mask}{ other =
    $other}{ stride = $stride}{ cacheModifier = @cache} into $dest ; order dest ptr offsets mask other stride |
    !ttg.async.token
amdg.buffer_store | store | writes global ptr | $value, $ptr[$offsets]{, $mask}{ cacheModifier = @cache}{ stride =
    $stride} ; order value ptr offsets stride mask |
amdg.cluster_barrier_arrive | arrive | ordered | |
amdg.cluster_barrier_wait | wait | ordered | |
amdg.concat | view | none | $sources* |
amdg.cond_barrier | barrier | ordered | $pred |
amdg.extract_slice | view | none | $source @static_offsets |
amdg.in_thread_transpose | view | none | $src |
amdg.init_barrier | barrier | ordered | $alloc, @count |
amdg.instruction_sched_hint | hint | ordered | |
amdg.local_load_packed_tranposed | load | reads shared src | $src{ token $token} |
amdg.masked_load | load | reads global ptr | $ptr, $mask, $falseVal{ cacheModifier = @cache}{ forceNoAlias} |
amdg.masked_store | store | writes global ptr | $ptr, $value, $mask{ cacheModifier = @cache}{ forceNoAlias} |
amdg.memory_counter_wait | wait | ordered | |
amdg.read_barrier_phase | load | reads shared alloc | $alloc | i32
amdg.scaled_upcast_fp4 | arithmetic | none | $input scale $scale |
amdg.scaled_upcast_fp8 | arithmetic | none | $input scale $scale |
amdg.tdm_prefetch | prefetch | ordered | |
amdg.to_linear_thread_id | index | none | | i32
amdg.upcast_mxfp | arithmetic | none | $src, $scale fp_type = @fp_type |
amdg.wait_barrier | wait | ordered | $alloc, $phase |
amdg.warp_pipeline.border | hint | ordered | |

nvws.aref.create | allocation | none | $buffers* |
nvws.aref.buffer | memory_view | none | $aref[{$token}] $stage* |
nvws.aref.get.enter | wait | ordered | $aref{[$stage, $phase]} |
nvws.aref.get.exit | arrive | ordered | $aref{[$stage]}, $token @async_ops |
nvws.aref.put.enter | wait | ordered | $aref{[$stage, $phase]} |
nvws.aref.put.exit | arrive | ordered | $aref{[$stage]}, $token @async_ops |
nvws.create_token | allocation | ordered | |
nvws.consumer_release | arrive | ordered | |
nvws.consumer_wait | wait | ordered | |
nvws.producer_acquire | wait | ordered | |
nvws.producer_commit | arrive | ordered | |
nvws.warp_group | specialization | | |
nvws.warp_group.yield | yield | none | $values* |
nvws.warp_group.return | return | none | |

gluon.set_auto_layout | conversion | none | $src |
gluon.yield | yield | none | $values* |

arith.constant | constant | none | @value | value
arith.addf addi andi divf divsi divui ceildivsi ceildivui floordivsi maxnumf maximumf maxsi maxui minnumf minimumf
    minsi minui mulf muli ori remf remsi remui shli shrsi shrui subf subi xori | arithmetic | none | $lhs,
    $rhs!exact:isExact{ overflow<@~overflowFlags>}{ fastmath<@~fastmath>} | first
arith.negf | arithmetic | none | $operand{ fastmath<@~fastmath>} | first
arith.addui_extended mulsi_extended mului_extended | arithmetic | none | $lhs, $rhs | first
arith.cmpf cmpi | arithmetic | none | @predicate, $lhs, $rhs{ fastmath<@~fastmath>} | boolean
arith.bitcast extf extsi extui fptosi fptoui index_cast index_castui sitofp truncf trunci uitofp | arithmetic | none
    | $in{ @roundingmode}!nneg:nonNeg{ overflow<@~overflowFlags>}{ fastmath<@~fastmath>} |
arith.select | arithmetic | none | $condition, $true_value, $false_value | last

math.fma | arithmetic | none | $a, $b, $c{ fastmath<@~fastmath>} | first
math.atan2 copysign fpowi ipowi powf | arithmetic | none | $lhs, $rhs{ fastmath<@~fastmath>} | first
math.absf absi acos acosh asin asinh atan atanh cbrt ceil cos cosh ctlz ctpop cttz erf erfc exp exp2 expm1 floor log
    log10 log1p log2 round roundeven rsqrt sin sinh sqrt tan tanh trunc | arithmetic | none | $operand{
    fastmath<@~fastmath>} | first

scf.condition | yield | none | ($condition) $args* |
scf.execute_region | conditional | | {-> ~} |
scf.for | loop | | |
scf.forall | loop | | |
scf.if | conditional | | $condition{ -> ~} |
scf.index_switch | conditional | | $condition{ -> ~} |
scf.reduce | yield | none | |
scf.while | loop | | |
scf.yield | yield | none | {$results*} |

cf.assert | debug | ordered | $arg, @msg |
cf.br cond_br switch | branch | ordered | |

ub.poison | constant | none | |
ub.unreachable | return | ordered | |
index.constant | constant | none | @value | index

gpu.block_dim block_id grid_dim thread_id | index | none | @dimension | index
gpu.lane_id | index | none | | index

llvm.add mul shl sub | arithmetic | none | $lhs, $rhs{ overflow<@~overflowFlags>} | first
llvm.and xor | arithmetic | none | $lhs, $rhs | first
llvm.or | arithmetic | none | {!disjoint:isDisjoint} $lhs, $rhs | first
llvm.ashr lshr sdiv udiv | arithmetic | none | {!exact:isExact} $lhs, $rhs | first
llvm.srem urem | arithmetic | none | $lhs, $rhs | first
llvm.fadd fdiv fmul frem fsub | arithmetic | none | $lhs, $rhs | first
llvm.fneg freeze | arithmetic | none | $operand | first
llvm.fcmp icmp | arithmetic | none | @predicate $lhs, $rhs | boolean
llvm.select | arithmetic | none | $condition, $trueValue, $falseValue | last
llvm.addrspacecast bitcast fpext fptosi fptoui fptrunc inttoptr ptrtoint sext sitofp trunc uitofp zext | arithmetic
    | none | !nneg:nonNeg $arg{ overflow<@~overflowFlags>} |
llvm.alloca | allocation | allocates local | {!inalloca:inalloca} $arraySize x @~elem_type | last
llvm.atomicrmw | atomic | reads memory ptr + writes memory ptr | {!volatile:volatile_} @bin_op $ptr, $val{
    syncscope(@syncscope)} @ordering | last
llvm.cmpxchg | atomic | reads memory ptr + writes memory ptr | {!weak:weak}{!volatile:volatile_} $ptr, $cmp, $val{
    syncscope(@syncscope)} @success_ordering @failure_ordering |
llvm.br cond_br switch | branch | ordered | |
llvm.call | call | | {@@callee($callee_operands*)}{~} |
llvm.call_intrinsic | arithmetic | | @intrin($args*) |
llvm.comdat comdat_selector | hint | | |
llvm.extractelement | view | none | $vector[$position : ~] | element
llvm.extractvalue | view | none | $container@position | member
llvm.fence | fence | ordered | {syncscope(@syncscope)} @ordering |
llvm.func | function | none | |
llvm.getelementptr | pointer | none | | arrow
llvm.inline_asm | assembly | | {!has_side_effects:has_side_effects} {!is_align_stack:is_align_stack} {tail_call_kind
    = @~tail_call_kind} {asm_dialect = @asm_dialect} {operand_attrs = @operand_attrs} @asm_string, @constraints
    $operands* |
llvm.insertelement | view | none | $value, $vector[$position : ~] ; order vector value position | last
llvm.insertvalue | view | none | $value, $container@position ; order container value | last
llvm.load | load | reads memory addr | {!volatile:volatile_} $addr{ atomic{ syncscope(@syncscope)}
    @ordering}!invariant:invariant !invariant_group:invariantGroup!dereferenceable:dereferenceable |
llvm.store | store | writes memory addr | {!volatile:volatile_} $value, $addr{ atomic{ syncscope(@syncscope)}
    @ordering} |
llvm.mlir.addressof | constant | none | @@global_name |
llvm.mlir.constant | constant | none | (@~value) |
llvm.mlir.global | module | | |
llvm.mlir.none poison undef zero | constant | none | |
llvm.module_flags | module | | @~flags |
llvm.return | return | ordered | {$arg} |
llvm.shufflevector | view | none | $v1, $v2 @mask | shuffle
llvm.unreachable | return | ordered | |
llvm.intr.abs | arithmetic | none | |
llvm.intr.bswap ceil copysign cos ctlz ctpop cttz exp exp10 exp2 fabs floor fma fmuladd fptosi.sat fptoui.sat fshl
    fshr is.fpclass log log10 log2 maximum maxnum minimum minnum nearbyint pow rint round roundeven sadd.sat sin smax
    smin sqrt ssub.sat trunc uadd.sat umax umin usub.sat | arithmetic | none | |
llvm.intr.assume expect experimental.noalias.scope.decl lifetime.end lifetime.start | hint | ordered | |
llvm.intr.memcpy memset | copy | reads memory + writes memory | |
llvm.intr.masked.load | load | reads memory data | |
llvm.intr.masked.store | store | writes memory data | |

nvvm.barrier barrier0 | barrier | ordered | {id = $barrierId}{ number_of_threads = $numberOfThreads} |
nvvm.bar.warp.sync | barrier | ordered | |
nvvm.barrier.arrive | arrive | ordered | |
nvvm.cluster.arrive cluster.arrive.relaxed | arrive | ordered | |
nvvm.cluster.wait | wait | ordered | |
nvvm.cp.async.commit.group cp.async.bulk.commit.group | commit | ordered | |
nvvm.cp.async.wait.group | wait | ordered | @n |
nvvm.cp.async.bulk.wait_group | wait | ordered | @group |
nvvm.cp.async.shared.global | copy | reads global src + writes shared dst | $dst, $src, @size, cache = @modifier{,
    $cpSize} |
nvvm.elect.sync | arithmetic | none | | i1
nvvm.fence.mbarrier.init fence.proxy fence.proxy.acquire fence.proxy.release fence.sc.cluster | fence | ordered | |
nvvm.ldmatrix | load | reads shared ptr | $ptr |
nvvm.stmatrix | store | writes shared ptr | $ptr, $sources* |
nvvm.match.sync vote.sync redux.sync | arithmetic | ordered | @kind $val, $mask |
nvvm.mbarrier.arrive mbarrier.arrive.expect_tx mbarrier.arrive.expect_tx.shared mbarrier.arrive.shared | arrive |
    ordered | |
nvvm.mbarrier.init mbarrier.init.shared mbarrier.inval mbarrier.inval.shared | barrier | ordered | |
nvvm.mbarrier.try_wait.parity mbarrier.try_wait.parity.shared mbarrier.wait.parity | wait | ordered | |
nvvm.mma.sync | dot | none | |
nvvm.read.ptx.sreg.clock read.ptx.sreg.clock64 read.ptx.sreg.globaltimer | index | ordered | |
nvvm.read.ptx.sreg.clusterid.x read.ptx.sreg.clusterid.y read.ptx.sreg.clusterid.z read.ptx.sreg.cluster.ctarank
    read.ptx.sreg.cluster.ctaid.x read.ptx.sreg.cluster.ctaid.y read.ptx.sreg.cluster.ctaid.z
    read.ptx.sreg.cluster.nctaid.x read.ptx.sreg.ctaid.x read.ptx.sreg.ctaid.y read.ptx.sreg.ctaid.z
    read.ptx.sreg.laneid read.ptx.sreg.nclusterid.x read.ptx.sreg.nctaid.x read.ptx.sreg.nctaid.y
    read.ptx.sreg.nctaid.z read.ptx.sreg.ntid.x read.ptx.sreg.ntid.y read.ptx.sreg.ntid.z read.ptx.sreg.tid.x
    read.ptx.sreg.tid.y read.ptx.sreg.tid.z read.ptx.sreg.warpid read.ptx.sreg.warpsize | index | none | |
nvvm.setmaxregister | hint | ordered | @action @regCount |
nvvm.shfl.sync | arithmetic | ordered | @kind $thread_mask, $val, $offset, $mask_and_clamp |
nvvm.wgmma.commit.group.sync.aligned | commit | ordered | |
nvvm.wgmma.fence.aligned | fence | ordered | |
nvvm.wgmma.wait.group.sync.aligned | wait | ordered | @group |
nvvm.wgmma.mma_async | dot | reads shared | |
nvvm.tcgen05.alloc | allocation | allocates tensor | |
nvvm.tcgen05.commit | commit | ordered | |
nvvm.tcgen05.cp | copy | reads shared + writes tensor | |
nvvm.tcgen05.dealloc | deallocation | frees tensor | |
nvvm.tcgen05.fence | fence | ordered | |
nvvm.tcgen05.ld | load | reads tensor | |
nvvm.tcgen05.relinquish_alloc_permit | hint | ordered | |
nvvm.tcgen05.st | store | writes tensor | |
nvvm.tcgen05.wait | wait | ordered | @kind |
nvvm.griddepcontrol griddepcontrol.wait griddepcontrol.launch.dependents | wait | ordered | |

rocdl.barrier s.barrier s.barrier.signal s.barrier.wait | barrier | ordered | |
rocdl.ballot mbcnt.hi mbcnt.lo readfirstlane readlane | arithmetic | ordered | |
rocdl.update.dpp | arithmetic | none | $old, $src with @dppCtrl, @rowMask, @bankMask, @boundCtrl |
rocdl.ds_bpermute ds_swizzle permlane16.swap permlane32.swap permlane.x16 | arithmetic | none | |
rocdl.exp exp2 rcp rsq sqrt log sin cos tanh fmed3 | arithmetic | none | |
rocdl.cvt.pkrtz cvt.sr.fp8.f32 cvt.pk.fp8.f32 cvt.pk.bf8.f32 cvt.pk.f32.fp8 cvt.pk.f32.bf8 cvt.f32.fp8 cvt.f32.bf8 |
    arithmetic | none | |
rocdl.fence | fence | ordered | |
rocdl.global.load.lds global.load.async.lds load.to.lds | copy | reads global + writes shared |
    $globalPtr, $ldsPtr, @size, @offset, @aux |
rocdl.raw.ptr.buffer.load.lds raw.ptr.buffer.load.async.lds | copy | reads global rsrc + writes shared ldsPtr |
    $rsrc, $ldsPtr, $size, $voffset, $offset, $soffset, {$aux}{@aux} |
rocdl.make.buffer.rsrc | descriptor | none | | ?!llvm.ptr
rocdl.raw.ptr.buffer.load | load | reads global rsrc | $rsrc, $offset, $soffset, {$aux}{@aux} | last
rocdl.raw.ptr.buffer.store | store | writes global rsrc | $vdata, $rsrc, $offset, $soffset, {$aux}{@aux} |
rocdl.raw.ptr.buffer.atomic.fadd raw.ptr.buffer.atomic.cmpswap raw.ptr.buffer.atomic.fmax raw.ptr.buffer.atomic.smax
    raw.ptr.buffer.atomic.umin | atomic | reads global + writes global | |
rocdl.ds.read.tr4.b64 ds.read.tr6.b96 ds.read.tr8.b64 ds.read.tr16.b64 | load | reads shared | |
rocdl.s.waitcnt waitcnt | wait | ordered | @bitfield |
rocdl.wait.asyncmark | wait | ordered | @count |
rocdl.asyncmark s.wait.asynccnt s.wait.dscnt s.wait.loadcnt s.wait.storecnt
    s.wait.tensorcnt | wait | ordered | |
rocdl.sched.barrier sched.group.barrier iglp.opt s.setprio s.sleep s.nop s.sched.barrier | hint | ordered | |
rocdl.workgroup.id.x workgroup.id.y workgroup.id.z workgroup.dim.x workgroup.dim.y workgroup.dim.z workitem.id.x
    workitem.id.y workitem.id.z grid.dim.x grid.dim.y grid.dim.z wavefrontsize wave.id | index | none | |
"""
_BOTH = (Effect("reads", "global"), Effect("writes", "global"))
# What a dialect has so many of that the family decides.
_FAMILIES: tuple[tuple[str, OperationInfo], ...] = (
    ("rocdl.mfma.", OperationInfo("rocdl.mfma", "dot", is_pure=True, form="$a, $b, $c{, @cbsz}{, @abid}{, @blgp}{~}")),
    ("rocdl.wmma.", OperationInfo("rocdl.wmma", "dot", is_pure=True)),
    ("rocdl.smfmac.", OperationInfo("rocdl.smfmac", "dot", is_pure=True)),
    ("rocdl.cvt.", OperationInfo("rocdl.cvt", "arithmetic", is_pure=True)),
    ("rocdl.raw.ptr.buffer.atomic.", OperationInfo("rocdl.buffer.atomic", "atomic", _BOTH)),
)


def _effects(text: str) -> tuple[Effect, ...]:
    effects: list[Effect] = []
    for part in text.split(" + "):
        words = part.split()
        if words and words[0] in get_args(_EffectKind):
            operand = words[2] if len(words) > 2 else ""
            effects.append(Effect(cast(_EffectKind, words[0]), cast(Space, words[1]), operand))
    return tuple(effects)


def _opcode(name: str) -> str:
    dialect, _, rest = name.partition(".")
    return rest if dialect in TRITON_DIALECTS else name


def _rows() -> Iterator[tuple[str, OperationInfo]]:
    for row in _ROWS.replace("\n    ", " ").splitlines():
        if not row:
            continue
        names, kind, effects, form, results = (part.strip() for part in row.split("|"))
        form, _, order = form.replace("CACHES", _CACHES_FORM).partition(" ; order ")
        first, *others = names.split()
        dialect = first.partition(".")[0]
        prefix = first[: first.index("mlir.") + 5] if "mlir." in first else f"{dialect}."
        prefix = "llvm.intr." if first.startswith("llvm.intr.") else prefix
        for name in (first, *(prefix + other for other in others)):
            is_pure = effects == "none"
            own_kind = cast(OperationKind, kind)
            operands = tuple(order.split())
            yield name, OperationInfo(_opcode(name), own_kind, _effects(effects), is_pure, form, operands, results)


@cache
def _table() -> dict[str, OperationInfo]:
    return dict(_rows())


@lru_cache(maxsize=4096)
def operation_info(name: str) -> OperationInfo | None:
    """The row of an operation, by its name with the dialect as any version spells it; None if there is none."""
    table = _table()
    info = table.get(name)
    if info is not None:
        return info
    renamed = _RENAMED.get(name, name)
    dialect, dot, rest = renamed.partition(".")
    info = table.get(f"{_RENAMED_DIALECTS.get(dialect, dialect)}{dot}{rest}")
    if info is not None:
        return info
    return next((family for prefix, family in _FAMILIES if name.startswith(prefix)), None)


def intrinsic_info(name: str) -> OperationInfo | None:
    """The row of an intrinsic of LLVM IR, by its name without `llvm.`: `exp2.f32`, `amdgcn.workitem.id.x`."""
    dialect, _, rest = name.partition(".")
    full = f"{_INTRINSICS[dialect]}.{rest}" if dialect in _INTRINSICS else f"llvm.intr.{name}"
    while full and operation_info(full) is None:
        # The types of overloaded operands end a name.
        full = full.rpartition(".")[0]
    return operation_info(full)


_INTRINSICS = {"nvvm": "nvvm", "amdgcn": "rocdl"}
"""The dialect that has an intrinsic's operation, by the first word of its name."""


def opcode_of(name: str) -> str:
    """The opcode of an operation's name; the name itself if the table does not know it."""
    info = operation_info(name)
    return info.opcode if info is not None else name


def is_of_dialect(name: str) -> bool:
    """Whether a name has the form of an operation's: that of a dialect of Triton's IR, as `tt.dot_scaled`."""
    dialect, dot, rest = name.partition(".")
    return bool(dot and rest) and dialect in (*TRITON_DIALECTS, *_RENAMED_DIALECTS, "scf", "arith", "math")


def known_operations() -> tuple[str, ...]:
    """Every name of the table."""
    return tuple(_table())
