"""What the proof of a statement uses, and what the verdict on one statement means for the others.

The registry says for each statement of a source which other statements its printed proof cites or
plainly applies. Together these are a graph without circles. A statement whose own checks passed may
still have a printed proof that passes through a false one: this module finds the way.

What a statement rests on is graded by the worst verdict on the way. Where a proof uses a part of a
statement alone, which the registry names by the id of a claim, the verdict on that part counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any, Literal, get_args

from claimbook.numbering import statement_of
from claimbook.registry import Finding

#: Verdicts as they weigh for what rests on them, the lightest first; undecided is also what this
#: project has no claim on.
Ground = Literal["confirmed", "corrected", "undecided", "false"]
GROUNDS: tuple[Ground, ...] = get_args(Ground)
_GROUND: dict[Finding, Ground] = {
    "confirmed": "confirmed",
    "corrected": "corrected",
    "partial": "undecided",
    "data": "undecided",
    "false": "false",
}
_HEAVIER: tuple[Finding, ...] = ("confirmed", "corrected", "data", "partial", "false")


@dataclass(frozen=True)
class Node:
    """A statement of a source among those it uses and those that use it.

    Attributes
    ----------
    source : str
        Key of the source.
    number : str
        Such as ``Theorem 2.2``.
    claims : tuple of mapping
        Claims on it, with their verdicts; empty if the project has none.
    read : bool
        Whether the registry says what its proof uses.
    uses : mapping
        What it uses, by number, and for each the ids of the parts it uses: none for the whole.
    used_by : tuple of str
        Numbers of the statements that use it.
    rests : Ground
        The worst verdict on what it uses, directly or not; ``confirmed`` if that is nothing.
    through : tuple of str
        The statements with that verdict, unless it is ``confirmed``.
    """

    source: str
    number: str
    claims: tuple[Mapping[str, Any], ...]
    read: bool
    uses: Mapping[str, tuple[str, ...]]
    used_by: tuple[str, ...]
    rests: Ground
    through: tuple[str, ...]

    @property
    def key(self) -> str:
        """Its name in addresses, such as ``BGJ-Theorem-2.2``."""
        return f"{self.source}-{self.number}".replace(",", "").replace(" ", "-")

    @property
    def verdict(self) -> Finding | None:
        """The worst verdict on it, or None if there is no claim."""
        return worst(self.claims)

    @property
    def first(self) -> Mapping[str, Any] | None:
        """The first claim with that verdict."""
        return next((claim for claim in self.claims if claim["verdict"] == self.verdict), None)


def worst(claims: Iterable[Mapping[str, Any]]) -> Finding | None:
    """Return the worst verdict on some claims, or None if there are none.

    Examples
    --------
    >>> from claimbook.proofs import worst
    >>> worst([{"verdict": "corrected"}, {"verdict": "partial"}, {"verdict": "confirmed"}])
    'partial'
    """
    verdicts = [claim["verdict"] for claim in claims]
    return max(verdicts, key=_HEAVIER.index, default=None)


def ground(claims: Iterable[Mapping[str, Any]]) -> Ground:
    """Return how some claims weigh for what rests on them.

    Examples
    --------
    >>> from claimbook.proofs import ground
    >>> ground([{"verdict": "data"}]), ground([])
    ('undecided', 'undecided')
    """
    verdict = worst(claims)
    return "undecided" if verdict is None else _GROUND[verdict]


def graph(
    source: str, claims: Iterable[Mapping[str, Any]], uses: Mapping[str, Sequence[str]]
) -> dict[str, Node]:
    """Return the statements of a source that use others or are used, and all others with a claim.

    Parameters
    ----------
    source : str
        Key of the source.
    claims : iterable of mapping
        Its claims, each with ``id``, ``number`` and ``verdict``.
    uses : mapping
        The table of the source in the registry.

    Returns
    -------
    dict
        Statements by number: first those with a claim, in the order of the claims.

    Examples
    --------
    >>> from claimbook.proofs import graph
    >>> lemma = {"id": "A-L1", "number": "Lemma 1", "verdict": "false"}
    >>> theorem = {"id": "A-T2", "number": "Theorem 2", "verdict": "confirmed"}
    >>> found = graph("A", [lemma, theorem], {"Theorem 2": ["Lemma 1"]})
    >>> found["Theorem 2"].rests, found["Theorem 2"].through, found["Lemma 1"].used_by
    ('false', ('Lemma 1',), ('Theorem 2',))
    """
    mine: dict[str, list[Mapping[str, Any]]] = {}
    statement: dict[str, str] = {}
    for claim in claims:
        statement[claim["id"]] = statement_of(claim["number"])
        mine.setdefault(statement[claim["id"]], []).append(claim)
    steps: dict[str, dict[str, tuple[str, ...]]] = {}
    used_by: dict[str, list[str]] = {}
    for number, names in uses.items():
        steps[number] = {}
        for name in names:
            target = statement.get(name, name)
            known = steps[number].get(target)
            if name not in statement:
                steps[number][target] = ()
            elif known is None or known:
                steps[number][target] = (*(known or ()), name)
        for target in steps[number]:
            used_by.setdefault(target, []).append(number)
    numbers = dict.fromkeys([*mine, *uses, *used_by])
    rests: dict[str, Ground] = {}
    through: dict[str, tuple[str, ...]] = {}
    order = TopologicalSorter({number: list(steps.get(number, ())) for number in numbers})
    for number in order.static_order():
        weights: dict[str, Ground] = {
            target: ground(
                claim for claim in mine.get(target, ()) if not parts or claim["id"] in parts
            )
            for target, parts in steps.get(number, {}).items()
        }
        below = [*weights.values(), *(rests[target] for target in weights)]
        heaviest = max(below, key=GROUNDS.index, default=GROUNDS[0])
        culprits: dict[str, None] = {}
        for target, weight in weights.items():
            if heaviest != GROUNDS[0] and weight == heaviest:
                culprits[target] = None
            if rests[target] == heaviest:
                culprits |= dict.fromkeys(through[target])
        rests[number], through[number] = heaviest, tuple(culprits)
    return {
        number: Node(
            source=source,
            number=number,
            claims=tuple(mine.get(number, ())),
            read=number in uses,
            uses=steps.get(number, {}),
            used_by=tuple(used_by.get(number, ())),
            rests=rests[number],
            through=through[number],
        )
        for number in numbers
    }


def graphs(ledger: Mapping[str, Any]) -> dict[str, dict[str, Node]]:
    """Return the graph of each source for which the ledger says what its proofs use."""
    return {
        source: graph(source, (c for c in ledger["claims"] if c["source"] == source), table)
        for source, table in ledger["uses"].items()
    }
