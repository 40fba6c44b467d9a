"""From executed notebooks to ``ledger.json``; anything out of order stops the build."""

from __future__ import annotations

import base64
import json
import math
import os
import platform
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from claimbook import seeds
from claimbook.files import write
from claimbook.registry import (
    FINDINGS,
    PANEL_FINDINGS,
    Claim,
    ClaimError,
    Panel,
    Registry,
    load_registry,
    schema,
    schema_faults,
)
from claimbook.verdict import MIME, Record, faults

#: Most that the checks may add up to: probability that some true claim fails in a repetition...
MAX_FALSE_ALARM = 5e-2
#: ...and that some one-sided test passed a false claim.
MAX_FALSE_PASS = 3e-2
#: The second version of a figure, in the HTML that a chapter displays.
_DARK = re.compile(r'<img class="only-dark"[^>]*? src="data:image/png;base64,([^"]+)"')


@dataclass(frozen=True)
class Image:
    """A labelled figure displayed in a chapter."""

    label: str
    chapter: str
    alt: str
    light: bytes
    dark: bytes

    def path(self, theme: str) -> str:
        """Where its file goes, relative to the ledger."""
        folder = "figures" if theme == "light" else f"figures/{theme}"
        return f"{folder}/{self.chapter.replace('/', '--')}--{_slug(self.label)}.png"


