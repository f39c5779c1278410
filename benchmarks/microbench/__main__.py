"""Measures the constants of this machine's GPU and writes them as JSON."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.microbench import kernels
from irscope.record.gpu import microbench
from irscope.record.gpu.microbench import (
    REPEATS,
    LoadedKernel,
    TimedKernel,
    assemble,
    launch_seconds,
    nothing,
)


class Microbenchmarks(microbench.Microbenchmarks):
    """Runs kernels, and gathers named constants with their spread over repeats."""

    def __init__(self) -> None:
        super().__init__()
        self.constants: dict[str, dict[str, Any]] = {}
        self.clock_hz = 0.0

    def record(self, name: str, values: list[float], unit: str, how: str) -> float:
        """Store the median of some values with their extremes."""
        median, least, most = (float(f"{of(values):.5g}") for of in (statistics.median, min, max))
        self.constants[name] = {"median": median, "min": least, "max": most, "unit": unit, "how": how}
        return median

    def clocks(self, timed: TimedKernel, ctas: int = 1, threads: int = 32, n: int = 3) -> list[float]:
        """Clocks of the slowest CTA, of each repeat after one for warming."""
        program = LoadedKernel.load(assemble(timed.text), timed.shared_bytes)
        values = []
        for repeat in range(REPEATS + 1):
            program.launch(ctas, threads, (self.out, self.data, self.sink), n, timed.shared_bytes)
            taken = float(self.out[:ctas].max().item())
            if repeat:
                values.append(taken)
        return values


def clock_rate(bench: Microbenchmarks) -> None:
    """The clock under an arithmetic load."""
    values = microbench.clock_rate(bench)
    how = "a kernel of FMAs on all multiprocessors"
    bench.clock_hz = bench.record("clock_hz", values, "cycles in a second", how)


def arithmetic(bench: Microbenchmarks) -> None:
    """Latencies and rates of the pipes."""
    for name in ("fma", "alu", "multiply", "half", "double", "special", "reciprocal_root", "convert",
                 "population_count", "shuffle"):  # fmt: skip
        alone = kernels.arithmetic(name, 1)
        values = [clocks / alone.operations for clocks in bench.clocks(alone)]
        bench.record(f"{name}_latency", values, "cycles", "one warp, each instruction waits for the one before")
        many = kernels.arithmetic(name, 8)
        values = [clocks / many.operations / 8 for clocks in bench.clocks(many, threads=1024)]
        how = "32 warps, 8 chains each; cycles of a scheduler for each warp instruction"
        bench.record(name, values, "cycles per warp instruction of a scheduler", how)
    bench.constants["convert"]["how"] += "; a pair of conversions (F2I and I2F) counts once"


def tensor_cores(bench: Microbenchmarks) -> None:
    """mma.sync and wgmma by type and shape."""
    for name in ("f16", "bf16", "tf32", "i8", "f8", "f64"):
        alone, operations = kernels.mma(name, 1)
        bench.record(f"mma_latency_{name}", [clocks / alone.operations for clocks in bench.clocks(alone)], "cycles",
                     "one warp, each instruction waits for the one before")  # fmt: skip
        many, operations = kernels.mma(name, 4)
        values = [operations * many.operations * 4 / clocks for clocks in bench.clocks(many, threads=512)]
        bench.record(f"mma_flops_{name}", values, "FMAs of a scheduler in a cycle", "16 warps, 4 chains each")
    for name in ("f16", "tf32", "f8", "i8"):
        for columns in (8, 16, 32, 64, 128, 256):
            timed, operations = kernels.wgmma(name, columns)
            for groups in (1, 2) if columns > 64 else (1, 2, 4):
                how = f"{groups} warpgroups, 8 instructions a group, operands in shared memory, all zero"
                clocks = bench.clocks(timed, threads=128 * groups)
                values = [taken / timed.operations / groups for taken in clocks]
                row = f"wgmma_{name}_n{columns}_groups{groups}"
                bench.record(row, values, "cycles of the multiprocessor for each wgmma", how)
                flops = [operations / value / 4 for value in values]
                bench.record(f"{row}_flops", flops, "FMAs of a scheduler in a cycle", how)
    for columns in (64, 128):
        timed, _ = kernels.wgmma("f16", columns, from_registers=True)
        values = [taken / timed.operations for taken in bench.clocks(timed, threads=128)]
        bench.record(f"wgmma_f16_n{columns}_registers", values, "cycles of the multiprocessor for each wgmma",
                     "one warpgroup, A in registers")  # fmt: skip


def shared_memory(bench: Microbenchmarks) -> None:
    """Latency, wavefronts, atomics and barriers."""
    timed = kernels.chase_shared()
    bench.record("shared_latency", [taken / timed.operations for taken in bench.clocks(timed, threads=1)], "cycles",
                 "one thread, each load gives the next address")  # fmt: skip
    for stride, words in ((1, 1), (2, 1), (4, 1), (8, 1), (16, 1), (32, 1), (0, 1), (4, 4), (8, 4)):
        timed = kernels.shared_reads(stride, words)
        values = [taken / timed.operations / 16 for taken in bench.clocks(timed, threads=512)]
        bench.record(f"shared_read_{words}word_stride{stride}", values, "cycles of the multiprocessor for each warp",
                     "16 warps")  # fmt: skip
    for stride in (0, 1, 2, 32):
        timed = kernels.atomics_shared(stride)
        values = [taken / timed.operations / 8 for taken in bench.clocks(timed, threads=256)]
        bench.record(f"shared_atomic_stride{stride}", values, "cycles of the multiprocessor for each warp", "8 warps")
    for warps in (1, 2, 4, 8, 16, 32):
        timed = kernels.barriers()
        values = [taken / timed.operations for taken in bench.clocks(timed, threads=32 * warps)]
        bench.record(f"barrier_{warps}warps", values, "cycles", "bar.sync one after another")


def caches(bench: Microbenchmarks) -> None:
    """Latencies by pointer chases, bandwidths of L1 and L2, copies into shared memory."""
    for name, cache, span, stride, warm in (
        ("l1_latency", ".ca", 2 << 10, 128, True), ("l2_latency", ".cg", 2 << 20, 4096, True),
        ("l2_far_latency", ".cg", 32 << 20, 65536, True), ("dram_latency", ".cg", 4 << 30, 8 << 20, False),
        ("dram_near_latency", ".cg", 64 << 20, 128 << 10, False),
    ):  # fmt: skip
        values = microbench.latency(bench, cache, span, stride, warm=warm)
        how = f"one thread, dependent loads {stride} bytes apart within {span}"
        bench.record(name, values, "cycles", how if warm else f"{how}, L2 flushed")
    bench.data[: (64 << 20) // 8].zero_()
    for name, cache, span in (("l1_bytes", ".ca", 32 << 10), ("port_bytes", ".cg", 8 << 20)):
        for warps in (1, 4, 8, 16, 32):
            timed = microbench.reads_of_one(cache, span)
            values = [timed.operations * warps * 512 / taken for taken in bench.clocks(timed, threads=32 * warps)]
            bench.record(f"{name}_{warps}warps", values, "bytes in a cycle of one multiprocessor",
                         f"16-byte loads, 16 in flight for each thread, within {span} bytes")  # fmt: skip
    for span in (4 << 20, 16 << 20, 32 << 20):
        timed = microbench.reads_of_one(".cg", span, 256)
        for threads, ctas in ((1024, 2 * bench.units), (256, bench.units)):
            moved = timed.operations * threads * 16 * ctas
            values = [moved / taken for taken in bench.seconds(timed.text, ctas, threads)]
            name = f"l2_bytes_per_s_{span >> 20}MB_{ctas}x{threads}"
            bench.record(name, values, "bytes in a second of the whole part", "16-byte loads that hit L2")
    for threads in (32, 128, 512):
        timed = kernels.copies()
        values = [taken / timed.operations for taken in bench.clocks(timed, threads=threads, n=threads * 16)]
        bench.record(
            f"cp_async_{threads}threads", values, "cycles", "one cp.async of 16 bytes each, from L2, waited for"
        )
    for size in (128, 1024, 4096, 16384, 65536):
        timed = kernels.bulk_copies(size)
        for name, step in (("l2", 0), ("dram", max(size, 1 << 16))):
            flush = torch.empty(256 << 20, device="cuda", dtype=torch.int8)
            flush.zero_()
            values = [taken / timed.operations for taken in bench.clocks(timed, threads=1, n=step)]
            values = values if name == "l2" else values[:1]
            bench.record(
                f"bulk_copy_{name}_{size}bytes", values, "cycles", "one cp.async.bulk, waited for by an mbarrier"
            )
        values = [taken / timed.operations for taken in bench.clocks(timed, ctas=bench.units, threads=1, n=0)]
        bench.record(f"bulk_copy_l2_{size}bytes_all", values, "cycles", "one CTA on each multiprocessor")


def copies(bench: Microbenchmarks) -> None:
    """What asynchronous copies take, by the distance of their lanes on both sides, and by whether L1 has the data."""
    apart = [(4, to) for to in (4, 8, 16, 32, 128)] + [(each, 4) for each in (8, 16, 32, 64, 128, 132)]
    apart += [(8, 8), (16, 16), (32, 32), (128, 128), (16, 32), (32, 16), (8, 16), (16, 8), (128, 16), (16, 128)]
    rows = [(4, 32, each, (0, 0)) for each in apart]
    rows += [(4, lanes, (4, 4), (jump, 4 * lanes)) for lanes in (1, 2, 4, 8, 16) for jump in (32, 128, 512)]
    rows += [(4, 16, (16, 16), (jump, inside)) for jump in (4, 1024, 1028) for inside in (4, 256, 260, 128)]
    rows += [(4, 8, (128, 4), (4, 128)), (4, 4, (128, 4), (4, 16)), (4, 16, (32, 4), (512, 64))]
    rows += [(8, 32, each, (0, 0)) for each in ((8, 8), (16, 8), (32, 8), (128, 8), (8, 16), (8, 32), (16, 16))]
    rows += [(16, 32, each, (0, 0)) for each in ((16, 16), (32, 16), (64, 16), (128, 16), (16, 32), (16, 128))]
    for size, lanes, (outside, inside), jump in rows:
        for again in (0, 1, 2, 4):
            if again > 1 and outside < again * size:
                continue
            for cache in ("ca", "cg") if size == 16 else ("ca",):
                timed = kernels.scattered_copies(size, lanes, (outside, inside), jump, cache, again)
                values = [taken / timed.operations / 16 for taken in bench.clocks(timed, threads=512)]
                row = (
                    f"copy_{size}B_{cache}_{lanes}lanes_{outside}to{inside}apart_{jump[0]}to{jump[1]}jump_{again}again"
                )
                how = f"16 warps; lanes {outside} bytes apart in global memory and {inside} in shared memory"
                how += f", groups of {lanes} lanes {jump[0]} and {jump[1]} apart" if lanes < 32 else ""
                how += f", from L2, {again} side by side one after another" if again else ", from L1"
                bench.record(row, values, "cycles of the multiprocessor for each warp", how)


def memory(bench: Microbenchmarks) -> None:
    """DRAM's bandwidth by width, by accesses in flight and by CTAs; writes."""
    total = 1 << 30
    for store in (False, True):
        for words, unroll, threads, each in (
            (1, 1, 256, 8), (1, 4, 256, 8), (1, 8, 256, 8), (2, 4, 256, 8), (4, 1, 256, 8), (4, 2, 256, 8),
            (4, 4, 256, 8), (4, 8, 256, 4), (4, 1, 256, 1), (4, 2, 256, 1), (4, 4, 256, 1), (4, 8, 256, 1),
            (4, 4, 256, 2), (4, 4, 256, 4), (4, 4, 128, 1), (4, 8, 1024, 1), (4, 8, 1024, 2), (1, 1, 1024, 2),
            (1, 1, 128, 1), (1, 1, 512, 1), (1, 1, 1024, 1), (4, 1, 1024, 1), (4, 2, 1024, 1), (4, 4, 1024, 2),
        ):  # fmt: skip
            ctas = each * bench.units
            taken = bench.seconds(microbench.stream(words, unroll, store), ctas, threads, total >> 16)
            name = f"dram_{'write' if store else 'read'}_{4 * words}B_x{unroll}_{each}x{threads}"
            how = f"{4 * words} bytes × {unroll} in flight a thread, {each} CTAs of {threads} a multiprocessor"
            bench.record(name, [total / value for value in taken], "bytes in a second of the whole part", how)
    for share in (4, 16, 64):
        taken = bench.seconds(microbench.stream(4, 8), share, 1024, total >> 19)
        bench.record(f"dram_read_{share}ctas", [total / 8 / value for value in taken], "bytes in a second",
                     f"{share} CTAs of 1024 threads, 16 bytes × 8 in flight")  # fmt: skip


