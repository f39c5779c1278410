"""Record a program for several targets and compare with it alone on each: `python targets.py TARGET... -- PART...`.

A first part that is the path of a script runs that one, with the others as its arguments.

Alone means without irscope: the program runs on the virtual GPU of that one target in a fresh process, and what Triton
puts in its cache is what counts. Then the captures of the first target are compiled for each other one, and compared
with the program's own compile there where both launches were given the same. Ends with 1 where a byte differs.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

from irscope.record.process.requests import request_for, request_from_capture
from irscope.record.process.session import record_request
from irscope.record.variants.pool import VariantPool

SCRIPT = Path(__file__).parent / "scripts" / "many_kernels.py"
ALONE = """
import sys
from pathlib import Path
from irscope.record.triton import api as triton_api
from irscope.record.programs.running import run_file
from irscope.record.virtual.gpu import virtual_gpu
from irscope.target import Target
triton_api.silence_known_noise()
with virtual_gpu(Target.parse(sys.argv[2])):
    run_file(Path(sys.argv[1]), tuple(sys.argv[3:]))
"""
STAGES = ("source", "ttir", "ttgir", "llir", "ptx", "cubin", "amdgcn", "hsaco")


def digest(data):
    return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()[:16]


def alone(script, target, parts):
    """The kernels that the program compiles on one target: each as its name and the digest of each stage."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "TRITON_CACHE_DIR": cache}
        subprocess.run([sys.executable, "-c", ALONE, script, target, *parts], env=environment, check=True)
        kernels = []
        for folder in Path(cache).iterdir():
            files = {path.suffix[1:]: path for path in folder.iterdir() if path.suffix[1:] in STAGES}
            if files:
                name = next(iter(files.values())).stem
                kernels.append((name, {stage: digest(files[stage].read_bytes()) for stage in STAGES if stage in files}))
    return kernels


def of_capture(capture):
    return (
        capture.name,
        {item.stage: digest(item.data) for item in capture.artifacts if item.stage in STAGES},
    )


def without_binary(kernels):
    # ptxas may make other bytes of one and the same PTX (see docs): then the PTX speaks for it.
    return Counter(
        (name, tuple((stage, key) for stage, key in rows.items() if stage != "cubin")) for name, rows in kernels
    )


def given(capture):
    launch = capture.launch
    return capture.name, launch.signature, launch.constants, launch.record, launch.set_options, launch.grid


def main():
    place = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    targets, parts = sys.argv[1:place], sys.argv[place + 1 :]
    script = Path(parts.pop(0)) if parts and parts[0].endswith(".py") else SCRIPT
    request = request_for(script, targets=targets, arguments=parts, snapshots="none", virtual=True)
    recording = record_request(replace(request, disassemble=False, layouts=False))
    wrong = 0
    by_target = {target: [one for one in recording.captures if str(one.target) == target] for target in targets}
    for target, captures in by_target.items():
        told, plain = [of_capture(one) for one in captures if one.has_compiled], alone(script, target, parts)
        here, there = without_binary(told), without_binary(plain)
        differ = sum(((here - there) + (there - here)).values())
        cubins = {rows["ptx"]: rows["cubin"] for _, rows in plain if "cubin" in rows}
        other = sum(rows["cubin"] != cubins.get(rows["ptx"]) for _, rows in told if "cubin" in rows)
        wrong += differ
        print(
            f"{target}: {len(told)} kernels, alone {len(plain)}, different {differ}, of one PTX another cubin {other}"
        )
        for name, _ in (here - there) | (there - here):
            print(f"  {name}")
    wrong += compiled_again(by_target)
    print(f"wrong: {wrong}", flush=True)
    os._exit(wrong > 0)


def compiled_again(by_target):
    """How many captures of the first target, compiled for another, are not the program's own compile there."""
    first, *others = by_target
    pairs = [
        (one, own, target)
        for target in others
        for one in by_target[first]
        for own in by_target[target]
        if own.has_compiled and one.has_compiled and given(own) == given(one)
    ]
    requests = [
        replace(request_from_capture(one, targets=(target,), snapshots="none"), disassemble=False, layouts=False)
        for one, _, target in pairs
    ]
    wrong = 0
    with VariantPool(jobs=1) as pool:
        for number, again in pool.compile(requests):
            _, own, target = pairs[number]
            made, wanted = of_capture(again)[1], of_capture(own)[1]
            if made.get("ptx") == wanted.get("ptx"):
                made["cubin"] = wanted.get("cubin")
            if differing := [stage for stage in wanted if made.get(stage) != wanted[stage]]:
                wrong += 1
                print(f"  {own.name} for {target} from {first}: {' '.join(differing)}; {' '.join(again.notes[1:])}")
    print(f"{len(pairs)} stored captures of {first} compiled for other targets, different {wrong}")
    return wrong


if __name__ == "__main__":
    main()
