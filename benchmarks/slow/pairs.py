"""All pairs, in order; run as a script, launches each of them once, first the slow one: what a recording takes."""

import sys

import benchmarks.slow.launches
import benchmarks.slow.memory
import benchmarks.slow.products
import benchmarks.slow.textbook  # noqa: F401
from benchmarks.slow.pair import PAIRS

if __name__ == "__main__":
    for one in PAIRS:
        if not sys.argv[1:] or one.name in sys.argv[1:]:
            given = one.arguments()
            one.slow(*given)
            one.fast(*given)
