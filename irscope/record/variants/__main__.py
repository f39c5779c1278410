"""`python -m irscope.record.variants FD`: a worker of the pool of variants; see `irscope.record.variants.worker`."""

from __future__ import annotations

import sys

from irscope.record.variants.worker import main

if __name__ == "__main__":
    main(int(sys.argv[1]))
