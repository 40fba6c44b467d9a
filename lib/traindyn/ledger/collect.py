"""From executed notebooks to ``ledger.json``; anything out of order stops the build."""

from __future__ import annotations

import base64
import json
import math
import os
import platform
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from traindyn.ledger.files import write
from traindyn.ledger.registry import (
    FINDINGS,
    Claim,
    ClaimError,
    Registry,
    load_registry,
    schema,
    schema_faults,
)
from traindyn.ledger.verdict import MIME, Record, faults

MAX_FALSE_ALARM = 1e-3
_PACKAGES = ("traindyn", "numpy", "scipy", "numba", "matplotlib", "joblib", "jupyter-book")


@dataclass(frozen=True)
class Image:
    """A labelled figure displayed in a chapter."""

    label: str
    chapter: str
    alt: str
    png: bytes


@dataclass
class Reading:
    """What the notebooks hold, and everything wrong with it."""

    chapters: list[str] = field(default_factory=list)
    records: dict[str, Record] = field(default_factory=dict)
    images: dict[tuple[str, str], Image] = field(default_factory=dict)
    attempted: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


def notebooks_under(folder: Path) -> list[Path]:
    """List executed notebooks in name order, hidden folders left out."""
    return sorted(
        path
        for path in folder.rglob("*.ipynb")
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


def read(folder: Path, registry: Registry, *, profile: str, seed: int) -> Reading:
    """Read every notebook under a folder and check what it recorded.

    Parameters
    ----------
    folder : Path
        Its notebooks mirror ``book/``: ``alignment/alignment.ipynb`` is the chapter
        ``alignment/alignment``.
    registry : Registry
    profile : str
    seed : int

    Returns
    -------
    Reading
    """
    reading = Reading()
    for path in notebooks_under(folder):
        chapter = path.relative_to(folder).with_suffix("").as_posix()
        reading.chapters.append(chapter)
        try:
            cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            reading.problems.append(f"{chapter}: not a readable notebook: {error!r}")
            continue
        for index, cell in enumerate(cells, start=1):
            place = f"{chapter}, cell {index}"
            if cell.get("execution_count"):
                place += f" (In [{cell['execution_count']}])"
            for output in cell.get("outputs", []):
                _read_output(reading, output, chapter, place, registry, profile, seed)
    _check_coverage(reading, registry)
    return reading


def _read_output(
    reading: Reading,
    output: dict[str, Any],
    chapter: str,
    place: str,
    registry: Registry,
    profile: str,
    seed: int,
) -> None:
    if output.get("output_type") == "error":
        name = f"{output.get('ename')}: {output.get('evalue')}"
        reading.problems.append(f"{place}: the cell failed, {name}")
    data = output.get("data", {})
    shown = output.get("metadata", {}).get("traindyn")
    if isinstance(shown, dict) and "figure" in shown and "image/png" in data:
        _read_image(reading, shown, data["image/png"], chapter, place)
    if MIME not in data:
        return
    if isinstance(data[MIME], dict):
        reading.attempted.add(str(data[MIME].get("id")))
    try:
        record = _parse(data[MIME])
    except ClaimError as error:
        reading.problems.append(f"{place}: {error}")
        return
    found = list(_record_faults(reading, record, registry, chapter, profile, seed))
    reading.problems.extend(f"{place}: {record.id}: {fault}" for fault in found)
    reading.records.setdefault(record.id, record)


def _parse(data: Any) -> Record:
    """Rebuild a record, refusing NaN and infinities wherever they stand."""
    id = data.get("id", "a claim") if isinstance(data, dict) else "a claim"
    bad = list(_non_finite(data))
    if bad:
        raise ClaimError(f"{id}: non-finite number in {', '.join(bad)}")
    try:
        return Record.from_json(data)
    except (TypeError, KeyError, AttributeError) as error:
        raise ClaimError(f"{id}: not a record of this version, run the chapter again") from error


def _non_finite(data: Any, where: str = "") -> Iterator[str]:
    if isinstance(data, float) and not math.isfinite(data):
        yield where
    elif isinstance(data, (dict, list)):
        items = data.items() if isinstance(data, dict) else enumerate(data)
        for key, value in items:
            yield from _non_finite(value, f"{where}.{key}" if where else str(key))


def _record_faults(
    reading: Reading, record: Record, registry: Registry, chapter: str, profile: str, seed: int
) -> Iterator[str]:
    try:
        claim = registry[record.id]
    except ClaimError as error:
        yield str(error)
        return
    if record.id in reading.records:
        yield f"recorded twice, first in {reading.records[record.id].chapter}"
    if claim.chapter != chapter or record.chapter != chapter:
        yield f"belongs to chapter {claim.chapter}, recorded as {record.chapter} in {chapter}"
    if record.verdict != claim.finding:
        yield f"recorded as {record.verdict}, the registry says {claim.finding}: run it again"
    if (record.profile, record.seed) != (profile, seed):
        yield (
            f"recorded with profile {record.profile}, seed {record.seed}; "
            f"this build is {profile}, seed {seed}"
        )
    yield from faults(claim, record.evidence)
    if claim.kind == "figure" and not record.figure:
        yield "is about a figure and names no figure label"


def _read_image(
    reading: Reading, shown: dict[str, Any], png: str | list[str], chapter: str, place: str
) -> None:
    label = str(shown["figure"])
    if (chapter, label) in reading.images:
        reading.problems.append(f"{place}: figure {label!r} is displayed twice")
        return
    text = png if isinstance(png, str) else "".join(png)
    image = Image(label, chapter, str(shown.get("alt", "")), base64.b64decode(text))
    if not image.alt.strip():
        reading.problems.append(f"{place}: figure {label!r} has no alternative text")
    reading.images[chapter, label] = image


def _check_coverage(reading: Reading, registry: Registry) -> None:
    for claim in registry:
        if claim.id in reading.records:
            label = reading.records[claim.id].figure
            if label and (claim.chapter, label) not in reading.images:
                reading.problems.append(
                    f"{claim.chapter}: {claim.id}: its figure {label!r} is not displayed"
                )
        elif claim.chapter not in reading.chapters:
            reading.problems.append(f"{claim.chapter}: {claim.id}: the chapter has no notebook")
        elif claim.id not in reading.attempted:
            reading.problems.append(f"{claim.chapter}: {claim.id}: no verdict recorded")
    total = false_alarm_total(reading)
    if total > MAX_FALSE_ALARM:
        reading.problems.append(
            f"total false-alarm probability {total:.3g} exceeds {MAX_FALSE_ALARM:g}"
        )


def false_alarm_total(reading: Reading) -> float:
    """Union bound on the probability that any true claim fails."""
    return math.fsum(
        item.false_alarm for record in reading.records.values() for item in record.evidence
    )


def build(claims: Path, notebooks: Path, *, profile: str, seed: int, out: Path) -> dict[str, Any]:
    """Collect all verdicts and write the ledger; labelled figures go to ``figures/`` beside it.

    Parameters
    ----------
    claims : Path
        The registry, ``book/claims.toml``.
    notebooks : Path
        Folder of executed notebooks.
    profile : str
    seed : int
    out : Path
        Written atomically, only if everything is in order.

    Returns
    -------
    dict
        The ledger, as written.

    Raises
    ------
    ClaimError
        Listing every problem, each with its chapter and cell.
    """
    registry = load_registry(claims)
    if not notebooks.is_dir():
        raise ClaimError(f"no folder of executed notebooks at {notebooks}")
    reading = read(notebooks, registry, profile=profile, seed=seed)
    if reading.problems:
        raise ClaimError("\n".join(reading.problems))
    ledger = _assemble(reading, registry, profile, seed)
    broken = schema_faults("ledger", ledger)
    if broken:
        raise ClaimError(
            "\n".join(f"ledger {fault.json_path}: {fault.message}" for fault in broken)
        )
    for image, entry in zip(reading.images.values(), ledger["figures"], strict=True):
        write(out.parent / entry["image"], image.png)
    text = json.dumps(ledger, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write(out, text.encode())
    return ledger


def _assemble(reading: Reading, registry: Registry, profile: str, seed: int) -> dict[str, Any]:
    records = [reading.records[claim.id] for claim in registry]
    counts = Counter(record.verdict for record in records)
    used = {claim.source for claim in registry}
    return {
        "schema": schema("ledger")["properties"]["schema"]["const"],
        "commit": commit(registry.path.parent),
        "profile": profile,
        "seed": seed,
        "environment": environment(),
        "sources": {key: text for key, text in registry.sources.items() if key in used},
        "false_alarm_total": false_alarm_total(reading),
        "counts": {finding: counts[finding] for finding in FINDINGS},
        "chapters": [
            {
                "chapter": chapter,
                "claims": len(mine),
                "seconds": round(sum(record.seconds for record in mine), 3),
            }
            for chapter in reading.chapters
            if (mine := [record for record in records if record.chapter == chapter])
        ],
        "figures": [
            {
                "label": image.label,
                "chapter": image.chapter,
                "alt": image.alt,
                "image": f"figures/{image.chapter.replace('/', '--')}--{_slug(image.label)}.png",
            }
            for image in reading.images.values()
        ],
        "claims": [_entry(claim, record) for claim, record in zip(registry, records, strict=True)],
    }


def _entry(claim: Claim, record: Record) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "id": claim.id,
        "source": claim.source,
        "number": claim.number,
        "kind": claim.kind,
        "statement": claim.statement,
        "verdict": record.verdict,
        "chapter": claim.chapter,
        "evidence": [item.to_json() for item in record.evidence],
        "figure": record.figure,
        "seconds": record.seconds,
    }
    for name in ("printed", "ours", "reason", "weight"):
        if getattr(claim, name):
            entry[name] = getattr(claim, name)
    return entry


def _slug(label: str) -> str:
    return "".join(char if char.isalnum() or char in "-_." else "-" for char in label)


def commit(folder: Path) -> str:
    """Hash of the checkout a folder belongs to; ``-dirty`` if it differs from that commit."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("-dirty" if git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def environment() -> dict[str, Any]:
    """Return the versions and machine that the numbers come from."""
    packages = {}
    for name in _PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()}-{platform.machine()}",
        "cores": os.cpu_count() or 1,
        "packages": packages,
    }
