"""The registry of claims, ``book/claims.toml``."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args

from claimbook._schemas import jsonschema
from claimbook.numbering import statement_of

Finding = Literal["confirmed", "corrected", "false", "partial", "data"]
ClaimKind = Literal["theorem", "formula", "figure", "table", "remark", "erratum"]
Matters = Literal["number", "slip"]
FINDINGS: tuple[Finding, ...] = get_args(Finding)
PRINTED_MUST_FAIL: tuple[Finding, ...] = ("corrected", "false")
UNSETTLED: tuple[Finding, ...] = ("partial", "data")
#: What is said of a panel: a finding, or that it is open, not run or run and not decided.
PanelFinding = Finding | Literal["open"]
PANEL_FINDINGS: tuple[PanelFinding, ...] = (*FINDINGS, "open")
_TEXTS = (
    "statement",
    "printed",
    "ours",
    "reason",
    "settle",
    "tested",
    "not_tested",
    "credit",
)


class ClaimError(ValueError):
    """A claim, its evidence or the registry is not in order; the message says where."""


@dataclass(frozen=True)
class Panel:
    """A part of a figure or a table: what the source shows there, and what was run for it.

    Attributes
    ----------
    panel : str
        Its name in the source.
    setting, ours : str
        What the source ran, and what a chapter does; the latter is empty if it does nothing.
    finding : str
        A finding of a claim, or ``open``: not run, or run and not decided.
    checks : tuple of str
        Names of the checks of the claim that decide it; none if it is open.
    """

    panel: str
    setting: str
    finding: PanelFinding
    ours: str = ""
    checks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """One entry of the registry; see ``claims.schema.json`` for the fields."""

    id: str
    source: str
    number: str
    kind: ClaimKind
    statement: str
    chapter: str
    finding: Finding = "confirmed"
    printed: str = ""
    ours: str = ""
    reason: str = ""
    matters: Matters | None = None
    settle: str = ""
    tested: str = ""
    not_tested: str = ""
    credit: str = ""
    terms: tuple[str, ...] = ()
    panels: tuple[Panel, ...] = ()


@dataclass(frozen=True)
class Smaller:
    """A size of the source that a chapter does not reach at paper sizes."""

    chapter: str
    source: str
    ours: str
    why: str


@dataclass(frozen=True)
class Registry:
    """Claims by id, in the order of the file, and what the proofs of the sources use.

    The latter is by source and number of the statement; what is used is the number of a statement
    of the same source, or the id of a claim where that part of a statement alone is used.
    """

    path: Path
    claims: dict[str, Claim]
    sources: dict[str, str]
    smaller: tuple[Smaller, ...] = ()
    uses: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Claim]:
        """Claims in the order of the file."""
        return iter(self.claims.values())

    def __len__(self) -> int:
        """Return the number of claims."""
        return len(self.claims)

    def __getitem__(self, id: str) -> Claim:
        """Return the claim, or raise a ClaimError that names the nearest ids."""
        try:
            return self.claims[id]
        except KeyError:
            near = self.nearest(id)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise ClaimError(f"no claim {id!r} in {self.path}{hint}") from None

    def nearest(self, id: str) -> list[str]:
        """Return at most three ids that resemble `id`."""
        folded = {name.casefold(): name for name in self.claims}
        return [folded[name] for name in get_close_matches(id.casefold(), folded, cutoff=0.5)]

    def of_chapter(self, chapter: str) -> list[Claim]:
        """Claims that a chapter must answer for."""
        return [claim for claim in self if claim.chapter == chapter]


def find_registry(start: Path | None = None) -> Path:
    """Return the path of ``book/claims.toml``.

    The environment variable CLAIMBOOK_CLAIMS if set, else in `start` (default: the current
    directory) or the nearest directory above it.

    Raises
    ------
    ClaimError
        If there is none.
    """
    named = os.environ.get("CLAIMBOOK_CLAIMS")
    if named:
        if not Path(named).is_file():
            raise ClaimError(f"CLAIMBOOK_CLAIMS names {named}, which is not a file")
        return Path(named).resolve()
    origin = (start or Path.cwd()).resolve()
    for folder in (origin, *origin.parents):
        path = folder / "book" / "claims.toml"
        if path.is_file():
            return path
    raise ClaimError(
        f"no book/claims.toml in {origin} or above: run this inside a checkout of the book, "
        "or set CLAIMBOOK_CLAIMS to the file"
    )


def load_registry(path: Path | None = None) -> Registry:
    """Read and validate the registry.

    Parameters
    ----------
    path : Path, optional
        Default: :func:`find_registry`.

    Raises
    ------
    ClaimError
        If the file is missing or not TOML, an entry breaks the schema, an id occurs twice
        or does not begin with its source, a field does not go with its finding, a chapter
        is unknown, or a proof uses what is not there, or itself. All faults are listed.
    """
    path = find_registry() if path is None else Path(path)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ClaimError(f"no registry of claims at {path}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ClaimError(f"{path} is not valid TOML: {error}") from error
    faults = [_locate(fault, data) for fault in schema_faults("claims", data)]
    if not faults:
        faults = list(_semantic_faults(data))
    if faults:
        raise ClaimError(f"{path}:\n  " + "\n  ".join(faults))
    claims = {entry["id"]: _claim(entry) for entry in data["claim"]}
    smaller = tuple(Smaller(**entry) for entry in data.get("smaller", ()))
    uses = {
        source: {number: tuple(used) for number, used in table.items()}
        for source, table in data.get("uses", {}).items()
    }
    sources = data.get("sources", {})
    return Registry(path=path, claims=claims, sources=sources, smaller=smaller, uses=uses)


def _claim(entry: Mapping[str, Any]) -> Claim:
    panels = tuple(
        Panel(**{**panel, "checks": tuple(panel.get("checks", ()))})
        for panel in entry.get("panels", ())
    )
    return Claim(**{**entry, "terms": tuple(entry.get("terms", ())), "panels": panels})


def together(findings: Collection[PanelFinding]) -> Finding | None:
    """Return the finding of a figure with panels of these; None if nothing was decided.

    Examples
    --------
    >>> from claimbook.registry import together
    >>> together(["confirmed", "data"]), together(["confirmed", "open"])
    ('data', 'partial')
    """
    if set(findings) <= {"open"}:
        return None
    found: set[Finding] = {"partial" if name == "open" else name for name in findings}
    order: tuple[Finding, ...] = ("false", "partial", "data", "corrected")
    return next((name for name in order if name in found), "confirmed")


def _panel_faults(entry: Mapping[str, Any]) -> Iterator[str]:
    """Say what is wrong with the panels of one entry."""
    id, panels = entry["id"], entry.get("panels", ())
    if panels and entry["kind"] not in ("figure", "table"):
        yield f"{id}: panels belong to figures and tables, not to a {entry['kind']}"
    names = [panel["panel"] for panel in panels]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{id}: two panels are called {name!r}"
    for panel in panels:
        for name in ("setting", "ours"):
            if _stray_tex(panel.get(name, ""), formula=False):
                yield f"{id}: {panel['panel']}: {name} has mathematics outside its dollars"
        if (panel["finding"] == "open") == bool(panel.get("checks")):
            yield (
                f"{id}: {panel['panel']}: an open panel has no checks, any other has some; "
                f"got {panel['finding']} with {len(panel.get('checks', ()))}"
            )
    found, stated = together([panel["finding"] for panel in panels]), entry.get("finding")
    if found and found != (stated or "confirmed"):
        yield f"{id}: by its panels the finding is {found}, got {stated or 'confirmed'}"


def _semantic_faults(data: dict[str, Any]) -> Iterator[str]:
    seen: set[str] = set()
    for entry in data["claim"]:
        id = entry["id"]
        if id in seen:
            yield f"{id}: occurs twice"
        seen.add(id)
        if not id.startswith(entry["source"] + "-"):
            yield f"{id}: must begin with its source, {entry['source']}-"
        for name in _TEXTS:
            if name in entry and _stray_tex(entry[name], formula=name in ("printed", "ours")):
                yield f"{id}: {name} has mathematics outside its dollars: {entry[name]!r}"
        finding = entry.get("finding", "confirmed")
        for name, findings in (("matters", ("corrected",)), ("settle", UNSETTLED)):
            if name in entry and finding not in findings:
                yield f"{id}: {name} belongs to {' and '.join(findings)} claims, not to {finding}"
        yield from _panel_faults(entry)
    chapters = {entry["chapter"] for entry in data["claim"]}
    for entry in data.get("smaller", ()):
        if entry["chapter"] not in chapters:
            yield f"smaller: no claim belongs to chapter {entry['chapter']!r}"
    for source, table in data.get("uses", {}).items():
        claimed = {
            entry["id"]: statement_of(entry["number"])
            for entry in data["claim"]
            if entry["source"] == source
        }
        if claimed:
            yield from _proof_faults(f"uses.{source}", table, claimed)
        else:
            known = ", ".join(dict.fromkeys(entry["source"] for entry in data["claim"]))
            yield f"uses.{source}: no claim belongs to this source; known are {known}"


def _proof_faults(
    where: str, table: Mapping[str, list[str]], claimed: Mapping[str, str]
) -> Iterator[str]:
    """Say what is wrong with the proofs of one source, given its statements by id of the claims."""
    known = {*claimed.values(), *table}
    cited = {claimed.get(name, name) for used in table.values() for name in used}
    for number, used in table.items():
        if statement_of(number) != number:
            yield f"{where}: {number!r} is a part; the statement is {statement_of(number)!r}"
        elif number not in claimed.values() and number not in cited:
            yield f"{where}: {number!r} has no claim, and no proof uses it{_hint(number, known)}"
        for name in used:
            target = claimed.get(name, name)
            if target == number:
                yield f"{where}: {number!r} uses itself"
            elif target not in known:
                near = _hint(name, {*known, *claimed})
                yield f"{where}: {number!r} uses {name!r}, which has neither claim nor proof{near}"
    graph = {
        number: {claimed.get(name, name) for name in used} - {number}
        for number, used in table.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = error.args[1]
        yield f"{where}: a circle, {' uses '.join(map(repr, reversed(circle)))}"


def _hint(name: str, known: set[str]) -> str:
    """Name what a mistyped number may mean."""
    near = get_close_matches(name, sorted(known - {name}), n=2, cutoff=0.8)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _stray_tex(text: str, *, formula: bool) -> bool:
    """Whether a text has TeX outside its mathematics; a formula may do without dollars."""
    parts = text.split("$")
    if formula and len(parts) == 1:
        return False
    return len(parts) % 2 == 0 or any("\\" in part for part in parts[::2])


def _locate(fault: jsonschema.ValidationError, data: dict[str, Any]) -> str:
    """Name the claim a fault belongs to, by id where it has one."""
    where = list(fault.absolute_path)
    if where[:1] == ["claim"] and len(where) > 1:
        index = int(where[1])
        entry = data["claim"][index]
        name = entry.get("id") if isinstance(entry, dict) else None
        field = ".".join(str(part) for part in where[2:])
        parts = [str(name or f"claim number {index + 1}"), field, fault.message]
    else:
        parts = [".".join(str(part) for part in where), fault.message]
    return ": ".join(part for part in parts if part)


@cache
def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of the registry (``"claims"``) or of the ledger (``"ledger"``)."""
    text = files("claimbook").joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def schema_faults(name: str, data: Any) -> list[jsonschema.ValidationError]:
    """Violations of a schema, in the order of the data."""
    validator = jsonschema.Draft202012Validator(schema(name))
    return sorted(validator.iter_errors(data), key=lambda fault: list(map(str, fault.path)))