def atomics(bench: Microbenchmarks) -> None:
    """Reductions in global memory, by type, vector and how far lanes are apart."""
    patterns = (("one", 0, 4), ("line", 4, 128), ("sectors", 32, 1 << 24), *_side_by_side(4))
    # Few counters: lanes side by side, and each in a sector of its own as far as there are so many.
    patterns += tuple((f"span{1 << by}", 4, 1 << by) for by in (8, 9, 10, 11, 12, 13, 14))
    patterns += tuple((f"scattered{1 << by}", 36, 1 << by) for by in (8, 9, 10, 11, 12, 13, 15, 18))
    for kind, chosen in (
        ("u32", patterns),
        ("f32", patterns),
        ("v2.f32", _side_by_side(8)),
        ("v4.f32", _side_by_side(16)),
    ):
        for name, stride, span in chosen:
            timed = kernels.atomics(kind, stride, span)
            ctas, threads = 4 * bench.units, 256
            values = [taken * bench.clock_hz / (timed.operations * ctas * threads / 32)
                      for taken in bench.seconds(timed.text, ctas, threads)]  # fmt: skip
            bench.record(f"atomic_{kind}_{name}", values, "cycles of the whole part for each warp instruction",
                         f"red.global.add, lanes {stride} bytes apart within {span} bytes")  # fmt: skip


