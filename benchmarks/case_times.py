"""Check a case study of docs/cases on the GPU, and print its times before and after as JSON: `case_times.py NAME`."""

import json
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import cast

import torch
import triton

CASES = Path(__file__).parents[1] / "docs" / "cases"
ROUNDS = 7


def main() -> None:
    name = sys.argv[1]
    if not torch.cuda.is_available():
        sys.exit("this machine has no GPU that torch can use")
    sys.path.insert(0, str(CASES))
    case = import_module(name)
    if name == "recompile_storm":
        # Its launches are of other lengths: what they compile is Triton's own.
        case.before(*case.arguments())
        pairs = [(first_call_ms(case, case.before), first_call_ms(case, case.after))]
    else:
        pairs = in_turns_ms(case)
    case.main()
    found = {"pairs_ms": pairs, "triton": triton.__version__, "gpu": torch.cuda.get_device_name()}
    print(json.dumps(found))


def in_turns_ms(case) -> list[tuple[float, ...]]:
    """Return the median times of both, for each round."""
    given = case.arguments(large=True)
    return [
        tuple(
            cast(float, triton.testing.do_bench(lambda run=run: run(*given), return_mode="median"))
            for run in (case.before, case.after)
        )
        for _ in range(ROUNDS)
    ]


def first_call_ms(case, run) -> float:
    """Return the time of one call with its compiles."""
    given = case.arguments(large=True)
    torch.cuda.synchronize()
    started = time.perf_counter()
    run(*given)
    torch.cuda.synchronize()
    return (time.perf_counter() - started) * 1e3


if __name__ == "__main__":
    main()
