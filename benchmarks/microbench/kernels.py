"""The kernels of the microbenchmarks as PTX, each with the number of operations that a warp does."""

from __future__ import annotations

from collections.abc import Sequence

from irscope.record.gpu.microbench import LOOP, TimedKernel, entry, looped

_SUNK = "setp.eq.u32 %p2, %r14, 12345; @%p2 st.global.u32 [%rd2], %r14;"
"""What was read is not left out by the assembler, and hardly ever stored."""


_OPERATIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    # name: (the kind of its registers, its instructions on register {i})
    "fma": ("f", ("fma.rn.f32 %f{i}, %f{i}, %f200, %f201;",)),
    # A maximum of the same value twice is one maximum.
    "alu": ("r", ("max.s32 %r{i}, %r{i}, %r200; ", "min.s32 %r{i}, %r{i}, %r201; ")),
    "multiply": ("r", ("mad.lo.s32 %r{i}, %r{i}, %r200, %r201;",)),
    "half": ("r", ("fma.rn.f16x2 %r{i}, %r{i}, %r200, %r201;",)),
    "double": ("d", ("fma.rn.f64 %d{i}, %d{i}, %d20, %d21;",)),
    "special": ("f", ("ex2.approx.ftz.f32 %f{i}, %f{i};",)),
    "reciprocal_root": ("f", ("rsqrt.approx.ftz.f32 %f{i}, %f{i};",)),
    "convert": ("r", ("cvt.rni.s32.f32 %r{i}, %f200; cvt.rn.f32.s32 %f200, %r{i};",)),
    "population_count": ("r", ("popc.b32 %r{i}, %r{i};",)),
    "shuffle": ("r", ("shfl.sync.bfly.b32 %r{i}, %r{i}, 1, 31, 0xffffffff;",)),
}
_ENDS = {
    # kind: (how its registers begin, how they end)
    "f": ("cvt.rn.f32.u32 %f{i}, %r1;", "st.global.f32 [%rd2+{word}], %f{i};"),
    "r": ("add.u32 %r{i}, %r1, {chain};", "st.global.u32 [%rd2+{word}], %r{i};"),
    "d": ("cvt.rn.f64.u32 %d{i}, %r1;", "st.global.f64 [%rd2+{double}], %d{i};"),
}


def chained(instructions: Sequence[str], begin: str, end: str, chains: int = 8, before: str = "") -> TimedKernel:
    """Chains of an instruction, each of which waits for the one before it in its chain.

    Args:
        instructions: on the register `{i}` of a chain: these one after another.
        begin: sets the register of the chain of that number, `{chain}`.
        end: stores the register at `{word}` or `{double}` bytes, by its size.
        chains: 1 for its latency, 8 for its rate.
        before: sets the registers of all chains.
    """
    rows = [{"i": 10 + chain, "chain": chain, "word": 4 * chain, "double": 8 * chain} for chain in range(chains)]
    each = 128 // chains
    lines = [instructions[turn % len(instructions)].format(**row) for turn in range(each) for row in rows]
    sets, stores = ("\n".join(text.format(**row) for row in rows) for text in (begin, end))
    body = looped("\n".join(lines))
    return TimedKernel(entry(body, f"{before}\n{sets}", stores), LOOP * each * chains)


def arithmetic(name: str, chains: int) -> TimedKernel:
    """Dependent chains of one instruction: 1 for its latency, 8 for its rate."""
    kind, instructions = _OPERATIONS[name]
    before = (
        "mov.u32 %r200, %r3; add.u32 %r201, %r3, 3; cvt.rn.f32.u32 %f200, %r3; cvt.rn.f32.u32 %f201, %r201;"
        "cvt.rn.f64.u32 %d20, %r3; cvt.rn.f64.u32 %d21, %r201;"
    )
    return chained(instructions, *_ENDS[kind], chains, before)


def chase_shared() -> TimedKernel:
    """The same in shared memory: each word holds its own address."""
    body = looped("ld.shared.u32 %r10, [%r10];\n" * 32)
    before = "st.shared.u32 [%r4], %r4; mov.u32 %r10, %r4;"
    return TimedKernel(entry(body, before, "st.global.u32 [%rd2], %r10;", shared=True), LOOP * 32, 1024)


def shared_reads(stride_words: int, words: int = 1) -> TimedKernel:
    """Loads of shared memory whose lanes lie `stride_words` apart."""
    scale = 4 * stride_words
    lines = []
    for number in range(16):
        registers = ", ".join(f"%r{20 + words * number + part}" for part in range(words))
        registers = f"{{{registers}}}" if words > 1 else registers
        lines.append(f"ld.shared.{'v4.' if words == 4 else ''}u32 {registers}, [%r10+{512 * number}];")
    lines += [f"xor.b32 %r14, %r14, %r{20 + part};" for part in range(16 * words)]
    # Another address in each iteration, in the same banks: the loads stay in the loop.
    lines.append("xor.b32 %r10, %r10, 16384;")
    before = f"and.b32 %r11, %r1, 31; mad.lo.u32 %r10, %r11, {scale}, %r4; mov.u32 %r14, 0;"
    text = entry(looped("\n".join(lines)), before, "st.global.u32 [%rd2], %r14;", shared=True)
    return TimedKernel(text, LOOP * 16, 40 * 1024)


