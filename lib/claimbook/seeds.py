"""The tally of seeds: how often each check failed when chapters ran with other seeds.

``make seeds`` runs the quick book at further seeds, each in a folder of its own and with
failing claims recorded instead of stopping their chapter, and tabulates here what happened.
The tally is kept in ``book/seeds.json``. It also finds observations that depend on the seed
although their check states no probability of error.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from claimbook.evidence import Evidence
from claimbook.files import write
from claimbook.registry import ClaimError, Registry
from claimbook.run.stamps import code
from claimbook.slices import evidence
from claimbook.verdict import MIME, Record

#: Name of the tally, beside the registry.
FILE = "seeds.json"
#: Relative change of an observation that rounding may cause.
ROUNDING = 1e-6
#: Stands for the check of a claim on which a run recorded nothing.
SILENT = "no verdict recorded"


@dataclass
class Tally:
    """What repetitions of one chapter showed.

    Attributes
    ----------
    digest : str
        Of the code that ran, see :func:`digest`.
    seeds : list of int
        Seeds of the runs.
    expected : float
        Sum over the runs and their checks of the probability that a true claim fails.
    failed : dict
        Seeds at which a check failed, by ``claim: check``.
    moved : list of str
        ``claim: check`` of observations without a sampling model that moved with the seed.
    """

    digest: str
    seeds: list[int] = field(default_factory=list)
    expected: float = 0.0
    failed: dict[str, list[int]] = field(default_factory=dict)
    moved: list[str] = field(default_factory=list)


class _Places(ast.NodeTransformer):
    """Drops what cannot change a number: where imported names stand."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def visit_Import(self, node: ast.Import) -> None:
        """Drop it."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Drop it."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Keep the last name of what an import gives."""
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id in self.names:
            return ast.Name(node.attr, ast.Load())
        return node