def _side_by_side(stride: int) -> tuple[tuple[str, int, int], ...]:
    """Patterns of lanes side by side: (name, bytes from one to the next, bytes after which others begin anew)."""
    return ("spread", stride, 1 << 24), *((f"span{span}", stride, span) for span in (1 << 18, 1 << 15))


def sectors(bench: Microbenchmarks) -> None:
    """Loads and stores by how many sectors of a line, and how many bytes of a sector, a warp accesses."""
    patterns = ((1, 32, 128), (4, 8, 128), (1, 16, 128), (4, 4, 128), (1, 8, 128), (4, 2, 128), (1, 8, 64), (1, 8, 256),
                (1, 1, 32), (1, 1, 64), (1, 1, 128), (1, 1, 256), (1, 4, 32), (2, 1, 32), (0.5, 1, 32), (0.5, 1, 128),
                (0.5, 4, 32), (0.5, 32, 64), (1, 1, 4096))  # fmt: skip
    for store in (False, True):
        for place, span in (("l2", 16 << 20), ("dram", 2 << 30)):
            for words, lanes, jump in (one for one in patterns if store or one[0] >= 1):
                timed = kernels.sectors(words, lanes, jump, span, store)
                ctas, threads = 8 * bench.units, 256
                values = [taken * 1e12 / (timed.operations * ctas * threads / 32)
                          for taken in bench.seconds(timed.text, ctas, threads)]  # fmt: skip
                name = f"{place}_{'write' if store else 'read'}_{4 * words:g}B_{lanes}lanes_{jump}apart"
                how = f"groups of {lanes} lanes of {4 * words:g} bytes, {jump} bytes apart, within {span} bytes"
                bench.record(name, values, "picoseconds of the whole part for each warp instruction", how)


