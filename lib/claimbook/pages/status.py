"""The page of the build: what ran, for how long, on which machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from claimbook.collect import MAX_FALSE_ALARM
from claimbook.pages.parts import Ledger
from claimbook.pages.templates import render
from claimbook.seeds import Tally, largest, summary


def page(
    ledger: Ledger, tallies: Mapping[str, Tally], libraries: Mapping[str, str] | None = None
) -> str:
    """Return the page as MyST text.

    Parameters
    ----------
    ledger : mapping
        Content of ``ledger.json``.
    tallies : mapping
        What repetitions with other seeds showed, by chapter.
    libraries : mapping, optional
        Digest of the library that each chapter reaches as it is now.

    Returns
    -------
    str
    """
    checks: Counter[str] = Counter()
    for claim in ledger["claims"]:
        checks[claim["chapter"]] += len(claim["evidence"])
    return render(
        "status",
        ledger=ledger,
        machine=ledger["environment"],
        checks=checks,
        panels=list(Counter(ledger["panels"]).elements()),
        longest_first=sorted(ledger["chapters"], key=lambda entry: -entry["seconds"]),
        tallies=dict(sorted(tallies.items())),
        current={
            chapter: tally.current((libraries or {}).get(chapter, ""))
            for chapter, tally in tallies.items()
        },
        summary=summary(tallies),
        largest=largest(tallies) if tallies else None,
        max_false_alarm=MAX_FALSE_ALARM,
    )
