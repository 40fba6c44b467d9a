"""What a notebook uses to record its claims."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

from claimbook.evidence import Evidence
from claimbook.registry import Claim, ClaimError, Registry, load_registry
from claimbook.render import badge
from claimbook.verdict import MIME, Record, award

PROFILES = ("quick", "paper")
_Cell: TypeAlias = tuple[str, int]


class Chapter:
    """The claims of one notebook.

    Parameters
    ----------
    name : str
        Path of the chapter under ``book/``, without suffix.
    profile : {"quick", "paper"}
    seed : int
        Root seed of the chapter, non-negative.
    claims : Path or Registry, optional
        Default: ``book/claims.toml``, found from the current directory upwards, or the
        file that the environment variable CLAIMBOOK_CLAIMS names.

    Raises
    ------
    ClaimError
        If the registry is missing or faulty, or has no claim of this chapter.

    Examples
    --------
    In a notebook::

        chapter = Chapter("alignment/population-matrices", profile=profile, seed=seed)
        chapter.claim(
            "BGHJ-L3.1",
            identity(
                "closed form against quadrature",
                observed=closed_form,
                expected=quadrature,
                tolerance=1e-12,
                control=Control("without the minus sign", printed=True, observed=-closed_form),
            ),
        )
    """

    def __init__(
        self, name: str, *, profile: str, seed: int, claims: Path | Registry | None = None
    ) -> None:
        if profile not in PROFILES:
            raise ClaimError(f"profile must be one of {', '.join(PROFILES)}, got {profile!r}")
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise ClaimError(f"seed must be a non-negative integer, got {seed!r}")
        self.registry = claims if isinstance(claims, Registry) else load_registry(claims)
        self.name, self.profile, self.seed = name, profile, seed
        if not self.registry.of_chapter(name):
            known = sorted({claim.chapter for claim in self.registry})
            raise ClaimError(
                f"{self.registry.path} has no claim of chapter {name!r}; "
                f"its chapters are {', '.join(known) or 'none'}"
            )
        self.records: dict[str, Record] = {}
        self._cells: dict[str, _Cell | None] = {}
        self._clock = perf_counter()

    def claim(self, id: str, *evidence: Evidence, figure: str | None = None) -> Record:
        """Record the verdict on one claim and display its badge.

        Parameters
        ----------
        id : str
            As in the registry.
        *evidence : Evidence
            At least one check; all must pass and all their controls must be rejected.
        figure : str, optional
            Label of the figure, shown in this chapter, that goes with the claim. Required
            for claims about figures.

        Returns
        -------
        Record
            The verdict is the registry's finding.

        Raises
        ------
        ClaimError
            If the claim is unknown, belongs to another chapter or was recorded before, or
            if the evidence does not support the finding.
        """
        claim = self.registry[id]
        cell = _current_cell()
        self._admit(claim, evidence, figure, cell)
        verdict = claim.finding if _tallying() else award(claim, evidence)
        now = perf_counter()
        record = Record(
            id=id,
            number=claim.number,
            verdict=verdict,
            chapter=self.name,
            profile=self.profile,
            seed=self.seed,
            evidence=evidence,
            figure=figure,
            seconds=round(now - self._clock, 3),
        )
        self._clock = now
        self.records[id], self._cells[id] = record, cell
        _display(record)
        return record

    def _admit(
        self,
        claim: Claim,
        evidence: tuple[Evidence, ...],
        figure: str | None,
        cell: _Cell | None,
    ) -> None:
        if claim.chapter != self.name:
            raise ClaimError(
                f"{claim.id} belongs to chapter {claim.chapter!r}, this is {self.name!r}"
            )
        # Running a cell again by hand replaces what it recorded; two cells are a mistake.
        if claim.id in self.records and not _again(cell, self._cells[claim.id]):
            raise ClaimError(
                f"{claim.id} is recorded twice in {self.name!r}; to start again, run the cell "
                "that creates the Chapter"
            )
        for item in evidence:
            if not isinstance(item, Evidence):
                raise ClaimError(f"{claim.id}: evidence must come from a check, got {item!r}")
        if claim.kind == "figure" and not figure:
            raise ClaimError(
                f"{claim.id} is about a figure: figure= must be its label, got {figure!r}"
            )

    def __repr__(self) -> str:
        """Progress of the chapter."""
        progress = f"{len(self.records)}/{len(self.registry.of_chapter(self.name))} claims"
        return f"<Chapter {self.name} ({self.profile}, seed {self.seed}): {progress}>"


def _tallying() -> bool:
    """Whether a run only counts which checks fail; no ledger is built of what failed."""
    return bool(os.environ.get("CLAIMBOOK_TALLY"))


def _shell() -> Any:
    """Return the running IPython shell, or None; never imports IPython."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def _current_cell() -> _Cell | None:
    """Return the front end's id of the running cell, where it tells, and its execution."""
    shell = _shell()
    parent: dict[str, Any] = getattr(shell, "get_parent", dict)() or {}
    cell = parent.get("metadata", {}).get("cellId")
    return (str(cell), int(shell.execution_count)) if cell else None


def _again(now: _Cell | None, before: _Cell | None) -> bool:
    """Whether one cell is being run once more."""
    if now is None or before is None:
        return False
    return now[0] == before[0] and now[1] != before[1]


def _display(record: Record) -> None:
    shell = _shell()
    if shell is None:
        print(record)
        return
    bundle = {"text/plain": str(record), "text/html": badge(record), MIME: record.to_json()}
    shell.display_pub.publish(data=bundle)