def streams(bench: Microbenchmarks) -> None:
    """DRAM's rate where each CTA reads a region of its own, or pieces next to other CTAs', by what is in flight."""
    total = 1 << 30
    for words, unroll, threads, each in (
        (4, 1, 32, 1), (4, 1, 64, 1), (4, 1, 128, 1), (4, 1, 256, 1), (4, 1, 512, 1), (4, 1, 1024, 1), (4, 2, 1024, 1),
        (4, 1, 32, 8), (4, 1, 64, 8), (4, 1, 128, 8), (4, 1, 256, 8), (4, 2, 256, 8), (4, 4, 256, 8), (4, 4, 32, 8),
        (4, 8, 32, 8), (4, 4, 64, 8), (1, 1, 128, 8), (1, 4, 128, 8), (1, 1, 256, 8), (1, 4, 256, 8), (4, 4, 128, 2),
        (4, 4, 128, 4), (4, 1, 32, 16), (4, 1, 32, 32), (1, 1, 32, 32), (1, 4, 32, 32), (4, 2, 64, 16), (4, 4, 64, 16),
    ):  # fmt: skip
        for name, is_apart in (("apart", True), ("ordered", False)):
            ctas = each * bench.units
            piece = 4 * words * unroll * threads
            moved = total // (piece * ctas) * piece * ctas
            taken = bench.seconds(kernels.streams(words, unroll, is_apart), ctas, threads, total >> 16)
            row = f"stream_{name}_{4 * words}B_x{unroll}_{each}x{threads}"
            how = (
                f"{each} CTAs of {threads} threads a multiprocessor, {4 * words} bytes × {unroll} in flight a thread: "
                f"pieces of {piece} bytes, {'of a region of its own' if is_apart else 'next to those of other CTAs'}"
            )
            bench.record(row, [moved / value for value in taken], "bytes in a second of the whole part", how)


