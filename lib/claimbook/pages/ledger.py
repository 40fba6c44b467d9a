"""The page of all verdicts: a table that can be filtered, and both budgets of errors."""

from __future__ import annotations

import math
from collections import Counter

from claimbook.collect import MAX_FALSE_ALARM, MAX_FALSE_PASS
from claimbook.pages import parts
from claimbook.pages.parts import Entry, Ledger
from claimbook.pages.templates import render
from claimbook.registry import PRINTED_MUST_FAIL, UNSETTLED

#: What the claims can be narrowed to.
CHOICES = ("source", "verdict", "kind", "chapter")


def page(ledger: Ledger) -> str:
    """Return the page as MyST text.

    Parameters
    ----------
    ledger : mapping
        Content of ``ledger.json``.

    Returns
    -------
    str
    """
    claims = ledger["claims"]
    groups = list(parts.by_source(ledger, claims))
    ordered = [claim for _, mine in groups for claim in mine]
    return render(
        "ledger",
        ledger=ledger,
        meanings=parts.MEANING,
        checks=parts.checks(claims),
        max_false_alarm=MAX_FALSE_ALARM,
        max_false_pass=MAX_FALSE_PASS,
        budget=[
            *((source, _sums(mine), {"source": source}) for source, mine in groups),
            ("all", _sums(claims), {}),
        ],
        choices=parts.choices(ordered, CHOICES),
        of=lambda claim: {key: claim[key] for key in CHOICES},
        groups=groups,
        misprinted=PRINTED_MUST_FAIL,
        unsettled=UNSETTLED,
    )


def _sums(claims: list[Entry]) -> dict[str, object]:
    """Verdicts, checks and the bounds on both errors of some claims."""
    items = [item for claim in claims for item in claim["evidence"]]
    return {
        "claims": len(claims),
        "verdicts": Counter(claim["verdict"] for claim in claims),
        "checks": len(items),
        "random": sum(item["sampling"] == "random" for item in items),
        "false_alarm": math.fsum(item["false_alarm"] for item in items),
        "false_pass": math.fsum(item["false_pass"] for item in items),
    }