def barriers() -> TimedKernel:
    """Barriers of the whole CTA, one after another."""
    return TimedKernel(entry(looped("bar.sync 0;\n" * 32)), LOOP * 32)


_MMA = {
    # type: (instruction, registers of d, a, b, FMAs)
    "f16": ("m16n8k16.row.col.f32.f16.f16.f32", 4, 4, 2, 2048),
    "bf16": ("m16n8k16.row.col.f32.bf16.bf16.f32", 4, 4, 2, 2048),
    "tf32": ("m16n8k8.row.col.f32.tf32.tf32.f32", 4, 4, 2, 1024),
    "i8": ("m16n8k32.row.col.s32.s8.s8.s32", 4, 4, 2, 4096),
    "f8": ("m16n8k32.row.col.f32.e4m3.e4m3.f32", 4, 4, 2, 4096),
    "f64": ("m8n8k4.row.col.f64.f64.f64.f64", 2, 1, 1, 256),
}


def mma(name: str, chains: int) -> tuple[TimedKernel, int]:
    """mma.sync in dependent chains, and the FMAs of one."""
    shape, count, of_a, of_b, operations = _MMA[name]
    letter = {"i8": "r", "f64": "d"}.get(name, "f")
    operand = "d" if name == "f64" else "r"
    lines, begin, end = [], [], []
    move = {"f": "mov.f32 %f{}, 0f00000000;", "r": "mov.u32 %r{}, 0;", "d": "mov.f64 %d{}, 0d0000000000000000;"}
    store = {"f": "st.global.f32 [%rd2], %f{};", "r": "st.global.u32 [%rd2], %r{};", "d": "st.global.f64 [%rd2], %d{};"}
    for chain in range(chains):
        sums = [20 + count * chain + part if letter != "d" else 2 + count * chain + part for part in range(count)]
        # Chains that begin alike would be one chain to ptxas.
        begin += [move[letter].format(place) for place in sums]
        begin.append(
            {
                "f": f"cvt.rn.f32.u32 %f{sums[0]}, %r3; add.f32 %f{sums[0]}, %f{sums[0]}, 0f3f{chain:06x};",
                "r": f"add.u32 %r{sums[0]}, %r3, {chain};",
                "d": f"cvt.rn.f64.u32 %d{sums[0]}, %r3; add.f64 %d{sums[0]}, %d{sums[0]}, 0d3ff{chain:013x};",
            }[letter]
        )
        end += [store[letter].format(place).replace("[%rd2]", f"[%rd2+{8 * place}]") for place in sums]
        total = ", ".join(f"%{letter}{place}" for place in sums)
        first = 28 if operand == "d" else 200
        a = ", ".join(f"%{operand}{first + part}" for part in range(of_a))
        b = ", ".join(f"%{operand}{first + (2 if operand == 'd' else 10) + part}" for part in range(of_b))
        lines.append(f"mma.sync.aligned.{shape} {{{total}}}, {{{a}}}, {{{b}}}, {{{total}}};")
    if operand == "d":
        begin += ["cvt.rn.f64.u32 %d28, %r1; cvt.rn.f64.u32 %d30, %r3;"]
    else:
        begin += [f"mad.lo.u32 %r{200 + part}, %r1, {7 + part}, %r3;" for part in range(12)]
    each = 64 // chains
    body = looped("\n".join(lines * each))
    return TimedKernel(entry(body, "\n".join(begin), "\n".join(end)), LOOP * each * chains), operations


_WGMMA = {
    "f16": ("k16", "f16.f16", 16),
    "tf32": ("k8", "tf32.tf32", 8),
    "f8": ("k32", "e4m3.e4m3", 32),
    "i8": ("k32", "s8.s8", 32),
}