def mixed(bench: Microbenchmarks) -> None:
    """DRAM's latency where a few bytes are in flight, read and written, alone and with others."""
    size = 1 << 28
    for loads, stores in ((1, 0), (2, 0), (4, 0), (1, 1), (2, 1), (1, 2), (4, 1), (8, 0)):
        for threads, each in ((128, 1), (128, 2), (128, 4), (512, 1), (1024, 1), (1024, 2)):
            ctas = each * bench.units
            turns = size / 4 / threads / ctas
            taken = bench.seconds(kernels.mixed(loads, stores), ctas, threads, size >> 16)
            bench.record(f"mixed_{loads}loads_{stores}stores_{each}x{threads}",
                         [value * bench.clock_hz / turns for value in taken], "cycles of an iteration",
                         f"{each} CTAs of {threads} threads a multiprocessor, a word of each in flight")  # fmt: skip


def few_sectors(bench: Microbenchmarks) -> None:
    """Stores and loads of all CTAs that meet on a few sectors."""
    for store in (True, False):
        for jump in (4, 32):
            for span in (32, 128, 512, 2048, 4096, 8192, 32768, 131072, 1 << 20):
                timed = kernels.sectors(1, 1, jump, span, store)
                ctas, threads = 8 * bench.units, 256
                values = [taken * bench.clock_hz / (timed.operations * ctas * threads / 32)
                          for taken in bench.seconds(timed.text, ctas, threads)]  # fmt: skip
                name = f"few_{'write' if store else 'read'}_{jump}apart_{span}bytes"
                bench.record(name, values, "cycles of the whole part for each warp instruction",
                             f"lanes {jump} bytes apart, all within {span} bytes")  # fmt: skip


