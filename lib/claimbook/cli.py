"""The command of a book: look up claims, and verify one by running its chapter.

Exit codes: 0 done, 1 the claim did not hold up, 2 wrong usage (also: not in a checkout).
"""

from __future__ import annotations

import json
import shutil
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Annotated, Any, NoReturn
from urllib.parse import urljoin

try:
    import typer
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text
except ModuleNotFoundError as error:
    raise SystemExit(f"error: the command needs the book's packages: {error}") from error

from claimbook import proofs, statements
from claimbook.collect import read
from claimbook.evidence import Evidence, show
from claimbook.pages import parts
from claimbook.registry import (
    FINDINGS,
    Claim,
    ClaimError,
    Registry,
    load_registry,
    schema_faults,
)
from claimbook.render import PANEL_WORDS, WORDS, excludes
from claimbook.statements import Statement
from claimbook.verdict import Record, faults

SEED = 2024  # of the book, as in the Makefile
app = typer.Typer(
    help="Claims of the sources, and the verdicts on them.",
    epilog="Exit codes: 0 done, 1 the claim did not hold up, 2 wrong usage or no checkout.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
_STYLES: dict[str, str] = dict(
    zip(FINDINGS, ("green", "yellow", "red", "cyan", "white"), strict=True)
)


class Profile(StrEnum):
    """Sizes of the chapters: minutes, or those of the sources."""

    quick = "quick"
    paper = "paper"


class Verdict(StrEnum):
    """Verdicts of the ledger."""

    confirmed = "confirmed"
    corrected = "corrected"
    false = "false"
    partial = "partial"
    data = "data"


def _console() -> Console:
    """Return standard output, as it is now; tables are not folded in pipes."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=200)


def _stop(message: str, code: int) -> NoReturn:
    Console(stderr=True, highlight=False).print(Text(f"error: {message}"), soft_wrap=True)
    raise typer.Exit(code)


def _registry() -> Registry:
    try:
        return load_registry()
    except ClaimError as error:
        _stop(str(error), 2)


def _claim(registry: Registry, id: str) -> Claim:
    """Return a claim, or stop and say which ids belong to what was given instead of one."""
    try:
        return registry[id]
    except ClaimError as error:
        hits = statements.search(id, _statements(registry))
        found = [claim for hit in hits for claim in hit.claims]
        if not found:
            _stop(str(error), 2)
        lines = [f"  {claim.id}  {claim.source}, {claim.number}" for claim in found]
        _stop("\n".join([f"{id!r} is not the id of a claim; it finds", *lines]), 2)


def _statements(registry: Registry) -> dict[statements.Reference, Statement]:
    """Return the index of statements of the checkout."""
    root = _root(registry)
    return statements.index(registry, library=root / "lib", tests=root / "tests")


def _root(registry: Registry) -> Path:
    """Return the checkout: the folder that holds ``book``."""
    return registry.path.parent.parent


def _ledger(registry: Registry, profile: Profile | None) -> dict[str, Any] | None:
    """Return the ledger last built (of a profile), or None."""
    names = [profile.value] if profile else [item.value for item in Profile]
    paths = [_root(registry) / "_build" / name / "ledger.json" for name in names]
    built = [path for path in paths if path.is_file()]
    if not built:
        return None
    path = max(built, key=lambda item: item.stat().st_mtime)
    try:
        ledger: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        _stop(f"cannot read {path}: {error}", 2)
    if schema_faults("ledger", ledger):
        _stop(f"{path} is not a ledger of this version: build it again with make ledger", 2)
    return ledger


def _version(wanted: bool) -> None:
    if wanted:
        try:
            typer.echo(version(_distribution()))
        except PackageNotFoundError:
            typer.echo("not installed")
        raise typer.Exit


def _distribution() -> str:
    """Name under which this package is installed, with its book or alone."""
    return packages_distributions().get("claimbook", ["claimbook"])[0]


@app.callback()
def callback(
    version_: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Take the options that belong to no command."""


@app.command()
def claims(
    source: Annotated[str | None, typer.Option(help="Key of a source, such as BGHJ.")] = None,
    verdict: Annotated[Verdict | None, typer.Option(help="Only this verdict.")] = None,
    chapter: Annotated[
        str | None, typer.Option(help="Only this chapter, or the chapters of this folder.")
    ] = None,
    profile: Annotated[
        Profile | None, typer.Option(help="Ledger to read; default: the one built last.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the claims with their verdicts.

    A claim that no built ledger records yet shows the registry's finding in parentheses.
    """
    registry = _registry()
    for name, value, known in (
        ("--source", source, {claim.source for claim in registry}),
        ("--chapter", chapter, _chapters(registry)),
    ):
        if value is not None and value.rstrip("/") not in known:
            _stop(f"{name} must be one of {', '.join(sorted(known))}, got {value!r}", 2)
    ledger = _ledger(registry, profile)
    recorded = {entry["id"]: entry for entry in ledger["claims"]} if ledger else {}
    chosen = [
        claim
        for claim in registry
        if (source is None or claim.source == source)
        and (verdict is None or _verdict(claim, recorded) == verdict.value)
        and (chapter is None or _inside(claim.chapter, chapter.rstrip("/")))
    ]
    if as_json:
        rows = [
            {
                **{name: getattr(claim, name) for name in ("id", "source", "number", "kind")},
                "statement": claim.statement,
                "chapter": claim.chapter,
                "verdict": _verdict(claim, recorded),
                "recorded": claim.id in recorded,
            }
            for claim in chosen
        ]
        typer.echo(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False)
    for name in ("claim", "number", "verdict", "chapter"):
        table.add_column(name, overflow="fold")
    for claim in chosen:
        word = _verdict(claim, recorded)
        text = word if claim.id in recorded else f"({word})"
        table.add_row(claim.id, claim.number, Text(text, style=_STYLES[word]), claim.chapter)
    console = _console()
    console.print(table)
    if ledger:
        state = f"profile {ledger['profile']}, seed {ledger['seed']}, {ledger['commit'][:12]}"
    else:
        state = "no ledger built yet (make ledger); findings of the registry in parentheses"
    console.print(f"{len(chosen)} of {len(registry)} claims; {state}", soft_wrap=True)


def _chapters(registry: Registry) -> set[str]:
    """Chapters and the folders they are in."""
    names = {claim.chapter for claim in registry}
    return names | {name.rsplit("/", 1)[0] for name in names if "/" in name}


def _inside(chapter: str, name: str) -> bool:
    return chapter == name or chapter.startswith(f"{name}/")


def _verdict(claim: Claim, recorded: dict[str, Any]) -> str:
    return str(recorded[claim.id]["verdict"]) if claim.id in recorded else claim.finding


@app.command("show")
def show_(
    id: Annotated[
        str, typer.Argument(metavar="ID", help="Id of the claim, such as BGHJ-T2.3-hessian.")
    ],
    profile: Annotated[
        Profile | None, typer.Option(help="Ledger to read; default: the one built last.")
    ] = None,
) -> None:
    """Show one claim and, if a ledger is built, its evidence."""
    registry = _registry()
    claim = _claim(registry, id)
    console = _console()
    _print_claim(console, claim)
    ledger = _ledger(registry, profile)
    entry = next((item for item in ledger["claims"] if item["id"] == id), None) if ledger else None
    if entry is None:
        console.print(f"declared {claim.finding}; not in a built ledger", soft_wrap=True)
        return
    evidence = [Evidence.from_json(item) for item in entry["evidence"]]
    _print_verdict(console, entry["verdict"], evidence)


@app.command()
def find(
    query: Annotated[
        list[str],
        typer.Argument(metavar="QUERY", help="A number, such as BGJ Theorem 2.2, or words."),
    ],
    profile: Annotated[
        Profile | None, typer.Option(help="Ledger to read; default: the one built last.")
    ] = None,
) -> None:
    """Find a statement: its verdicts, chapter, cells, cards, functions, tests, and its proof."""
    registry = _registry()
    root = _root(registry)
    hits = statements.search(" ".join(query), _statements(registry))
    if not hits:
        _stop(f"nothing is found for {' '.join(query)!r}; numbers are written as in the source", 1)
    ledger = _ledger(registry, profile)
    recorded = {entry["id"]: entry for entry in ledger["claims"]} if ledger else {}
    console = _console()
    for hit in hits:
        _print_statement(console, hit, recorded, root)
        _print_proof(console, hit, registry, recorded)


def _print_proof(
    console: Console, statement: Statement, registry: Registry, recorded: dict[str, Any]
) -> None:
    """Print what the proof of a statement uses, and what uses the statement."""
    source, number = statement.reference
    claims = (
        {"id": claim.id, "number": claim.number, "verdict": _verdict(claim, recorded)}
        for claim in registry
        if claim.source == source
    )
    nodes = proofs.graph(source, claims, registry.uses.get(source, {}))
    if number not in nodes:
        return
    node = nodes[number]
    for name, numbers in (("rests on", list(node.uses)), ("used by", list(node.used_by))):
        for other in numbers:
            verdict = nodes[other].verdict
            word = WORDS[verdict] if verdict else "not among the claims"
            console.print(Text(f"    {name:8}  {other}: {word}"), soft_wrap=True)


def _print_statement(
    console: Console, statement: Statement, recorded: dict[str, Any], root: Path
) -> None:
    console.print(Text(" ".join(statement.reference), style="bold"))
    for claim in statement.claims:
        word = _verdict(claim, recorded)
        console.print(
            Text.assemble(f"  {claim.id}  ", (WORDS[word], _STYLES[word])), soft_wrap=True
        )
        console.print(Text(f"    {' '.join(claim.statement.split())}"), soft_wrap=True)
        console.print(Text(f"    chapter   {_cell(claim, root)}"), soft_wrap=True)
        for address in _card(claim, root):
            console.print(Text(f"    card      {address}"), soft_wrap=True)
    for name, places in (("function", statement.functions), ("test", statement.tests)):
        for place in places:
            where = f"{place.path.relative_to(root)}:{place.line}"
            console.print(Text(f"    {name:8}  {place.name}  {where}"), soft_wrap=True)


def _cell(claim: Claim, root: Path) -> str:
    """Say where the chapter records a claim: file, line and number of the code cell."""
    place = statements.cell(claim, root / "book")
    path = place.path.relative_to(root)
    return f"{path}:{place.line}, code cell {place.number}" if place.line else str(path)


def _card(claim: Claim, root: Path) -> list[str]:
    """Say where the card of a claim is: in the site that was built, and where it is published."""
    import yaml

    page = f"book/{claim.chapter}.html"
    place = f"#{parts.anchor('claim', claim.id)}"
    sites = [root / "_build" / item.value / "html" for item in Profile]
    built = [site for site in sites if (site / page).is_file()]
    site = f"{built[0].relative_to(root).as_posix()}/" if built else ""
    config = root / "_config.yml"
    content = yaml.safe_load(config.read_text(encoding="utf-8")) if config.is_file() else {}
    base = content.get("html", {}).get("baseurl", "")
    return [f"{site}{page}{place}", *([urljoin(base, page) + place] if base else [])]


@app.command()
def verify(
    id: Annotated[
        str, typer.Argument(metavar="ID", help="Id of the claim, such as BGHJ-T2.3-hessian.")
    ],
    profile: Annotated[Profile, typer.Option(help="Sizes to run.")] = Profile.quick,
    seed: Annotated[int, typer.Option(min=0, help="Root seed of the chapter.")] = SEED,
) -> None:
    """Run the chapter of one claim and print the verdict; exit code 0 if it holds."""
    registry = _registry()
    claim = _claim(registry, id)
    root = _root(registry)
    source = registry.path.parent / f"{claim.chapter}.md"
    if not source.is_file():
        _stop(f"{id} belongs to chapter {claim.chapter}, and there is no {source}", 2)
    folder = root / "_build" / "verify" / f"{profile.value}-{seed}"
    target = folder / f"{claim.chapter}.ipynb"
    shutil.rmtree(folder, ignore_errors=True)
    console = _console()
    _print_claim(console, claim)
    try:
        _execute(source, target, profile.value, seed, root)
    except ImportError as error:
        _stop(f"running a chapter needs the book's packages (pip install '.[book]'): {error}", 2)
    except Exception as error:
        _stop(f"{id}: chapter {claim.chapter} failed:\n{error}", 1)
    record, found = _judge(registry, claim, folder, profile.value, seed)
    if record is None:
        _stop(f"{id}: " + ("\n".join(found) or "the chapter recorded no verdict"), 1)
    _print_verdict(console, record.verdict if not found else "failed", record.evidence)
    if found:
        _stop(f"{id}: " + "\n".join(found), 1)
    console.print(f"{record.seconds:.1f} s; executed chapter: {target}", soft_wrap=True)


def _execute(source: Path, target: Path, profile: str, seed: int, root: Path) -> None:
    """Run a chapter; what that needs is imported only now."""
    from claimbook.run.execute import execute

    execute(
        source,
        target,
        profile=profile,
        seed=seed,
        build=root / "_build",
        root=root / "lib",
        report=lambda line: typer.echo(line, err=True),
    )


def _judge(
    registry: Registry, claim: Claim, folder: Path, profile: str, seed: int
) -> tuple[Record | None, list[str]]:
    """Return what the executed chapter recorded on one claim, and what is wrong with it."""
    reading = read(folder, registry, profile=profile, seed=seed)
    record = reading.records.get(claim.id)
    if record is None:
        return None, [line for line in reading.problems if claim.id in line]
    return record, faults(claim, record.evidence)


def _print_claim(console: Console, claim: Claim) -> None:
    console.print(Text.assemble((claim.id, "bold"), f"  {claim.source}, {claim.number}"))
    console.print(Text(" ".join(claim.statement.split())))
    for name in ("printed", "ours", "reason", "settle", "tested", "not_tested", "credit"):
        if getattr(claim, name):
            title = name.replace("_", " ")
            console.print(Text(f"{title}: {' '.join(getattr(claim, name).split())}"))
    for panel in claim.panels:
        here = panel.ours or "not run"
        console.print(Text(f"panel {panel.panel}: {PANEL_WORDS[panel.finding]}. {here}"))


def _print_verdict(
    console: Console, verdict: str, evidence: tuple[Evidence, ...] | list[Evidence]
) -> None:
    for item in evidence:
        console.print(Text(f"- {item.check}"))
        rows = [
            ("observed", f"{show(item.observed)} (expected {show(item.expected)})"),
            ("error", show(item.error) + (f" ({item.reason})" if item.reason else "")),
            ("decided by", f"{item.method or item.kind}; n = {item.n}"),
        ]
        if item.p_value is not None:
            rows.append(("p", f"{item.p_value:.3g}"))
        if item.sampling == "random":
            rows.append(("a true claim fails", f"with probability {item.false_alarm:.2g}"))
            rows.append(("a false one passes", f"with probability {item.false_pass:.2g}"))
        rows.append(("excludes", excludes(item)))
        control = item.control
        fate = "rejected" if control.rejected else "NOT rejected"
        printed = ", as printed" if control.printed else ""
        rows.append(
            (
                "control",
                f"{control.variant}{printed}: {show(control.observed)} "
                f"(expected {show(control.expected)}), {fate}",
            )
        )
        rows.append(("result", "passed" if item.passed else "FAILED"))
        for name, value in rows:
            console.print(Text(f"    {name}: {value}"))
    console.print(
        Text(WORDS.get(verdict, verdict).upper(), style=f"bold {_STYLES.get(verdict, 'red')}")
    )


def main() -> None:
    """Run the command."""
    app()


if __name__ == "__main__":
    main()
