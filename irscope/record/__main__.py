"""`python -m irscope.record FD`: the recording process; see `irscope.record.programs.worker`."""

from __future__ import annotations

import sys

from irscope.record.programs.worker import main

if __name__ == "__main__":
    main(int(sys.argv[1]))