def again(bench: Microbenchmarks) -> None:
    """Loads that hit L1 by the distance of their lanes, and stores into sectors that were stored to just before."""
    for words in (1, 2, 4):
        # With fewer words from lane to lane the 16 loads of a warp would not all be different.
        for stride in (
            one for one in (64, 128, 256, 512, 1024, 132, 1028) if one >= 64 * words and one % (4 * words) == 0
        ):
            timed = kernels.l1_reads(stride, words)
            values = [taken / timed.operations / 16 for taken in bench.clocks(timed, threads=512)]
            bench.record(f"l1_read_{4 * words}B_{stride}apart", values, "cycles of the multiprocessor for each warp",
                         f"16 warps, {4 * words} bytes, lanes {stride} bytes apart, all in L1")  # fmt: skip
    rows = [(2, 16, times, 1) for times in (1, 2, 4, 8)] + [(2, 32, times, 1) for times in (1, 2, 4, 8, 16)]
    rows += [(2, 4, 1, 1), (2, 4, 2, 1), (4, 16, 1, 1), (4, 16, 2, 1), (4, 16, 4, 1), (4, 32, 1, 1), (4, 32, 8, 1)]
    rows += [(4, 8, 1, 1), (4, 8, 2, 1), *((4, 16, 4, between) for between in (2, 4, 8, 16)), (2, 16, 8, 4)]
    for size, apart, times, between in rows:
        for place, span in (("l2", 16 << 20), ("dram", 2 << 30)):
            timed = kernels.stores_again(times, apart, span, size, between)
            ctas, threads = 8 * bench.units, 256
            values = [taken * bench.clock_hz / (timed.operations * ctas * threads / 32)
                      for taken in bench.seconds(timed.text, ctas, threads)]  # fmt: skip
            bench.record(f"{place}_again_{size}B_{apart}apart_{times}times_{between}between", values,
                         "cycles of the whole part for each warp instruction",
                         f"{size} bytes, lanes {apart} bytes apart, {times} stores side by side, each after "
                         f"one to each of {between - 1} other places")  # fmt: skip


def reuse(bench: Microbenchmarks) -> None:
    """What L1 still has of lines that were loaded before, by how much of each is used, and by stores since then."""
    for stores in ("none", "between", "beside"):
        for sectors in (1, 2, 4):
            for kilobytes in (8, 16, 32, 48, 64, 96, 112, 128, 160, 192, 224, 256, 320, 512, 1024):
                timed = kernels.reuse(kilobytes, sectors, stores)
                values = [taken / timed.operations for taken in bench.clocks(timed)]
                bench.record(f"reuse_{sectors}of4_{kilobytes}KiB_stores_{stores}", values, "cycles for each load",
                             f"one warp goes twice over {kilobytes} KiB of lines, {sectors} of 4 sectors of each, with "
                             f"{stores} stores to as many lines")  # fmt: skip


def beside_wgmma(bench: Microbenchmarks) -> None:
    """Clocks of a warpgroup that multiplies and of one that uses another unit, alone and together."""
    rows = [(unit, 128, source) for source in (False, True) for unit in kernels.BESIDE]
    rows += [("fma", each, False) for each in (16, 32, 64)]
    for unit, each, from_registers in rows:
        for multiplies, others, name in ((True, False, "alone"), (False, True, "alone"), (True, True, "together")):
            text = kernels.beside_wgmma(unit, multiplies, others, from_registers, each)
            bench.clocks(TimedKernel(text, 1, 64 * 1024), threads=256)
            row = f"beside_{unit}_{each}_{'registers' if from_registers else 'shared'}"
            how = f"512 wgmma m64n128k16 in groups of 8, and {256 * each:,} instructions of each of 4 warps, {name}"
            for place, (works, side) in enumerate(((multiplies, "wgmma"), (others, "unit")), 1):
                if works:
                    bench.record(f"{row}_{side}_{name}", [float(bench.out[place].item())], "cycles", how)


def pipes(bench: Microbenchmarks) -> None:
    """Which kinds of instructions share a pipe, and for how long each takes it."""
    for first, second in kernels.PIPES:
        timed = kernels.pipes(first, second)
        values = [taken / timed.operations / 8 for taken in bench.clocks(timed, threads=1024)]
        bench.record(f"pipe_{first}_{second}", values, "cycles of a scheduler for each warp instruction",
                     "32 warps, 8 chains each, every second one of the other kind")  # fmt: skip


