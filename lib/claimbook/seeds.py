"""The tally of seeds: how often each check failed when chapters ran with other seeds.

``make seeds`` runs the quick book at further seeds, each in a folder of its own and with
failing claims recorded instead of stopping their chapter, and tabulates here what happened.
The tally is kept in ``book/seeds.json``, with the digest of the library that each run used, since
a run counts until its chapter changes and the library may change before. A chapter whose code was
tidied keeps its runs: they count on as soon as the new code has been run at one of their seeds and
found the same numbers, bit for bit. The tally also finds observations that depend on the seed
although their check states no probability of error.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from claimbook.evidence import Evidence
from claimbook.files import write
from claimbook.registry import ClaimError, Registry
from claimbook.run.stamps import code, library
from claimbook.slices import evidence
from claimbook.verdict import MIME, Record

#: Name of the tally, beside the registry.
FILE = "seeds.json"
#: Relative change of an observation that rounding may cause.
ROUNDING = 1e-6
#: What the tally keeps of each run to recognise it.
_DIGESTS = ("library", "numbers")
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
    expected : dict
        By seed, the sum over the checks of the probability that a true claim fails.
    failed : dict
        Seeds at which a check failed, by ``claim: check``.
    moved : list of str
        ``claim: check`` of observations without a sampling model that moved with the seed.
    library : dict
        By seed, the digest of the library that the run used, where the run recorded it.
    numbers : dict
        By seed, the digest of the numbers that the run found, see :func:`numbers`.
    """

    digest: str
    seeds: list[int] = field(default_factory=list)
    expected: dict[int, float] = field(default_factory=dict)
    failed: dict[str, list[int]] = field(default_factory=dict)
    moved: list[str] = field(default_factory=list)
    library: dict[int, str] = field(default_factory=dict)
    numbers: dict[int, str] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """Sum of what was expected over all runs."""
        return math.fsum(self.expected.values())

    def current(self, library: str) -> int:
        """Count the runs that used the library with this digest."""
        return sum(self.library.get(seed) == library for seed in self.seeds)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Tally:
        """Read an entry of the file.

        In an earlier form `expected` was the sum over the runs: every run then gets its share.
        """
        expected = entry["expected"]
        if not isinstance(expected, dict):
            expected = dict.fromkeys(entry["seeds"], expected / len(entry["seeds"]))
        by_seed = {"expected": expected, **{key: entry.get(key, {}) for key in _DIGESTS}}
        by_seed = {key: {int(k): v for k, v in each.items()} for key, each in by_seed.items()}
        return cls(**{**entry, **by_seed})


class _Places(ast.NodeTransformer):
    """Drops what cannot change a number: where imported names stand."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def visit_Import(self, node: ast.Import) -> None:
        """Drop the statement."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Drop the statement."""

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


def numbers(run: Mapping[str, Record]) -> str:
    """Short digest of what a run found: all numbers of its checks and controls, to the last bit.

    The probabilities of error are among them: a level that was changed is another check.

    Words do not count: a check that is named anew found the same.

    Parameters
    ----------
    run : mapping
        Records by claim.

    Returns
    -------
    str
    """
    found = [
        (
            *(id, item.kind, item.n, item.observed, item.expected, item.error, item.passed),
            *(item.control.observed, item.control.expected, item.control.rejected),
            *(item.false_alarm, item.false_pass, item.resolution),
        )
        for id, record in sorted(run.items())
        for item in record.evidence
    ]
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16]


def records(notebook: Path) -> dict[str, Record]:
    """Return what an executed notebook recorded, by claim.

    Raises
    ------
    ClaimError
        If the file is not a notebook of this version.
    """
    return _run(notebook)[0]