@dataclass
class Reading:
    """What the notebooks hold, and everything wrong with it."""

    seconds: dict[str, float] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
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
        The claims that must have a verdict; records of other claims are faults.
    profile : str
        That of the run, ``quick`` or ``paper``; a record of another one is a fault.
    seed : int
        Root seed of the run; a record of another one is a fault.

    Returns
    -------
    Reading
    """
    reading = Reading()
    for path in notebooks_under(folder):
        chapter = path.relative_to(folder).with_suffix("").as_posix()
        reading.seconds[chapter] = 0.0
        try:
            notebook = json.loads(path.read_text(encoding="utf-8"))
            cells = notebook["cells"]
            run = notebook["metadata"]["claimbook"]
            reading.seconds[chapter] = float(run["seconds"])
            if "memory_mib" in run:
                reading.memory[chapter] = int(run["memory_mib"])
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
    shown = output.get("metadata", {}).get("claimbook")
    if isinstance(shown, dict) and "figure" in shown and "image/png" in data:
        _read_image(reading, shown, data, chapter, place)
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
    reading: Reading, shown: dict[str, Any], data: dict[str, Any], chapter: str, place: str
) -> None:
    label = str(shown["figure"])
    if (chapter, label) in reading.images:
        reading.problems.append(f"{place}: figure {label!r} is displayed twice")
        return
    # A figure with parameters keeps its HTML within Markdown (a figure that the reader can move).
    dark = _DARK.search("".join(data.get("text/html") or data.get("text/markdown", "")))
    if dark is None:
        reading.problems.append(f"{place}: figure {label!r} has no version for dark pages")
        return
    light = base64.b64decode("".join(data["image/png"]))
    alt = str(shown.get("alt", ""))
    image = Image(label, chapter, alt, light, base64.b64decode(dark.group(1)))
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
        elif claim.chapter not in reading.seconds:
            reading.problems.append(f"{claim.chapter}: {claim.id}: the chapter has no notebook")
        elif claim.id not in reading.attempted:
            reading.problems.append(f"{claim.chapter}: {claim.id}: no verdict recorded")
    for name, most, what in (
        ("false_alarm", MAX_FALSE_ALARM, "that some true claim fails in a repetition"),
        ("false_pass", MAX_FALSE_PASS, "that some false claim passes a one-sided test"),
    ):
        total = _total(reading, name)
        if total > most:
            reading.problems.append(f"the probability {what}, {total:.3g}, exceeds {most:g}")


def _total(reading: Reading, name: str) -> float:
    """Union bound over all checks on one of the two probabilities of error."""
    return math.fsum(
        getattr(item, name) for record in reading.records.values() for item in record.evidence
    )


def _unmodelled(registry: Registry) -> Iterator[str]:
    """Observations that moved with the seed in runs of the chapters as they stand."""
    folder = registry.path.parent
    for chapter, tally in seeds.read(folder / seeds.FILE).items():
        source = folder / f"{chapter}.md"
        if source.is_file() and seeds.digest(source) == tally.digest:
            for name in tally.moved:
                yield f"{chapter}: {name}: moves with the seed and states no probability of error"


def build(claims: Path, notebooks: Path, *, profile: str, seed: int, out: Path) -> dict[str, Any]:
    """Collect all verdicts and write the ledger; labelled figures go to ``figures/`` beside it.

    Parameters
    ----------
    claims : Path
        The registry, ``book/claims.toml``.
    notebooks : Path
        Folder of executed notebooks.
    profile : str
        That of all notebooks, ``quick`` or ``paper``.
    seed : int
        Root seed of all notebooks.
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
    reading.problems.extend(_unmodelled(registry))
    if reading.problems:
        raise ClaimError("\n".join(reading.problems))
    ledger = _assemble(reading, registry, profile, seed)
    broken = schema_faults("ledger", ledger)
    if broken:
        raise ClaimError(
            "\n".join(f"ledger {fault.json_path}: {fault.message}" for fault in broken)
        )
    for image in reading.images.values():
        write(out.parent / image.path("light"), image.light)
        write(out.parent / image.path("dark"), image.dark)
    text = json.dumps(ledger, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write(out, text.encode())
    return ledger


def _assemble(reading: Reading, registry: Registry, profile: str, seed: int) -> dict[str, Any]:
    records = [reading.records[claim.id] for claim in registry]
    counts = Counter(record.verdict for record in records)
    panels = Counter(panel.finding for claim in registry for panel in claim.panels)
    used = {claim.source for claim in registry}
    return {
        "schema": schema("ledger")["properties"]["schema"]["const"],
        "commit": commit(registry.path.parent),
        "date": date(registry.path.parent),
        "profile": profile,
        "seed": seed,
        "environment": environment(registry.path.parent.parent),
        "sources": {key: text for key, text in registry.sources.items() if key in used},
        "false_alarm_total": _total(reading, "false_alarm"),
        "false_pass_total": _total(reading, "false_pass"),
        "counts": {finding: counts[finding] for finding in FINDINGS},
        "panels": {finding: panels[finding] for finding in PANEL_FINDINGS},
        "chapters": [
            {
                "chapter": chapter,
                "claims": len(mine),
                "seconds": seconds,
                **({"memory_mib": reading.memory[chapter]} if chapter in reading.memory else {}),
            }
            for chapter, seconds in reading.seconds.items()
            if (mine := [record for record in records if record.chapter == chapter])
        ],
        "figures": [
            {
                "label": image.label,
                "chapter": image.chapter,
                "alt": image.alt,
                "image": image.path("light"),
                "dark": image.path("dark"),
            }
            for image in reading.images.values()
        ],
        "smaller": [asdict(entry) for entry in registry.smaller],
        "uses": {
            source: {number: list(used) for number, used in table.items()}
            for source, table in registry.uses.items()
        },
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
    for name in (
        "printed",
        "ours",
        "reason",
        "matters",
        "settle",
        "tested",
        "not_tested",
        "credit",
    ):
        if getattr(claim, name):
            entry[name] = getattr(claim, name)
    if claim.terms:
        entry["terms"] = list(claim.terms)
    if claim.panels:
        entry["panels"] = [_panel(panel) for panel in claim.panels]
    return entry


def _panel(panel: Panel) -> dict[str, Any]:
    found = {**asdict(panel), "checks": list(panel.checks)}
    return {key: value for key, value in found.items() if value}


def _slug(label: str) -> str:
    return "".join(char if char.isalnum() or char in "-_." else "-" for char in label)


def _git(folder: Path, *arguments: str) -> str | None:
    """Ask git about the checkout a folder belongs to; None if there is none."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def commit(folder: Path) -> str:
    """Hash of the checkout a folder belongs to; ``-dirty`` if it differs from that commit."""
    head = _git(folder, "rev-parse", "HEAD")
    if head is None:
        return "unknown"
    return head + ("-dirty" if _git(folder, "status", "--porcelain") else "")


def date(folder: Path) -> str:
    """When the commit was made: unlike the time of the build, the same in every build of it."""
    return _git(folder, "show", "--no-patch", "--format=%cI", "HEAD") or "unknown"


def environment(root: Path) -> dict[str, Any]:
    """Return the versions and machine that the numbers of the project in a folder come from."""
    found: dict[str, Any] = {
        "python": platform.python_version(),
        "platform": f"{platform.system()}-{platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
    }
    if hasattr(os, "sysconf"):
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        found["memory_gib"] = round(pages / 2**30, 1)
    return {**found, "packages": _packages(root)}


def _processor() -> str:
    """Name of the processor, as the system gives it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()


def _packages(root: Path) -> dict[str, str]:
    """Versions of the project in a folder and of what it asks for, where installed."""
    project = root / "pyproject.toml"
    if not project.is_file():
        return {}
    name = tomllib.loads(project.read_text(encoding="utf-8")).get("project", {}).get("name", "")
    try:
        asked = [re.split(r"[^A-Za-z0-9_.-]", line)[0] for line in requires(name) or ()]
    except (PackageNotFoundError, ValueError):
        asked = []
    found = {}
    for package in [name, *sorted(set(asked) - {name})]:
        try:
            found[package] = version(package)
        except (PackageNotFoundError, ValueError):
            continue
    return found
