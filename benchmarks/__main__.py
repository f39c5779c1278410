"""`python -m benchmarks [NAME…]`: measures the figures of docs/benchmarks.md, and prints ratios within one run."""

from __future__ import annotations

import sys

from benchmarks import check, commands, recording, scale, why

GROUPS = {
    "check": check.main,
    "commands": commands.main,
    "recording": recording.main,
    "scale": scale.main,
    "why": why.main,
}


def main() -> None:
    """Run the named groups, or all that need no GPU."""
    names = sys.argv[1:] or list(GROUPS)
    unknown = [name for name in names if name not in GROUPS]
    if unknown:
        sys.exit(f"no benchmark is named {unknown[0]!r}: there are {', '.join(GROUPS)}")
    for name in names:
        print(f"== {name}", flush=True)
        GROUPS[name]()


if __name__ == "__main__":
    main()
