"""The ledger's pages for the book, and its numbers for pages written by hand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from claimbook import seeds, statements
from claimbook.files import write
from claimbook.pages import (
    errata,
    figures,
    finding,
    ledger,
    limits,
    panels,
    parts,
    resolution,
    status,
)
from claimbook.pages import map as map_page
from claimbook.pages import statements as index
from claimbook.pages.parts import Entry, Ledger
from claimbook.registry import FINDINGS, UNSETTLED, ClaimError, load_registry, schema_faults
from claimbook.render import WORDS, number
from claimbook.statements import Statement

#: Names of the pages :func:`write_pages` makes, in the order of its result.
PAGES = (
    "ledger",
    "statements",
    "map",
    "resolution",
    "errata",
    "figures",
    "panels",
    "limits",
    "status",
)


def read_ledger(path: Path) -> dict[str, Any]:
    """Read a ledger and check that it is one.

    Parameters
    ----------
    path : Path
        As written by :func:`claimbook.collect.build`.

    Returns
    -------
    dict

    Raises
    ------
    ClaimError
        If it is missing or not valid.
    """
    try:
        ledger: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ClaimError(f"cannot read the ledger {path}: {error}") from error
    broken = schema_faults("ledger", ledger)
    if broken:
        raise ClaimError(f"{path}: {broken[0].json_path}: {broken[0].message}")
    return ledger


def write_pages(
    ledger_json: Path,
    out_dir: Path,
    *,
    root: Path | None = None,
    address: str = "",
    found: Sequence[Statement] | None = None,
) -> list[Path]:
    """Write the pages of the ledger, the thumbnails they show and the index of the search page.

    Parameters
    ----------
    ledger_json : Path
        As written by :func:`claimbook.collect.build`, with ``figures/`` beside it.
    out_dir : Path
        Folder in which the chapter ``a/b`` is the page ``a/b``.
    root : Path, optional
        The checkout, with ``book``, ``lib`` and ``tests``: for what repetitions with other seeds
        showed, see :mod:`claimbook.seeds`, and for the index of statements.
    address : str
        Where the files of the checkout are published.
    found : sequence of Statement, optional
        What :func:`index_of` gives for `root`, if it is known already.

    Returns
    -------
    list of Path
        The pages, named as in `PAGES`.

    Raises
    ------
    ClaimError
        If the ledger or one of its images is missing or not valid.
    """
    content = read_ledger(ledger_json)
    out_dir.mkdir(parents=True, exist_ok=True)
    thumbnails = figures.write_thumbnails(content, ledger_json.parent, out_dir)
    if found is None:
        found = index_of(root) if root else []
    names = finding.script(
        content, found, folder=out_dir.name, book=root / "book" if root else None
    )
    write(out_dir / finding.FILE, names.encode())
    tests = root / "tests" if root else Path("tests")
    tests_address = f"{address}/tests" if address else ""
    tallies = seeds.read(root / "book" / seeds.FILE) if root else {}
    texts = (
        ledger.page(content),
        index.page(content, found, tests=tests, address=tests_address),
        map_page.page(content),
        resolution.page(content),
        errata.page(content),
        figures.page(content, thumbnails),
        panels.page(content),
        limits.page(content),
        status.page(content, tallies, seeds.libraries(tallies, root) if root else {}),
    )
    return [
        write(out_dir / f"{name}.md", text.encode())
        for name, text in zip(PAGES, texts, strict=True)
    ]


def index_of(root: Path) -> list[Statement]:
    """Return the index of the statements of a checkout, see :mod:`claimbook.statements`."""
    registry = load_registry(root / "book" / "claims.toml")
    found = statements.index(registry, library=root / "lib", tests=root / "tests")
    return list(found.values())


def substitutions(ledger: Ledger) -> dict[str, str]:
    """Numbers of the ledger that a page can show by writing ``{{ name }}``.

    Parameters
    ----------
    ledger : mapping
        Content of ``ledger.json``.

    Returns
    -------
    dict
        MyST text by name: counts of all kinds, both errors of all verdicts, the run
        time in minutes, ``verdicts``, a line of counts that lead to their claims, and for each
        part of the book, such as ``a-b``, the counts of its verdicts, ``found_a_b``.
    """
    claims = ledger["claims"]
    matters = Counter(claim.get("matters") for claim in claims)
    found = ledger["counts"]
    return {
        "claims": str(len(claims)),
        "checks": str(parts.checks(claims)),
        "chapters": str(len(ledger["chapters"])),
        "figures": str(len(ledger["figures"])),
        "false_alarm": number(ledger["false_alarm_total"], 2),
        "false_pass": number(ledger["false_pass_total"], 2),
        "profile": ledger["profile"],
        "seed": str(ledger["seed"]),
        "minutes": f"{sum(entry['seconds'] for entry in ledger['chapters']) / 60:.0f}",
        **{name: str(found[name]) for name in FINDINGS},
        "errata": str(len(errata.errata(ledger))),
        "falsehoods": str(found["false"]),
        "numbers": str(matters["number"]),
        "slips": str(matters["slip"]),
        "limits": str(sum(found[name] for name in UNSETTLED)),
        "verdicts": " · ".join(
            f'<a href="ledger.html?verdict={name}">{found[name]} {WORDS[name]}</a>'
            for name in FINDINGS
            if found[name]
        ),
        **{f"found_{part.replace('-', '_')}": text for part, text in _found(claims)},
    }


def _found(claims: list[Entry]) -> Iterator[tuple[str, str]]:
    """Yield the parts of the book, folders of chapters, and what was found in each."""
    folders = [claim["chapter"].rpartition("/")[0] for claim in claims]
    for folder in filter(None, dict.fromkeys(folders)):
        counts = Counter(
            claim["verdict"] for claim, its in zip(claims, folders, strict=True) if its == folder
        )
        number = sum(counts.values())
        words = " · ".join(f"{counts[name]} {WORDS[name]}" for name in FINDINGS if counts[name])
        yield folder, f"{number} {'claim' if number == 1 else 'claims'}: {words}"
