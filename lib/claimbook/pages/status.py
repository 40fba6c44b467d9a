"""The page of the build: what ran, for how long, on which machine."""

from __future__ import annotations

from collections.abc import Mapping

from claimbook.collect import MAX_FALSE_ALARM
from claimbook.pages import parts
from claimbook.pages.parts import Ledger
from claimbook.render import number
from claimbook.seeds import Tally, summary

_RUNS = """\
- *Every change*: style, types, doctests and tests, then the whole book at quick sizes, on Python
  {pythons}. The tests open every page of the built book in a browser, in both themes, on a desktop
  and a phone.
- *Every night*: the whole book with a seed that has not been used before. A verdict that hangs
  on its seed shows there.
- *Publishing*: the whole book at the sizes of the sources.

Each fails if a cell, a claim, a link or a page does, on any warning, and if the probabilities
that a true claim fails add up to more than {most} over all checks. Two builds of one commit with
the same profile and seed on one machine agree in every verdict and every number, though not in
times.
"""


def page(ledger: Ledger, tallies: Mapping[str, Tally]) -> str:
    """Return the page as MyST text.

    Parameters
    ----------
    ledger : mapping
        Content of ``ledger.json``.
    tallies : mapping
        What repetitions with other seeds showed, by chapter.

    Returns
    -------
    str
    """
    machine = ledger["environment"]
    total = sum(entry["seconds"] for entry in ledger["chapters"])
    memory = f"{machine['memory_gib']:g} GiB" if "memory_gib" in machine else "unknown"
    build = {
        "commit": f"`{ledger['commit'][:12]}{'-dirty' * ledger['commit'].endswith('-dirty')}`",
        "date of the commit": ledger["date"],
        "profile": f"`{ledger['profile']}`",
        "seed": f"`{ledger['seed']}`",
        "claims": f"{len(ledger['claims'])}, with {parts.checks(ledger['claims'])} checks",
        "a true claim fails in a repetition": f"at most {number(ledger['false_alarm_total'], 2)}",
        "a one-sided test passed a false claim": f"at most {number(ledger['false_pass_total'], 2)}",
        "figures": str(len(ledger["figures"])),
    }
    hardware = {
        "processor": parts.text(machine["processor"]),
        "cores": str(machine["cores"]),
        "memory": memory,
        "system": machine["platform"],
        "Python": machine["python"],
        **machine["packages"],
    }
    return "\n".join(
        [
            "# Status\n",
            "What was built, where, and how long it took.\n",
            parts.STYLE,
            "## This build\n",
            _pairs(build),
            "## Run times\n",
            *_times(ledger, total),
            "## Other seeds\n",
            *_repetitions(tallies),
            "## Machine and versions\n",
            _pairs(hardware),
            "## What runs by itself\n",
            _RUNS.format(pythons="3.11 and 3.13", most=number(MAX_FALSE_ALARM)),
        ]
    )


def _pairs(values: dict[str, str]) -> str:
    rows = "".join(f"* - {name}\n  - {value}\n" for name, value in values.items())
    return f"```{{list-table}}\n:header-rows: 0\n\n{rows}```\n"


def _repetitions(tallies: Mapping[str, Tally]) -> list[str]:
    """Table of the runs with other seeds: how many checks failed, and how many had to."""
    if not tallies:
        return ["No chapter has been run with other seeds.\n"]
    rows = "".join(
        f"* - {parts.chapter_link(chapter)}\n  - {', '.join(map(str, tally.seeds))}\n"
        f"  - {sum(map(len, tally.failed.values()))}\n"
        f"  - {number(len(tally.seeds) * tally.expected, 2)}\n"
        for chapter, tally in sorted(tallies.items())
    )
    failures = "".join(
        f"- {parts.chapter_link(chapter)}: {parts.text(name)}, at {', '.join(map(str, failed))}\n"
        for chapter, tally in sorted(tallies.items())
        for name, failed in tally.failed.items()
    )
    return [
        f"{summary(tallies)}. The last column is the number of failures that the checks' own "
        "probabilities allow in these runs. Runs of a chapter count until its code changes.\n",
        "```{list-table}\n:header-rows: 1\n\n* - chapter\n  - seeds\n  - failures\n"
        f"  - expected at most\n{rows}```\n",
        *([f"What failed:\n\n{failures}"] if failures else []),
    ]


def _times(ledger: Ledger, total: float) -> list[str]:
    """Run times of the chapters, the longest first."""
    chapters = sorted(ledger["chapters"], key=lambda entry: -entry["seconds"])
    if not chapters:
        return ["No chapter was run.\n"]
    longest = chapters[0]
    checks = {
        entry["chapter"]: parts.checks(
            claim for claim in ledger["claims"] if claim["chapter"] == entry["chapter"]
        )
        for entry in chapters
    }
    rows = "".join(
        f"* - {parts.chapter_link(entry['chapter'])}\n  - {entry['claims']}\n"
        f"  - {checks[entry['chapter']]}\n  - {parts.duration(entry['seconds'])}\n"
        for entry in chapters
    )
    return [
        f"{len(chapters)} chapters, {parts.duration(total)} one after the other; the longest is "
        f"{parts.chapter_link(longest['chapter'])} with {parts.duration(longest['seconds'])}. "
        f"Chapters run side by side when `make` is asked to, then times include waiting for one "
        "another.\n",
        f"```{{list-table}}\n:header-rows: 1\n\n* - chapter\n  - claims\n  - checks\n  - run time\n"
        f"{rows}```\n",
    ]
