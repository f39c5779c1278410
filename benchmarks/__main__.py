"""`python -m benchmarks [NAME…]`: measures the figures of docs/benchmarks.md, and prints ratios within one run."""

from __future__ import annotations

import sys

from benchmarks import cases, check, commands, recording, scale, upgrade, why

GROUPS = {
    "check": check.main,
    "commands": commands.main,
    "recording": recording.main,
    "scale": scale.main,
    "why": why.main,
}
ASKED_FOR = {"cases": cases.main, "upgrade": upgrade.main}
"""Those that need more than this environment, so they are not among all."""


def main() -> None:
    """Run the named groups, or all that need no GPU."""
    names = sys.argv[1:] or list(GROUPS)
    groups = GROUPS | ASKED_FOR
    unknown = [name for name in names if name not in groups]
    if unknown:
        sys.exit(f"no benchmark is named {unknown[0]!r}: there are {', '.join(groups)}")
    for name in names:
        print(f"== {name}", flush=True)
        groups[name]()


if __name__ == "__main__":
    main()