def digest(source: Path) -> str:
    """Short digest of what a chapter computes for its claims.

    Comments, the layout of the code, pictures and the places of the library from which names are
    imported do not count: a function that moves to another module, or a figure more, leaves the
    runs of its chapters valid.

    Parameters
    ----------
    source : Path
        The chapter.

    Returns
    -------
    str
    """
    tree = ast.parse("\n".join(evidence([code(source.read_text(encoding="utf-8"))])))
    names = {
        alias.asname or alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    bare = ast.dump(_Places(names).visit(tree))
    return hashlib.sha256(bare.encode()).hexdigest()[:16]


def records(notebook: Path) -> dict[str, Record]:
    """Return what an executed notebook recorded, by claim.

    Raises
    ------
    ClaimError
        If the file is not a notebook of this version.
    """
    found = {}
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        for cell in cells:
            for output in cell.get("outputs", []):
                if MIME in output.get("data", {}):
                    record = Record.from_json(output["data"][MIME])
                    found[record.id] = record
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ClaimError(f"{notebook}: not a readable notebook: {error!r}") from error
    return found


def moved(first: Evidence, second: Evidence) -> bool:
    """Whether an observation without a sampling model differs between two seeds.

    An identity may be checked at points that are drawn: then both its sides move. It counts
    as moved if only the observation does, and its tolerance is more than rounding.
    """
    if first.sampling != "none" or second.sampling != "none":
        return False
    change = _change(first.observed, second.observed)
    if first.kind == "identity":
        drawn = _change(first.expected, second.expected) > ROUNDING
        scale = max(1.0, float(np.max(np.abs(first.expected))))
        return change > ROUNDING and not drawn and first.error > ROUNDING * scale
    return change > ROUNDING


def _change(one: Any, other: Any) -> float:
    """Relative difference of two numbers or pairs."""
    first, second = np.atleast_1d(one), np.atleast_1d(other)
    if first.shape != second.shape:
        return np.inf
    scale = max(float(np.abs(first).max()), float(np.abs(second).max()))
    return float(np.abs(first - second).max()) / scale if scale > 0 else 0.0


def compare(runs: Mapping[int, Mapping[str, Record]], claims: Iterable[str]) -> Tally:
    """Tabulate the runs of one chapter at several seeds.

    Parameters
    ----------
    runs : mapping
        Records by claim, by seed.
    claims : iterable of str
        Ids of the chapter's claims.

    Returns
    -------
    Tally
        Without a digest.
    """
    tally = Tally(digest="", seeds=sorted(runs))
    ids = list(claims)
    for seed in tally.seeds:
        for name in _failures(runs[seed], ids):
            tally.failed.setdefault(name, []).append(seed)
        alarms = (item.false_alarm for record in runs[seed].values() for item in record.evidence)
        tally.expected += sum(alarms)
    for id in ids:
        mine = [runs[seed][id].evidence for seed in tally.seeds if id in runs[seed]]
        for checks in zip(*mine):
            if any(moved(checks[0], other) for other in checks[1:]):
                tally.moved.append(f"{id}: {checks[0].check}")
    return tally


def _failures(run: Mapping[str, Record], claims: Iterable[str]) -> Iterator[str]:
    for id in claims:
        if id not in run:
            yield f"{id}: {SILENT}"
            continue
        for item in run[id].evidence:
            if item.non_finite() or not item.passed or not item.control.rejected:
                yield f"{id}: {item.check}"


def read(path: Path) -> dict[str, Tally]:
    """Read a tally by chapter; empty if there is no file.

    Raises
    ------
    ClaimError
        If the file is not a tally.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return {chapter: Tally(**entry) for chapter, entry in data.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError) as error:
        raise ClaimError(f"{path} is not a tally of seeds: {error!r}") from error


def update(registry: Registry, folders: Iterable[Path], out: Path) -> dict[str, Tally]:
    """Add the runs in some folders to the tally.

    Runs of a chapter whose code has changed since are forgotten.

    Parameters
    ----------
    registry : Registry
        Its chapters lie beside it.
    folders : iterable of Path
        Builds, named by their seed, with ``notebooks/`` in them: ``chapter.ipynb``, or
        ``chapter.failed`` of a chapter that raised an error.
    out : Path
        The tally, written atomically.

    Returns
    -------
    dict
        The tally by chapter.
    """
    tallies = {}
    before = read(out)
    builds = {int(folder.name): folder / "notebooks" for folder in folders}
    for chapter in dict.fromkeys(claim.chapter for claim in registry):
        now = digest(registry.path.parent / f"{chapter}.md")
        old = before.get(chapter, Tally(now))
        old = old if old.digest == now else Tally(now)
        paths = {seed: folder / f"{chapter}.ipynb" for seed, folder in builds.items()}
        runs = {
            seed: records(path) if path.is_file() else {}
            for seed, path in paths.items()
            if path.is_file() or path.with_suffix(".failed").is_file()
        }
        fresh = compare(runs, [claim.id for claim in registry.of_chapter(chapter)])
        tallies[chapter] = _merge(old, fresh)
    text = {chapter: vars(tally) for chapter, tally in tallies.items() if tally.seeds}
    write(out, (json.dumps(text, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode())
    return tallies


def summary(tallies: Mapping[str, Tally]) -> str:
    """Say in a line how many runs there were, how many checks failed and how many had to.

    Examples
    --------
    >>> summary({"a/b": Tally("", seeds=[1, 2], expected=1e-4)})
    '2 runs of chapters, 0 failures of checks, expected at most 0.0001'
    """
    runs = sum(len(tally.seeds) for tally in tallies.values())
    failures = sum(len(seeds) for tally in tallies.values() for seeds in tally.failed.values())
    expected = sum(tally.expected for tally in tallies.values())
    return (
        f"{runs} runs of chapters, {failures} failures of checks, expected at most {expected:.2g}"
    )


def _merge(old: Tally, fresh: Tally) -> Tally:
    """Join two tallies; a seed that ran again counts as it ran last.

    What was expected of the runs that stay is their share of what was expected of all.
    """
    stay = [seed for seed in old.seeds if seed not in fresh.seeds]
    share = len(stay) / len(old.seeds) if old.seeds else 0.0
    failed: dict[str, list[int]] = {}
    for name in sorted(old.failed.keys() | fresh.failed.keys()):
        kept = set(old.failed.get(name, ())) - set(fresh.seeds)
        seeds = sorted(kept | set(fresh.failed.get(name, ())))
        if seeds:
            failed[name] = seeds
    return Tally(
        digest=old.digest,
        seeds=sorted({*old.seeds, *fresh.seeds}),
        expected=share * old.expected + fresh.expected,
        failed=failed,
        moved=sorted({*old.moved, *fresh.moved}),
    )
