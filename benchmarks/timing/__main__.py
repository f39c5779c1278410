"""`python -m benchmarks.timing COMMAND`: list, record, measure, check, profile or compare the families."""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path

from benchmarks.timing.split import PARTS, SEED, split


def main() -> None:
    """Run one command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.timing", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="print every family, its part and its configurations")
    for name, told in (("record", "make the captures on the virtual GPU"), ("measure", "time on this machine's GPU")):
        command = commands.add_parser(name, help=told)
        command.add_argument("part", choices=(*PARTS, "all"))
        command.add_argument("folder", type=Path)
        command.add_argument("--only", default="", help="names of families, separated by commas")
        command.add_argument("--missing", type=Path, help="only what this file of results has no times of")
        command.add_argument("--each", type=int, default=0, help="only this many configurations of each family")
    commands.choices["record"].add_argument("--workers", type=int, default=2)
    commands.choices["record"].add_argument("--seconds", type=float, help="give up what is not compiled by then")
    commands.choices["record"].add_argument("--no-captures", action="store_true", help="only warm Triton's cache")
    commands.choices["record"].add_argument("--no-warm", action="store_true", help="only make captures")
    commands.choices["measure"].add_argument("--results", type=Path)
    commands.choices["measure"].add_argument("--seconds", type=float, default=86400.0)
    here = commands.add_parser("measure-here", help="time what standard input lists, in this process")
    here.add_argument("folder", type=Path)
    here.add_argument("results", type=Path)
    profiled = commands.add_parser("profile", help="throughputs of some configurations, by Nsight Compute")
    profiled.add_argument("results", type=Path)
    profiled.add_argument("output", type=Path)
    profiled.add_argument("--each", type=int, default=2, help="configurations of each family")
    profiled.add_argument("--seconds", type=float, default=86400.0)
    commands.add_parser("launch-here", help="launch what standard input lists, under a profiler")
    scored = commands.add_parser("score", help="predict every capture of a folder, and compare")
    scored.add_argument("folder", type=Path)
    scored.add_argument("--part", default="h100")
    scored.add_argument("--each", type=int, default=0, help="only this many configurations of each family")
    scored.add_argument("--workers", type=int, default=1)
    termed = commands.add_parser("terms", help="compare what predictions add up with counters, term by term")
    termed.add_argument("folder", type=Path)
    termed.add_argument("--counters", type=Path, default=Path(__file__).with_name("data") / "h200-ncu.jsonl")
    termed.add_argument("--part", default="h200")
    checked = commands.add_parser(
        "check",
        help="compare the fresh, unseen, held-out, blind, everyday, review and wide families with torch",
    )
    checked.add_argument("--each", type=int, default=1, help="configurations of each family")
    checked.add_argument("--only", default="", help="names of families, separated by commas")
    arguments = parser.parse_args()
    if arguments.command == "list":
        _list()
    elif arguments.command == "record":
        from benchmarks.timing.recording import record_all

        work = _work(arguments)
        captures, warm = not arguments.no_captures, not arguments.no_warm
        record_all(work, arguments.folder, arguments.workers, captures=captures, warm=warm, limit_s=arguments.seconds)
    elif arguments.command == "measure":
        from benchmarks.timing.measuring import measure

        results = arguments.results or arguments.folder / "results.jsonl"
        command = "python -m benchmarks.timing " + " ".join(sys.argv[1:])
        measure(_work(arguments), arguments.folder, results, command, arguments.seconds)
    elif arguments.command == "score":
        from benchmarks.timing.scoring import score

        print(score(arguments.folder, arguments.part, arguments.each, arguments.workers))
    elif arguments.command == "terms":
        from benchmarks.timing.terms import compare

        print(compare(arguments.folder, arguments.counters, arguments.part))
    elif arguments.command == "check":
        import benchmarks.timing.checking_blind
        import benchmarks.timing.checking_everyday
        import benchmarks.timing.checking_held_out
        import benchmarks.timing.checking_review
        import benchmarks.timing.checking_unseen
        import benchmarks.timing.checking_wide_data
        import benchmarks.timing.checking_wide_products
        import benchmarks.timing.families
        from benchmarks.timing.checking import check

        sys.exit(1 if check(arguments.each, arguments.only) else 0)
    elif arguments.command == "profile":
        from benchmarks.timing.profiling import profile

        profile(arguments.results, arguments.output, arguments.each, arguments.seconds)
    elif arguments.command == "launch-here":
        import benchmarks.timing.families
        from benchmarks.timing.profiling import launch_here

        launch_here([(name, number) for name, number in json.load(sys.stdin)])
    else:
        import benchmarks.timing.families  # noqa: F401
        from benchmarks.timing.measuring import measure_here

        measure_here([(name, number) for name, number in json.load(sys.stdin)], arguments.folder, arguments.results)


def _list() -> None:
    import benchmarks.timing.families  # noqa: F401
    from benchmarks.timing.family import FAMILIES

    parts = split(FAMILIES)
    for part in PARTS:
        rows = [row for row in FAMILIES.values() if parts[row.name] == part]
        print(f"{part}: {len(rows)} families, {sum(len(row.configs) for row in rows)} configurations")
        for row in rows:
            print(f"  {row.name:<24} {len(row.configs):>3}  {row.description.splitlines()[0]}")


def _work(arguments: argparse.Namespace) -> list[tuple[str, int]]:
    """Name the configurations: family after family, in an order that is random but always the same."""
    import benchmarks.timing.families  # noqa: F401
    from benchmarks.timing.family import FAMILIES

    parts = split(FAMILIES)
    chosen = arguments.only.split(",") if arguments.only else sorted(FAMILIES)
    unknown = [name for name in chosen if name not in FAMILIES]
    if unknown:
        sys.exit(f"no family is named {unknown[0]!r}: `python -m benchmarks.timing list` prints all")
    names = [name for name in chosen if arguments.part in ("all", parts[name])]
    random.Random(SEED).shuffle(names)
    measured: set[tuple[str, int]] = set()
    if arguments.missing:
        rows = [json.loads(line) for line in arguments.missing.read_text().splitlines()[1:]]
        measured = {(row["family"], row["number"]) for row in rows if row["status"] == "ok"}
    return [
        (name, number)
        for name in names
        for number in range(len(FAMILIES[name].configs))
        if (not arguments.each or number < arguments.each) and (name, number) not in measured
    ]


if __name__ == "__main__":
    main()