def _run(notebook: Path) -> tuple[dict[str, Record], str]:
    """Return the records of an executed notebook and the digest of the library that it used."""
    found = {}
    try:
        content = json.loads(notebook.read_text(encoding="utf-8"))
        for cell in content["cells"]:
            for output in cell.get("outputs", []):
                if MIME in output.get("data", {}):
                    record = Record.from_json(output["data"][MIME])
                    found[record.id] = record
        used = content["metadata"].get("claimbook", {}).get("library", "")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ClaimError(f"{notebook}: not a readable notebook: {error!r}") from error
    return found, used


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
        Without digests.
    """
    tally = Tally(digest="", seeds=sorted(runs))
    ids = list(claims)
    for seed in tally.seeds:
        for name in _failures(runs[seed], ids):
            tally.failed.setdefault(name, []).append(seed)
        alarms = (item.false_alarm for record in runs[seed].values() for item in record.evidence)
        tally.expected[seed] = math.fsum(alarms)
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
        return {chapter: Tally.from_json(entry) for chapter, entry in data.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError, KeyError, ZeroDivisionError) as error:
        raise ClaimError(f"{path} is not a tally of seeds: {error!r}") from error


def update(registry: Registry, folders: Iterable[Path], out: Path) -> dict[str, Tally]:
    """Add the runs in some folders to the tally.

    Runs of a chapter whose code has changed since are forgotten, unless its new code finds the
    same numbers at one of their seeds.

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
        paths = {seed: folder / f"{chapter}.ipynb" for seed, folder in builds.items()}
        runs = {
            seed: _run(path) if path.is_file() else ({}, "")
            for seed, path in paths.items()
            if path.is_file() or path.with_suffix(".failed").is_file()
        }
        fresh = compare(
            {seed: found for seed, (found, _) in runs.items()},
            [claim.id for claim in registry.of_chapter(chapter)],
        )
        fresh.library = {seed: used for seed, (_, used) in runs.items() if used}
        fresh.numbers = {seed: numbers(found) for seed, (found, _) in runs.items() if found}
        old = before.get(chapter, Tally(now))
        same = old.digest == now or old.numbers.items() & fresh.numbers.items()
        tallies[chapter] = _merge(replace(old if same else Tally(now), digest=now), fresh)
    text = {chapter: vars(tally) for chapter, tally in tallies.items() if tally.seeds}
    write(out, (json.dumps(text, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode())
    return tallies


def summary(tallies: Mapping[str, Tally]) -> str:
    """Say in a line how many runs there were, how many checks failed and how many had to.

    Examples
    --------
    >>> from claimbook.seeds import Tally, summary
    >>> summary({"a/b": Tally("", seeds=[1, 2], expected={1: 4e-5, 2: 6e-5})})
    '2 runs of chapters, 0 failures of checks, expected at most 0.0001'
    """
    runs = sum(len(tally.seeds) for tally in tallies.values())
    failures = sum(len(seeds) for tally in tallies.values() for seeds in tally.failed.values())
    expected = math.fsum(tally.total for tally in tallies.values())
    return (
        f"{runs} runs of chapters, {failures} failures of checks, expected at most {expected:.2g}"
    )


def largest(tallies: Mapping[str, Tally]) -> tuple[float, int]:
    """Return the largest number of failures expected of the runs at one seed, and that seed.

    A chapter that did not run at a seed adds nothing there.

    Examples
    --------
    >>> from claimbook.seeds import Tally, largest
    >>> largest({"a": Tally("", [1, 2], {1: 1e-4, 2: 3e-4}), "b": Tally("", [1], {1: 1e-4})})
    (0.0003, 2)
    """
    sums: Counter[int] = Counter()
    for tally in tallies.values():
        sums.update(tally.expected)
    return max((value, seed) for seed, value in sums.items())


def libraries(tallies: Iterable[str], root: Path) -> dict[str, str]:
    """Digest the library that each chapter reaches, as it is now.

    Parameters
    ----------
    tallies : iterable of str
        Names of chapters; those without a source are left out.
    root : Path
        The checkout.

    Returns
    -------
    dict
        Digests by chapter, see :func:`claimbook.run.stamps.library`.
    """
    sources = {chapter: root / "book" / f"{chapter}.md" for chapter in tallies}
    return {
        chapter: library(source.read_text(encoding="utf-8"), root / "lib")
        for chapter, source in sources.items()
        if source.is_file()
    }


def _merge(old: Tally, fresh: Tally) -> Tally:
    """Join two tallies; a seed that ran again counts as it ran last."""

    def join(before: Mapping[int, Any], after: Mapping[int, Any]) -> dict[int, Any]:
        return {k: v for k, v in before.items() if k not in fresh.seeds} | dict(after)

    failed: dict[str, list[int]] = {}
    for name in sorted(old.failed.keys() | fresh.failed.keys()):
        kept = set(old.failed.get(name, ())) - set(fresh.seeds)
        seeds = sorted(kept | set(fresh.failed.get(name, ())))
        if seeds:
            failed[name] = seeds
    return Tally(
        digest=old.digest,
        seeds=sorted({*old.seeds, *fresh.seeds}),
        expected=join(old.expected, fresh.expected),
        failed=failed,
        moved=sorted({*old.moved, *fresh.moved}),
        library=join(old.library, fresh.library),
        numbers=join(old.numbers, fresh.numbers),
    )
