"""The index of statements: from a number in a source to its verdict, its code and its tests."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from claimbook.pages import parts
from claimbook.pages.parts import Ledger
from claimbook.pages.templates import render
from claimbook.statements import Statement


def page(ledger: Ledger, statements: Iterable[Statement], *, tests: Path, address: str) -> str:
    """Return the page as MyST text.

    Parameters
    ----------
    ledger : mapping
        Content of ``ledger.json``.
    statements : iterable of Statement
        Of :func:`claimbook.statements.index`; those without a claim are left out.
    tests : Path
        Folder of the tests.
    address : str
        Where the folder of the tests is published; empty if it is not.

    Returns
    -------
    str
    """
    sources: dict[str, list[Statement]] = {key: [] for key in ledger["sources"]}
    for item in statements:
        if item.listed:
            sources.setdefault(item.reference.source, []).append(item)
    for mine in sources.values():
        mine.sort(key=lambda item: _place(item.reference.number))
    return render(
        "statements",
        sources={key: mine for key, mine in sources.items() if mine},
        names={key: ledger["sources"].get(key, "") for key in sources},
        verdicts={claim["id"]: claim["verdict"] for claim in ledger["claims"]},
        tests=tests,
        address=address,
    )


def _place(number: str) -> tuple[bool, list[tuple[int, str]], str]:
    """Sort key of the order in a source: by what a number counts, whatever the kind; words last."""
    digits = re.search(r"(?<!\w)(?:[A-Z]\.)?\d.*", number)
    found = re.sub(r", [A-Z][a-z]+ ", ".", digits.group()) if digits else number
    return digits is None, parts.numerically(found), number