def wgmma(name: str, columns: int, from_registers: bool = False) -> tuple[TimedKernel, int]:
    """wgmma.mma_async m64nNk of one warpgroup, committed in groups of 8, and the FMAs of one."""
    depth, types, k = _WGMMA[name]
    letter, result = ("r", "s32") if name == "i8" else ("f", "f32")
    sums = ", ".join(f"%{letter}{20 + place}" for place in range(columns // 2))
    a = "{%r300, %r301, %r302, %r303}" if from_registers else "%rd20"
    scales = "p" if name == "i8" else "p, 1, 1"
    transposes = {"f16": ", 0" if from_registers else ", 0, 0"}.get(name, "")
    instruction = (
        f"wgmma.mma_async.sync.aligned.m64n{columns}{depth}.{result}.{types} {{{sums}}}, {a}, %rd21, "
        f"{scales.replace('p', '1')}{transposes};"
    )
    group = f"wgmma.fence.sync.aligned;\n{(instruction + chr(10)) * 8}wgmma.commit_group.sync.aligned;\n"
    body = looped(group + "wgmma.wait_group.sync.aligned 0;\n", 16)
    move = "mov.u32 %r{}, 0;" if letter == "r" else "mov.f32 %f{}, 0f00000000;"
    begin = [move.format(20 + place) for place in range(columns // 2)]
    begin += [
        "shr.u32 %r5, %r4, 4; and.b32 %r5, %r5, 0x3fff; cvt.u64.u32 %rd20, %r5;"
        "or.b64 %rd20, %rd20, 0x0000004000080000; add.s64 %rd21, %rd20, 1024;"
        "mov.u32 %r300, %r1; mov.u32 %r301, %r1; mov.u32 %r302, %r1; mov.u32 %r303, %r1;"
    ]
    store = "st.global.u32 [%rd2], %r{};" if letter == "r" else "st.global.f32 [%rd2], %f{};"
    end = [store.format(20 + place) for place in range(columns // 2)]
    text = entry(body, "\n".join(begin), "\n".join(end), shared=True)
    return TimedKernel(text, 16 * 8, 64 * 1024), 64 * columns * k


def atomics(kind: str, stride_bytes: int, span_bytes: int) -> TimedKernel:
    """Reductions in global memory: lanes `stride_bytes` apart (0: one address), within `span_bytes`.

    `kind`: `u32`, `f32`, or `v2.f32` and `v4.f32` of several words side by side.
    """
    value = "%f200" if "f32" in kind else "%r200"
    if kind.startswith("v"):
        value = f"{{{', '.join([value] * int(kind[1]))}}}"
    line = f"red.global.add.{kind} [%rd11], {value};\n"
    before = f"""
mov.u32 %r5, %ntid.x; mad.lo.u32 %r10, %r2, %r5, %r1; mul.lo.u32 %r10, %r10, {stride_bytes};
and.b32 %r10, %r10, {span_bytes - 1}; cvt.u64.u32 %rd11, %r10; add.s64 %rd11, %rd11, %rd1;
mov.u32 %r200, 1; mov.f32 %f200, 0f3f800000;"""
    return TimedKernel(entry(looped(line * 8, 8), before), 64)


def atomics_shared(stride_words: int) -> TimedKernel:
    """Atomic additions in shared memory, lanes `stride_words` apart (0: one address)."""
    before = f"and.b32 %r11, %r1, 31; mad.lo.u32 %r10, %r11, {4 * stride_words}, %r4; mov.u32 %r200, 1;"
    return TimedKernel(
        entry(looped("red.shared.add.u32 [%r10], %r200;\n" * 16), before, shared=True), LOOP * 16, 32 * 1024
    )


def copies(steps: int = 128) -> TimedKernel:
    """cp.async of 16 bytes by each thread, waited for before the next."""
    line = "cp.async.cg.shared.global [%r10], [%rd10], 16;\ncp.async.commit_group;\ncp.async.wait_group 0;\n"
    line += "add.s64 %rd10, %rd10, %rd12;\n"
    before = "mad.lo.u32 %r10, %r1, 16, %r4; mul.wide.u32 %rd10, %r1, 16; add.s64 %rd10, %rd10, %rd1;"
    before += "mul.wide.u32 %rd12, %r3, 1;"
    return TimedKernel(entry(looped(line * 8, steps // 8), before, shared=True), steps, 32 * 1024)


def scattered_copies(
    size: int, lanes: int, apart: tuple[int, int], jump: tuple[int, int], cache: str = "ca", again: int = 0
) -> TimedKernel:
    """cp.async of lanes in groups, 16 a turn.

    Args:
        size: bytes of a lane: 4, 8 or 16.
        lanes: of a group; a power of two.
        apart: bytes from one lane to the next in global and in shared memory.
        jump: bytes from the first lane of a group to that of the next in global and in shared memory.
        cache: `ca`, or `cg` for copies that pass L1 by.
        again: how many copies one after another copy side by side, of places that L2 holds; 0 where all 16 of all turns
            copy the same, which L1 holds.
    """
    region = max(32 // lanes * jump[0] if lanes < 32 else 0, lanes * apart[0], 128)
    places = [number // again * region + number % again * size if again else 0 for number in range(16)]
    lines = [
        f"cp.async.{cache}.shared.global [%r10+{1024 * number}], [%rd11+{place}], {size};"
        for number, place in enumerate(places)
    ]
    lines += ["cp.async.commit_group;", "cp.async.wait_group 1;"]
    if again:
        # Each warp has places of its own, and none comes round.
        lines.append(f"add.s64 %rd11, %rd11, {16 // again * region};")
    before = f"""
and.b32 %r11, %r1, {lanes - 1}; and.b32 %r12, %r1, 31; div.u32 %r12, %r12, {lanes};
mad.lo.u32 %r10, %r11, {apart[1]}, %r4; mad.lo.u32 %r10, %r12, {jump[1]}, %r10;
mul.lo.u32 %r13, %r11, {apart[0]}; mad.lo.u32 %r13, %r12, {jump[0]}, %r13;
shr.u32 %r14, %r1, 5; mad.lo.u32 %r13, %r14, {LOOP * 16 * region if again else 0}, %r13;
cvt.u64.u32 %rd10, %r13; add.s64 %rd11, %rd10, %rd1;"""
    return TimedKernel(entry(looped("\n".join(lines)), before, "cp.async.wait_all;", shared=True), LOOP * 16, 32 * 1024)


def bulk_copies(size: int, steps: int = 64) -> TimedKernel:
    """cp.async.bulk of `size` bytes by one thread (n bytes further each time), waited for by an mbarrier."""
    line = f"""
mbarrier.arrive.expect_tx.shared.b64 _, [%r4], {size};
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r10], [%rd10], {size}, [%r4];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [%r4], %r12;
@!%p2 bra WAIT;
xor.b32 %r12, %r12, 1; add.s64 %rd10, %rd10, %rd12;
"""
    before = """
mbarrier.init.shared.b64 [%r4], 1; fence.proxy.async; mov.u32 %r12, 0; add.u32 %r10, %r4, 1024;
mul.wide.u32 %rd12, %r3, 1; mul.wide.u32 %rd10, %r2, 4194304; add.s64 %rd10, %rd10, %rd1;"""
    return TimedKernel(entry(looped(line, steps), before, shared=True), steps, size + 2048)


def sectors(
    words: float, lanes: int, jump: int, span_bytes: int, store: bool = False, count: int = 8, cache: str = ".cg"
) -> TimedKernel:
    """Accesses whose lanes lie side by side in groups of `lanes`, a group `jump` bytes after the one before.

    Args:
        words: 4-byte words of each lane; 0.5 for two bytes.
        lanes: a power of two, of one group.
        jump: bytes from the first byte of a group to that of the next.
        span_bytes: a power of two; all accesses lie within.
        store: whether it writes.
        count: accesses of each thread in flight, 16 times.
        cache: the cache operator of loads.
    """
    kind = {0.5: "u16", 1: "u32", 2: "v2.u32", 4: "v4.u32"}[words]
    each = max(int(words), 1)
    lines = []
    for number in range(count):
        letter = "%h1" if words < 1 else ""
        registers = letter or ", ".join(f"%r{20 + each * number + part}" for part in range(each))
        registers = f"{{{registers}}}" if each > 1 else registers
        lines.append("and.b64 %rd11, %rd10, %rd14; add.s64 %rd11, %rd11, %rd1;")
        lines.append(
            f"st.global.{kind} [%rd11], {registers};" if store else f"ld.global{cache}.{kind} {registers}, [%rd11];"
        )
        lines.append("add.s64 %rd10, %rd10, %rd12;")
    if not store:
        lines += [f"xor.b32 %r14, %r14, %r{20 + part};" for part in range(each * count)]
    fill = "\n".join(f"mov.u32 %r{20 + part}, %r1;" for part in range(each * count))
    before = f"""
mov.u32 %r5, %ntid.x; mov.u32 %r6, %nctaid.x; mad.lo.u32 %r10, %r2, %r5, %r1; mov.u16 %h1, 1;
and.b32 %r11, %r10, {lanes - 1}; sub.u32 %r12, %r10, %r11; mul.wide.u32 %rd10, %r12, {jump};
shr.u64 %rd10, %rd10, {lanes.bit_length() - 1}; mul.wide.u32 %rd13, %r11, {int(4 * words)}; add.s64 %rd10, %rd10, %rd13;
mul.lo.u32 %r11, %r5, %r6; mul.wide.u32 %rd12, %r11, {jump}; shr.u64 %rd12, %rd12, {lanes.bit_length() - 1};
mov.u64 %rd14, {span_bytes - 1}; mov.u32 %r14, 0;
{fill if store else ""}"""
    after = "setp.eq.u32 %p2, %r14, 12345; @%p2 st.global.u32 [%rd2], %r14;"
    return TimedKernel(entry(looped("\n".join(lines), 16), before, after), 16 * count)


def straight_code(kilobytes: int, turns: int = 8) -> TimedKernel:
    """A loop of so many kilobytes of FMAs, 16 bytes each, in four chains."""
    count = kilobytes * 64
    lines = [f"fma.rn.f32 %f{10 + number % 4}, %f{10 + number % 4}, %f200, %f201;" for number in range(count)]
    before = "cvt.rn.f32.u32 %f200, %r3; cvt.rn.f32.u32 %f201, %r1;"
    before += "".join(f"cvt.rn.f32.u32 %f{10 + chain}, %r1;" for chain in range(4))
    after = "".join(f"st.global.f32 [%rd2+{4 * chain}], %f{10 + chain};" for chain in range(4))
    return TimedKernel(entry(looped("\n".join(lines), turns), before, after), count * turns)


def streams(words: int, unroll: int, is_apart: bool) -> str:
    """Read n bytes × 64 KiB: each CTA in order, from a region of its own or pieces that lie next to other CTAs'.

    Each thread has `unroll` accesses of `words` words in flight, whose CTA covers one piece with all of them.
    """
    kind = {1: "u32", 2: "v2.u32", 4: "v4.u32"}[words]
    size = 4 * words
    lines = []
    for number in range(unroll):
        registers = ", ".join(f"%r{20 + words * number + part}" for part in range(words))
        registers = f"{{{registers}}}" if words > 1 else registers
        lines.append(f"ld.global.{kind} {registers}, [%rd10]; add.s64 %rd10, %rd10, %rd12;")
    lines += [f"xor.b32 %r14, %r14, %r{20 + part};" for part in range(words * unroll)]
    lines.append("add.s64 %rd10, %rd10, %rd15;")
    body = f"LOOP:\n{chr(10).join(lines)}\nsub.s64 %rd16, %rd16, 1; setp.gt.s64 %p1, %rd16, 0;\n@%p1 bra LOOP;"
    begin = "mul.lo.s64 %rd18, %rd17, %rd16;" if is_apart else "mov.u64 %rd18, %rd17;"
    jump = "mov.u64 %rd15, 0;" if is_apart else "mul.lo.s64 %rd15, %rd17, %rd14; sub.s64 %rd15, %rd15, %rd17;"
    # %rd17: bytes of a piece; %rd14: CTAs; %rd16: pieces of a CTA; %rd12: from one access of a thread to its next.
    before = f"""
mov.u32 %r5, %ntid.x; mov.u32 %r6, %nctaid.x; cvt.u64.u32 %rd14, %r6;
mul.wide.u32 %rd12, %r5, {size}; mul.lo.s64 %rd17, %rd12, {unroll};
mul.wide.u32 %rd16, %r3, 65536; mul.lo.s64 %rd19, %rd17, %rd14; div.u64 %rd16, %rd16, %rd19;
{begin} {jump}
cvt.u64.u32 %rd11, %r2; mul.lo.s64 %rd10, %rd18, %rd11; add.s64 %rd10, %rd10, %rd1;
mul.wide.u32 %rd11, %r1, {size}; add.s64 %rd10, %rd10, %rd11; mov.u32 %r14, 0;"""
    return entry(body, before, _SUNK)


BESIDE = {
    "special": "ex2.approx.ftz.f32 %f{i}, %f{i};",
    "fma": "fma.rn.f32 %f{i}, %f{i}, %f200, %f201;",
    "add": "add.f32 %f{i}, %f{i}, %f201;",
    "alu": "shf.l.wrap.b32 %r{i}, %r{i}, %r{i}, 7;",
    "convert": "cvt.rn.f16x2.f32 %r{i}, %f{i}, %f201; mov.b32 %f{i}, %r{i};",
    "shared": "ld.volatile.shared.v4.u32 {{%r{i}, %r21, %r22, %r23}}, [%r201+{place}];",
}
"""What other warps do while one warpgroup multiplies, by the unit that does it."""


def beside_wgmma(unit: str, multiplies: bool, others: bool, from_registers: bool = False, each: int = 128) -> str:
    """Two warpgroups: one has 512 wgmma m64n128k16 in groups of 8, the other up to 32,768 instructions of a unit.

    A thread of each stores its clocks behind the first result.

    Args:
        unit: one of `BESIDE`.
        multiplies: whether the first warpgroup works.
        others: whether the second one does.
        from_registers: whether A comes from registers.
        each: instructions of the unit among 128; the others wait for a few cycles.
    """
    sums = ", ".join(f"%f{20 + place}" for place in range(64))
    a, more = ("{%r300, %r301, %r302, %r303}", "1, 1, 1, 0") if from_registers else ("%rd20", "1, 1, 1, 0, 0")
    one = f"wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {{{sums}}}, {a}, %rd21, {more};\n"
    group = f"wgmma.fence.sync.aligned;\n{one * 8}wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
    loop = 'mov.u32 %r9, {}; {}:\n.pragma "nounroll";\n{}\nsub.u32 %r9, %r9, 1; setp.ne.u32 %p1, %r9, 0; @%p1 bra {};\n'
    first = loop.format(64, "FIRST", group, "FIRST")
    line = "\n".join(BESIDE[unit].format(i=10 + number % 8, place=2048 * (number % 8)) for number in range(each))
    second = loop.format(256, "SECOND", line, "SECOND")
    body = f"""mov.u64 %rd7, %clock64;
setp.ge.u32 %p3, %r1, 128;
@%p3 bra OTHER;
{first if multiplies else ""}
mov.u64 %rd8, %clock64;
bra.uni DONE;
OTHER:
{second if others else ""}
mov.u64 %rd8, %clock64;
DONE:
sub.s64 %rd8, %rd8, %rd7;"""
    begin = [f"mov.f32 %f{20 + place}, 0f00000000;" for place in range(64)]
    begin += [f"cvt.rn.f32.u32 %f{10 + chain}, %r1; add.u32 %r{10 + chain}, %r1, {chain};" for chain in range(8)]
    begin += [f"mov.u32 %r{place}, 0;" for place in range(18, 24)]
    begin.append(
        "cvt.rn.f32.u32 %f200, %r3; cvt.rn.f32.u32 %f201, %r1; mad.lo.u32 %r201, %r1, 16, %r4;"
        "shr.u32 %r5, %r4, 4; and.b32 %r5, %r5, 0x3fff; cvt.u64.u32 %rd20, %r5;"
        "or.b64 %rd20, %rd20, 0x0000004000080000; add.s64 %rd21, %rd20, 1024;"
        "mov.u32 %r300, %r1; mov.u32 %r301, %r1; mov.u32 %r302, %r1; mov.u32 %r303, %r1;"
    )
    end = [f"st.global.f32 [%rd2+{4 * place}], %f{place};" for place in (*range(10, 18), *range(20, 84))]
    end += [f"st.global.u32 [%rd2+{512 + 4 * place}], %r{place};" for place in range(10, 24)]
    end.append(
        "and.b32 %r5, %r1, 127; setp.eq.u32 %p4, %r5, 0; shr.u32 %r6, %r1, 7; mul.wide.u32 %rd9, %r6, 8;"
        "add.s64 %rd9, %rd9, %rd0; @%p4 st.global.u64 [%rd9+8], %rd8;"
    )
    return entry(body, "\n".join(begin), "\n".join(end), shared=True)


def l1_reads(stride_bytes: int, words: int = 1) -> TimedKernel:
    """Loads that hit L1, whose lanes lie `stride_bytes` apart: 16 loads or more; each warp has 16 in flight."""
    kind = {1: "u32", 2: "v2.u32", 4: "v4.u32"}[words]
    size, lines = 4 * words, []
    for number in range(16):
        registers = ", ".join(f"%r{20 + words * number + part}" for part in range(words))
        registers = f"{{{registers}}}" if words > 1 else registers
        lines.append(f"ld.global.ca.{kind} {registers}, [%rd10+{size * number % stride_bytes}];")
    lines += [f"xor.b32 %r14, %r14, %r{20 + part};" for part in range(16 * words)]
    lines.append("xor.b64 %rd10, %rd10, 65536;")
    before = f"""
and.b32 %r11, %r1, 31; mul.wide.u32 %rd10, %r11, {stride_bytes}; add.s64 %rd10, %rd10, %rd1; mov.u32 %r14, 0;"""
    text = entry(looped("\n".join(lines)), before, "st.global.u32 [%rd2], %r14;")
    return TimedKernel(text, LOOP * 16)


def reuse(kilobytes: int, sectors: int, stores: str) -> TimedKernel:
    """Loads of one warp that L1 may have since a first pass over the same lines, each after the one before.

    Args:
        kilobytes: of the lines, whether all of them is used or not.
        sectors: of each line: 1, 2 or 4.
        stores: to as many other lines: `none`; `between` the two passes; `beside` each load of the second one.
    """
    lines = 4 // sectors
    turns = kilobytes * 1024 // (lines * 128)
    step = f"add.s64 %rd10, %rd10, {lines * 128};"
    store = "st.global.u32 [%rd10+1073741824], %r14;"
    load = "ld.global.u32 %r20, [%rd10]; cvt.u64.u32 %rd13, %r20; add.s64 %rd10, %rd10, %rd13;"
    load += "xor.b32 %r14, %r14, %r20;"
    begin = "mov.u64 %rd10, %rd11;"

    def over(name: str, lines: str) -> str:
        return begin + looped(lines, turns).replace("LOOP", name)

    passes = over("FIRST", load + step) + (over("STORES", store + step) if stores == "between" else "")
    before = f"""
and.b32 %r11, %r1, {8 * sectors - 1}; div.u32 %r12, %r1, {8 * sectors}; mul.lo.u32 %r12, %r12, 128;
mad.lo.u32 %r11, %r11, 4, %r12; cvt.u64.u32 %rd11, %r11; add.s64 %rd11, %rd11, %rd1; mov.u32 %r14, 0;
{passes} {begin}"""
    body = looped(load + (store if stores == "beside" else "") + step, turns)
    return TimedKernel(entry(body, before, "st.global.u32 [%rd2], %r14;"), turns)


def stores_again(times: int, apart: int, span_bytes: int, size: int = 2, between: int = 1) -> TimedKernel:
    """Stores of `size` bytes, `apart` bytes from lane to lane, `times` into the same sectors.

    `between`: each comes after so many, all but one of which store to other sectors.
    """
    name = {2: "%h1", 4: "%r200"}[size]
    lines = []
    for _ in range(4):
        lines.append("and.b64 %rd11, %rd10, %rd14; add.s64 %rd11, %rd11, %rd1;")
        for number in range(times):
            for other in range(between):
                place = size * number + other * (5 << 20)
                lines.append(f"st.global.u{8 * size} [%rd11+{place}], {name};")
        lines.append("add.s64 %rd10, %rd10, %rd12;")
    before = f"""
mov.u32 %r5, %ntid.x; mov.u32 %r6, %nctaid.x; mad.lo.u32 %r10, %r2, %r5, %r1; mov.u16 %h1, 1; mov.u32 %r200, %r1;
mul.wide.u32 %rd10, %r10, {apart}; mul.lo.u32 %r11, %r5, %r6; mul.wide.u32 %rd12, %r11, {apart};
mov.u64 %rd14, {span_bytes - 1};"""
    return TimedKernel(entry(looped("\n".join(lines), 16), before), 64 * times * between)


_KINDS = {
    # name: (an instruction on register {i}, and {j}; the same in every second turn; the letter of its register)
    "fma": ("fma.rn.f32 %f{i}, %f{i}, %f200, %f201;", "", "f"),
    "float_minimum": ("min.f32 %f{i}, %f{i}, %f200;", "max.f32 %f{i}, %f{i}, %f201;", "f"),
    "half": ("fma.rn.f16x2 %r{i}, %r{i}, %r200, %r201;", "", "r"),
    "multiply": ("mad.lo.s32 %r{i}, %r{i}, %r200, %r201;", "", "r"),
    "multiply_high": ("mul.hi.u32 %r{i}, %r{i}, %r200;", "", "r"),
    "multiply_wide": (
        "mul.wide.u32 %rd{i}, %r{i}, %r200; mov.b64 {{%r{i}, %r{j}}}, %rd{i}; xor.b32 %r{i}, %r{i}, %r{j};",
        "",
        "r",
    ),
    "add": ("add.u32 %r{i}, %r{i}, %r{j};", "add.u32 %r{j}, %r{j}, %r{i};", "r"),
    "logic": ("lop3.b32 %r{i}, %r{i}, %r200, %r201, 0x6a;", "", "r"),
    "minimum": ("min.s32 %r{i}, %r{i}, %r200;", "max.s32 %r{i}, %r{i}, %r201;", "r"),
    "shift": ("shf.l.wrap.b32 %r{i}, %r{i}, %r200, %r201;", "", "r"),
    "shift_left": ("shl.b32 %r{i}, %r{i}, %r200; xor.b32 %r{i}, %r{i}, %r201;", "", "r"),
    "shift_right": ("shr.u32 %r{i}, %r{i}, %r200; xor.b32 %r{i}, %r{i}, %r201;", "", "r"),
    "permute": ("prmt.b32 %r{i}, %r{i}, %r200, 0x2154;", "", "r"),
    "select": ("selp.b32 %r{i}, %r{i}, %r200, %p2;", "selp.b32 %r{i}, %r201, %r{i}, %p3;", "r"),
    "pack": ("cvt.rn.bf16x2.f32 %r{i}, %f200, %f201; mov.b32 %f{i}, %r{i}; add.f32 %f200, %f200, %f{i};", "", "r"),
    "special": ("ex2.approx.ftz.f32 %f{i}, %f{i};", "", "f"),
    "double": ("fma.rn.f64 %d{i}, %d{i}, %d20, %d21;", "", "d"),
}
PIPES = (
    *((name, name) for name in _KINDS),
    ("fma", "multiply"), ("fma", "multiply_high"), ("fma", "half"), ("fma", "minimum"), ("fma", "float_minimum"),
    ("half", "multiply"), ("multiply", "multiply_wide"), ("multiply", "logic"), ("logic", "minimum"),
    ("logic", "add"), ("logic", "shift"), ("logic", "permute"), ("logic", "select"), ("fma", "special"),
    ("logic", "special"), ("multiply", "special"), ("add", "multiply"), ("add", "fma"), ("fma", "double"),
    ("shift", "fma"), ("shift_left", "fma"), ("shift_right", "fma"), ("permute", "fma"), ("logic", "fma"),
    ("select", "fma"), ("shift", "multiply"),
)  # fmt: skip
"""Two kinds of instructions, or one twice: whether they wait for one another."""


def pipes(first: str, second: str) -> TimedKernel:
    """Eight chains of instructions, every second one of another kind."""
    begin = ["mov.u32 %r200, %r3; add.u32 %r201, %r3, 3; cvt.rn.f32.u32 %f200, %r3; cvt.rn.f32.u32 %f201, %r201;",
             "cvt.rn.f64.u32 %d20, %r3; cvt.rn.f64.u32 %d21, %r201; setp.gt.u32 %p2, %r1, %r3;",
             "setp.gt.u32 %p3, %r1, %r201;"]  # fmt: skip
    end, lines = [], []
    for chain in range(8):
        _, _, letter = _KINDS[second if chain % 2 else first]
        register = 10 + chain
        begin.append({
            "f": f"cvt.rn.f32.u32 %f{register}, %r1;", "d": f"cvt.rn.f64.u32 %d{register}, %r1;",
            "r": f"add.u32 %r{register}, %r1, {chain}; add.u32 %r{register + 100}, %r3, {chain};"
                 f"cvt.u64.u32 %rd{register}, %r1;",
        }[letter])  # fmt: skip
        kind = {"f": "f32", "r": "u32", "d": "f64"}[letter]
        end.append(f"st.global.{kind} [%rd2+{8 * chain}], %{letter}{register};")
    for turn in range(16):
        for chain in range(8):
            text, other, _ = _KINDS[second if chain % 2 else first]
            lines.append((other if other and turn % 2 else text).format(i=10 + chain, j=110 + chain))
    return TimedKernel(entry(looped("\n".join(lines)), "\n".join(begin), "\n".join(end)), 16 * 16 * 8)


def reads_together(share: int, is_next: bool, unroll: int, span_bytes: int) -> TimedKernel:
    """Loads of 16 bytes that hit L2, of which several CTAs read the same ones at about the same time.

    Args:
        share: CTAs that read the same.
        is_next: whether these CTAs follow one another, else they are as far apart as they can be.
        unroll: loads of each thread in flight.
        span_bytes: a power of two; all loads lie within.
    """
    lines = []
    for number in range(unroll):
        registers = ", ".join(f"%r{20 + 4 * number + part}" for part in range(4))
        lines.append("and.b32 %r11, %r10, %r12; cvt.u64.u32 %rd11, %r11; add.s64 %rd11, %rd11, %rd1;")
        lines.append(f"ld.global.cg.v4.u32 {{{registers}}}, [%rd11];\nadd.u32 %r10, %r10, %r13;")
    lines += [f"xor.b32 %r14, %r14, %r{20 + part};" for part in range(4 * unroll)]
    group = f"div.u32 %r7, %r2, {share};" if is_next else f"div.u32 %r7, %r6, {share}; rem.u32 %r7, %r2, %r7;"
    before = (
        f"mov.u32 %r12, {span_bytes - 1}; mov.u32 %r5, %ntid.x; mov.u32 %r6, %nctaid.x; mul.lo.u32 %r13, %r5, 16;"
        f"{group} mul.lo.u32 %r10, %r7, 55296; mad.lo.u32 %r10, %r1, 16, %r10; mov.u32 %r14, 0;"
    )
    turns = 512 // unroll
    text = entry(
        looped("\n".join(lines), turns), before, "setp.eq.u32 %p2, %r14, 12345; @%p2 st.global.u32 [%rd2], %r14;"
    )
    return TimedKernel(text, turns * unroll)


def mixed(loads: int, stores: int) -> str:
    """Read `loads` regions of n × 64 KiB and write `stores` others, in order, a word of each in flight a thread."""
    lines = [f"ld.global.u32 %r{20 + number}, [%rd{20 + number}];" for number in range(loads)]
    lines += [f"xor.b32 %r14, %r14, %r{20 + number};" for number in range(loads)]
    lines += [f"st.global.u32 [%rd{20 + loads + number}], %r14;" for number in range(stores)]
    lines += [f"add.s64 %rd{20 + number}, %rd{20 + number}, %rd12;" for number in range(loads + stores)]
    body = "LOOP:\n" + "\n".join(lines) + "\nsetp.lt.u64 %p1, %rd20, %rd13;\n@%p1 bra LOOP;"
    before = """
mov.u32 %r5, %ntid.x; mov.u32 %r6, %nctaid.x; mad.lo.u32 %r10, %r2, %r5, %r1;
mul.wide.u32 %rd20, %r10, 4; add.s64 %rd20, %rd20, %rd1; mul.lo.u32 %r11, %r5, %r6; mul.wide.u32 %rd12, %r11, 4;
mul.wide.u32 %rd14, %r3, 65536; add.s64 %rd13, %rd14, %rd1; mov.u32 %r14, 0;
"""
    before += "\n".join(f"add.s64 %rd{20 + number}, %rd{19 + number}, %rd14;" for number in range(1, loads + stores))
    return entry(body, before, _SUNK)
