"""Awarding a verdict: the registry's finding, if the evidence bears it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from claimbook.evidence import Evidence
from claimbook.registry import PRINTED_MUST_FAIL, Claim, ClaimError, Finding

MIME = "application/vnd.claimbook.claim+json"


@dataclass(frozen=True)
class Record:
    """A verdict as recorded in a chapter, with everything needed to recompute it."""

    id: str
    number: str
    verdict: Finding
    chapter: str
    profile: str
    seed: int
    evidence: tuple[Evidence, ...]
    figure: str | None
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return plain Python data."""
        data = dict(vars(self))
        data["evidence"] = [item.to_json() for item in self.evidence]
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Record:
        """Rebuild a record from :meth:`to_json`."""
        evidence = tuple(Evidence.from_json(item) for item in data["evidence"])
        return cls(**{**data, "evidence": evidence})

    def __str__(self) -> str:
        """Return the verdict and one line per check."""
        lines = [f"{self.verdict.upper()}  {self.id} ({self.number})"]
        return "\n  ".join([*lines, *map(str, self.evidence)])

    def _ipython_display_(self) -> None:
        """Show nothing: the chapter has displayed the badge when it recorded the claim."""


def faults(claim: Claim, evidence: Sequence[Evidence]) -> list[str]:
    """Reasons why the evidence does not support the claim's finding; empty if it does."""
    found = []
    if not evidence:
        found.append("no evidence")
    for item in evidence:
        non_finite = item.non_finite()
        if non_finite:
            found.append(f"{item.check!r}: non-finite {', '.join(non_finite)}")
        elif not item.passed:
            found.append(f"check failed: {item}")
        elif not item.control.rejected:
            found.append(
                f"broken check {item.check!r}: its control {item.control.variant!r} also passes "
                f"({item})"
            )
    made = {item.check for item in evidence}
    for panel in claim.panels:
        missing = [name for name in panel.checks if name not in made]
        if missing:
            found.append(f"panel {panel.panel} names checks that were not made: {missing}")
    if claim.finding in PRINTED_MUST_FAIL and not any(item.control.printed for item in evidence):
        found.append(
            f"finding {claim.finding!r} needs a control with printed=True: the source's own "
            "formula, rejected by the same check"
        )
    return found


def award(claim: Claim, evidence: Sequence[Evidence]) -> Finding:
    """Return the verdict.

    Raises
    ------
    ClaimError
        If a check failed, a control passed, a number is not finite, or the printed formula
        of a corrected or false claim was not put to the same check.
    """
    found = faults(claim, evidence)
    if found:
        raise ClaimError(f"{claim.id} ({claim.number}): " + "\n  ".join(found))
    return claim.finding