def together(bench: Microbenchmarks) -> None:
    """What L2 gives where several CTAs read the same at about the same time."""
    for each, threads, unroll in ((2, 512, 4), (4, 128, 4), (1, 256, 4)):
        for is_next in (True, False):
            for share in (1, 2, 4, 8, 16, 33, 66, 132):
                timed = kernels.reads_together(share, is_next, unroll, 16 << 20)
                ctas = each * bench.units
                moved = timed.operations * threads * 16 * ctas
                values = [moved / taken for taken in bench.seconds(timed.text, ctas, threads)]
                row = f"together_{'next' if is_next else 'apart'}_{share}of{ctas}_{threads}x{unroll}"
                bench.record(row, values, "bytes in a second of the whole part",
                             f"16-byte loads that hit L2, {unroll} in flight a thread; {share} CTAs read the same, "
                             f"{'next to one another' if is_next else 'far apart'}")  # fmt: skip


def code(bench: Microbenchmarks) -> None:
    """The rate of instructions by the size of a loop."""
    for kilobytes in (16, 32, 64, 96, 128, 160, 192, 256, 512):
        timed = kernels.straight_code(kilobytes)
        for threads in (32, 128, 512):
            values = [taken / timed.operations for taken in bench.clocks(timed, ctas=bench.units, threads=threads)]
            bench.record(f"code_{kilobytes}KB_{threads}threads", values, "cycles for each instruction of all warps",
                         "a loop of FMAs on all multiprocessors")  # fmt: skip


def launching(bench: Microbenchmarks) -> None:
    """The clock, and what launches and CTAs cost."""
    how = "an empty kernel between two events after 256 MB were set to zero"
    bench.record("launch_s", launch_seconds(bench), "seconds", how)
    empty = LoadedKernel.load(assemble(nothing().text))
    graph = torch.cuda.CUDAGraph()
    stream = torch.cuda.Stream()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(100):
            empty.launch(1, 32, (bench.out, bench.data, bench.sink))
    values = []
    for _ in range(REPEATS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        values.append(begin.elapsed_time(end) * 1e-5)
    bench.record("launch_in_graph_s", values, "seconds", "a hundredth of a graph of 100 empty kernels")
    for threads in (32, 128, 256, 1024):
        ctas = 200_000
        values = [taken * bench.clock_hz / ctas * bench.units for taken in
                  bench.seconds(_empty_many(), ctas, threads)]  # fmt: skip
        bench.record(f"cta_start_{threads}threads", values, "cycles of a multiprocessor for each CTA",
                     f"{ctas} empty CTAs")  # fmt: skip


def _empty_many() -> str:
    head = ".version 8.4\n.target sm_90a\n.address_size 64\n"
    parameters = ".param .u64 out, .param .u64 data, .param .u64 sink, .param .u32 n"
    return f"{head}.visible .entry k({parameters}) {{ ret; }}"


_GROUPS: tuple[Callable[[Microbenchmarks], None], ...] = (
    clock_rate, launching, arithmetic, shared_memory, caches, copies, memory, atomics, sectors, streams, mixed,
    few_sectors, again, pipes, together, reuse, code, tensor_cores, beside_wgmma,
)  # fmt: skip


def main() -> None:
    """Measure and write; a group that fails is named and left out."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.microbench", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("constants.json"))
    parser.add_argument("--only", default="", help="names of groups, separated by commas: default all")
    arguments = parser.parse_args()
    chosen = arguments.only.split(",") if arguments.only else [group.__name__ for group in _GROUPS]
    bench = Microbenchmarks()
    failures: list[str] = []
    for group in (group for group in _GROUPS if group.__name__ in chosen or group is clock_rate):
        began = time.monotonic()
        try:
            group(bench)
        except RuntimeError as error:
            failures.append(f"{group.__name__}: {error}")
        print(f"{group.__name__}: {time.monotonic() - began:.1f} s", flush=True)
        properties = torch.cuda.get_device_properties(0)
        machine = {"name": properties.name, "multiprocessors": bench.units, "l2_bytes": properties.L2_cache_size}
        command = "python -m benchmarks.microbench " + " ".join(sys.argv[1:])
        content = {"machine": machine, "command": command, "constants": bench.constants, "failures": failures}
        arguments.output.write_text(json.dumps(content, indent=1) + "\n")
    print("\n".join(failures) or "every group was measured")


if __name__ == "__main__":
    main()
