"""``python -m claimbook``: build the ledger or its pages, or compare two ledgers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from claimbook import seeds
from claimbook.chapter import PROFILES
from claimbook.collect import build
from claimbook.compare import differences
from claimbook.registry import ClaimError, load_registry
from claimbook.report import write_pages


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 if the ledger is in order, 1 (and every problem listed) if not."""
    parser = argparse.ArgumentParser(prog="python -m claimbook", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    ledger = commands.add_parser("build", help="collect the verdicts of executed notebooks")
    ledger.add_argument("--claims", type=Path, required=True, help="book/claims.toml")
    ledger.add_argument("--notebooks", type=Path, required=True, help="executed notebooks")
    ledger.add_argument("--profile", choices=PROFILES, required=True)
    ledger.add_argument("--seed", type=int, required=True)
    ledger.add_argument("--out", type=Path, required=True, help="ledger.json to write")
    pages = commands.add_parser("pages", help="write the pages of the ledger")
    pages.add_argument("--ledger", type=Path, required=True, help="ledger.json")
    pages.add_argument("--out", type=Path, required=True, help="folder of the pages")
    pages.add_argument("--root", type=Path, help="the checkout, for the index of statements")
    compare = commands.add_parser("compare", help="list what differs between two ledgers")
    compare.add_argument("first", type=Path, help="ledger.json, its figures beside it")
    compare.add_argument("second", type=Path, help="another, of the same profile and seed")
    tally = commands.add_parser("seeds", help="tabulate which checks failed at other seeds")
    tally.add_argument("--claims", type=Path, required=True, help="book/claims.toml")
    tally.add_argument("builds", type=Path, nargs="+", help="folders named by their seed")
    options = parser.parse_args(arguments)
    try:
        if options.command == "seeds":
            return _tally(options.claims, options.builds)
        if options.command == "pages":
            for path in write_pages(options.ledger, options.out, root=options.root):
                print(f"ledger: wrote {path}")
            return 0
        if options.command == "compare":
            return _compare(options.first, options.second)
        result = build(
            options.claims,
            options.notebooks,
            profile=options.profile,
            seed=options.seed,
            out=options.out,
        )
    except ClaimError as error:
        lines = str(error).splitlines()
        print("ledger: not in order", *lines, sep="\n  ", file=sys.stderr)
        return 1
    counts = ", ".join(f"{count} {name}" for name, count in result["counts"].items() if count)
    print(
        f"ledger: {len(result['claims'])} claims, {counts or 'none'}; a true one fails in a "
        f"repetition with probability at most {result['false_alarm_total']:.2g}, a one-sided "
        f"test passed a false one with at most {result['false_pass_total']:.2g}; "
        f"wrote {options.out}"
    )
    return 0


def _tally(claims: Path, builds: Sequence[Path]) -> int:
    tallies = seeds.update(load_registry(claims), builds, claims.parent / seeds.FILE)
    for chapter, tally in tallies.items():
        for name, failed in tally.failed.items():
            print(f"{chapter}: {name}: failed at {', '.join(map(str, failed))}")
        for name in tally.moved:
            print(f"{chapter}: {name}: moves with the seed and states no probability of error")
    print(f"seeds: {seeds.summary(tallies)}")
    return int(any(tally.failed or tally.moved for tally in tallies.values()))


def _compare(first: Path, second: Path) -> int:
    found = differences(first, second)
    if found:
        print(f"ledger: {len(found)} differences between {first} and {second}", file=sys.stderr)
        print(*found, sep="\n")
        return 1
    print(f"ledger: {first} and {second} agree in every claim and figure, byte for byte")
    return 0


if __name__ == "__main__":
    sys.exit(main())
