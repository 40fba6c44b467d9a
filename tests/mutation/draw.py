"""Random mutations: of errors nobody chose, how many do the checks and the tests notice?

A change is drawn from all definitions of the library that chapters reach, as many from each room:
an operator exchanged, a sign dropped, a constant doubled, an exponent off by one half. The chapters
that reach it run against a copy of the library with the change, until a check notices: those that
name the changed function first, and the shortest first among equals. Then the unit tests of the
changed file run. A run that crashes is counted apart: no check has looked at a
number there. So is a statement that no chapter executes, although its definition is reached: it is
told by an error put in its place. And so is a change that moves no number, beyond rounding, of all
that checks are given and decided by in the chapters run: their verdicts do not depend on it.
Changes that change nothing are listed with the reason in ``equivalent.toml``. Formulas as printed
in a source are left out: they are controls, which a check refuses also with another error, and
their tests hold them against the source. So are conditions and limits that only refuse bad input,
which no chapter has, tolerances of solvers, and signs of infinities. Changes that have run on the
same library and chapters are not run again.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import slices
from mutate import PATIENCE, ROOT, SEEN, Bench, Mutation
from reach import Reach, definitions

from claimbook.registry import Registry, load_registry

EQUIVALENT = Path(__file__).with_name("equivalent.toml")
#: Rooms without mathematics of their own.
OUTSIDE = {
    "_cluster", "_validate", "conformance", "data", "figures", "interactive", "parallel",
}  # fmt: skip
#: Chapters in which a change moves a number and is not noticed, before it counts as missed.
MOST = 3
#: Chapters that execute a change which moves no number, before it counts as still.
MOST_STILL = 6
#: Outcomes of a change in a statement that no chapter executes, and of one that chapters execute
#: and that moves no number that their checks see.
IDLE, STILL = "idle", "still"
_EXCHANGED = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}
_SIGN = {ast.Add: r"\+", ast.Sub: "-", ast.Mult: r"\*", ast.Div: "/"}
_INFINITE = {"np.inf", "math.inf"}
#: Arguments that name axes, shapes and orders, or tolerances of solvers, not quantities.
_STRUCTURE = {
    "axis", "axes", "ndmin", "ddof", "dtype", "order", "ndim", "shape", "size",
    "atol", "rtol", "tol", "xtol", "xatol", "ftol", "fatol", "epsabs", "epsrel",
}  # fmt: skip
#: Arguments that say which input is refused.
_LIMITS = {"least", "most"}


@dataclass(frozen=True)
class Change:
    """A change of one place of a file.

    Attributes
    ----------
    file : str
        Below ``lib``.
    line : int
    kind : {"operator", "sign", "constant", "exponent"}
    start, end : int
        Place in the text of the file.
    new : str
        What replaces it.
    was, becomes : str
        The line before and after.
    definition : str
        The function or class it stands in.
    chapters : tuple of str
        Chapters that reach it.
    """

    file: str
    line: int
    kind: str
    start: int
    end: int
    new: str
    was: str
    becomes: str
    definition: str
    chapters: tuple[str, ...]

    @property
    def room(self) -> str:
        """Name of the room: a folder of the library, or a file that stands alone."""
        return _room(self.file)

    def mutation(self, library: Path) -> Mutation:
        """Return the change as a replacement of the whole file."""
        text = (library / self.file).read_text(encoding="utf8")
        changed = text[: self.start] + self.new + text[self.end :]
        return Mutation(f"{self.file}:{self.line}", "", self.file, text, changed, self.kind)

    def stopped(self, library: Path) -> Mutation:
        """Return the library with an error in front of the statement that would be changed."""
        text = (library / self.file).read_text(encoding="utf8")
        lines = text.splitlines(keepends=True)
        around = [
            node
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.stmt)
            and node.lineno <= self.line <= (node.end_lineno or node.lineno)
            and not lines[node.lineno - 1].lstrip().startswith("elif")
        ]
        statement = max(around, key=lambda node: (node.lineno, node.col_offset))
        place = statement.lineno - 1
        lines.insert(place, f"{' ' * statement.col_offset}raise RuntimeError('executed')\n")
        return Mutation(f"{self.file}:{self.line}", "", self.file, text, "".join(lines), self.kind)


def _room(file: str) -> str:
    """Room of a file below ``lib``; those of single chapters are named by their part."""
    package, name = Path(file).with_suffix("").parts[:2]
    return name if package == "traindyn" else f"{package}.{name}"


def changes(reach: Reach, library: Path) -> Iterator[Change]:
    """Yield all changes of lines that some chapter reaches."""
    for name, module in reach.modules.items():
        file = module.path.relative_to(library).as_posix()
        if file.startswith("claimbook/") or module.path.stem == "printed" or _room(file) in OUTSIDE:
            continue
        text = module.path.read_text(encoding="utf8")
        starts = np.cumsum([0, *(len(line.encode()) for line in text.splitlines(keepends=True))])
        data = text.encode()
        for own, node in definitions(module.tree).items():
            chapters = tuple(sorted(reach.chapters.get((name, own), ())))
            if not chapters or not isinstance(node, ast.FunctionDef | ast.ClassDef):
                continue
            for kind, (start, end), new in _places(node, data, starts):
                a, b = len(data[:start].decode()), len(data[:end].decode())
                line = text[:a].count("\n")
                head = text.rfind("\n", 0, a) + 1
                tail = text.find("\n", b)
                yield Change(
                    file,
                    line + 1,
                    kind,
                    a,
                    b,
                    new,
                    " ".join(text[head:tail].split()),
                    " ".join((text[head:a] + new + text[b:tail]).split()),
                    own,
                    chapters,
                )


def _places(
    root: ast.stmt, data: bytes, starts: np.ndarray
) -> Iterator[tuple[str, tuple[int, int], str]]:
    """Yield kind, place in bytes and replacement of each change inside a definition."""

    def first(node: ast.expr) -> int:
        return int(starts[node.lineno - 1]) + node.col_offset

    def last(node: ast.expr) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return int(starts[node.end_lineno - 1]) + node.end_col_offset

    for node in _formulas(root):
        if isinstance(node, ast.BinOp) and type(node.op) in _EXCHANGED:
            gap = data[last(node.left) : first(node.right)].decode()
            found = re.search(_SIGN[type(node.op)], gap)
            if found:
                place = last(node.left) + found.start()
                yield "operator", (place, place + 1), _EXCHANGED[type(node.op)]
            for part in (node.left, node.right):
                if _number(part):
                    new = f"({2 * part.value})"  # type: ignore[attr-defined]
                    yield "constant", (first(part), last(part)), new
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and _number(node.right):
            new = f"{node.right.value - 0.5}"  # type: ignore[attr-defined]
            yield "exponent", (first(node.right), last(node.right)), new
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            if not _number(node.operand):
                yield "sign", (first(node), first(node) + 1), ""


def _number(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
        and node.value != 0
    )


def _formulas(root: ast.AST) -> Iterator[ast.AST]:
    """Walk through formulas.

    Messages, types, indices, shapes, ranges of loops, tolerances of solvers, and conditions and
    limits of refusals are none.
    """
    for node in ast.iter_child_nodes(root):
        if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.arguments):
            continue
        if isinstance(node, ast.If) and all(isinstance(one, ast.Raise) for one in node.body):
            yield from _formulas(ast.Module(node.orelse, []))
            continue
        if isinstance(node, ast.UnaryOp) and ast.unparse(node.operand) in _INFINITE:
            continue
        if isinstance(node, ast.Subscript):
            yield from _formulas(ast.Expr(node.value))
            continue
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            yield from _formulas(ast.Expr(node.value))
            continue
        if isinstance(node, ast.keyword) and node.arg in _STRUCTURE:
            continue
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("_validate."):
            kept = [one for one in node.keywords if one.arg not in _LIMITS]
            yield from _formulas(ast.Tuple([*node.args, *(one.value for one in kept)], ast.Load()))
            continue
        if isinstance(node, ast.Call) and _called(node) in {"range", "reshape", "empty", "zeros"}:
            continue
        yield node
        yield from _formulas(node)


def _called(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def draw(all_changes: list[Change], number: int, *, rng: np.random.Generator) -> list[Change]:
    """Draw changes, as many from each room, in turn, and in a room as many of each kind."""
    rooms: dict[str, dict[str, list[Change]]] = defaultdict(lambda: defaultdict(list))
    for change in all_changes:
        rooms[change.room][change.kind].append(change)
    chosen: list[Change] = []
    names = sorted(rooms)
    while len(chosen) < number and names:
        for name in list(names):
            kinds = sorted(kind for kind, left in rooms[name].items() if left)
            if not kinds:
                names.remove(name)
            elif len(chosen) < number:
                left = rooms[name][kinds[rng.integers(len(kinds))]]
                chosen.append(left.pop(rng.integers(len(left))))
    return chosen


def put_to_checks(
    bench: Bench, change: Change, registry: Registry, seconds: dict[str, float]
) -> tuple[str, str]:
    """Run chapters against the library with a change until a check notices it.

    Returns
    -------
    outcome, said : str
    """
    worst, said, moved, still = IDLE, "", 0, 0
    book = registry.path.parent

    def order(chapter: str) -> tuple[bool, float]:
        text = (book / f"{chapter}.md").read_text(encoding="utf8")
        named = re.search(rf"\b{re.escape(change.definition)}\b", text)
        return named is None, seconds.get(chapter, 0.0)

    for name in sorted(change.chapters, key=order):
        claims = [claim.id for claim in registry.of_chapter(name)]
        chapter = book / f"{name}.md"

        def run(mutation: Mutation, chapter: Path = chapter, claims: list[str] = claims) -> dict:
            return bench.run(chapter, claims, mutation, first=True)

        stopped = run(change.stopped(bench.library)).values()
        if all(one.outcome == slices.SURVIVED for one in stopped):
            continue
        results = run(change.mutation(bench.library))
        caught = [claim for claim, one in results.items() if one.outcome == slices.CAUGHT]
        if caught:
            return slices.CAUGHT, f"{name}: {', '.join(caught)}"
        crashed = [one.said for one in results.values() if one.outcome == slices.CRASHED]
        if crashed:
            worst, said, moved = slices.CRASHED, f"{name}: {crashed[0][-160:]}", moved + 1
        elif slices.same(bench.seen(), as_it_is(bench, chapter, claims)):
            worst, still = (STILL if worst == IDLE else worst), still + 1
        else:
            worst, moved = (
                (slices.CRASHED if worst == slices.CRASHED else slices.SURVIVED),
                moved + 1,
            )
            said = said or f"{name}: moved"
        if moved == MOST or (still >= MOST_STILL and not moved):
            break
    return worst, said


def as_it_is(bench: Bench, chapter: Path, claims: list[str]) -> list[np.ndarray]:
    """Numbers that the checks of a chapter see with the library as it is; run once per chapter."""
    kept = bench.folder / "as-it-is" / f"{chapter.parent.name}-{chapter.stem}.npz"
    if not kept.is_file():
        for claim, found in bench.run(chapter, claims).items():
            if found.outcome != slices.SURVIVED:
                raise RuntimeError(f"{claim} without a change: {found.outcome}, {found.said}")
        kept.parent.mkdir(exist_ok=True)
        shutil.copy(bench.folder / SEEN, kept)
    with np.load(kept) as numbers:
        return [numbers[name] for name in numbers.files]


def put_to_tests(bench: Bench, change: Change) -> str:
    """Run doctests of the changed file, tests that name it or its room: caught, or survived."""
    file = Path(change.file)
    folder = file.parent.relative_to("traindyn") if file.parts[0] == "traindyn" else file.parent
    mirrored = ROOT / "tests" / folder / f"test_{file.stem.lstrip('_')}.py"
    module = ".".join(file.with_suffix("").parts)
    naming = [
        path
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if re.search(rf"\b{re.escape(module)}\b", path.read_text(encoding="utf8"))
    ]
    places = [bench.folder / "lib" / file, mirrored, *naming]
    if folder != Path():
        places.append(ROOT / "tests" / Path(*folder.parts[:2]))
    for place in places:
        if place.exists() and not _passes(bench, place):
            return slices.CAUGHT
    return slices.SURVIVED


def _passes(bench: Bench, tests: Path) -> bool:
    """Whether some tests pass with the changed copy of the library."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", str(tests)]
    environment = {**os.environ, "PYTHONPATH": str(bench.folder / "lib")}
    environment["NUMBA_CACHE_DIR"] = str(bench.folder / "numba-tests")
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _digest(root: Path) -> str:
    """Digest of the library, of the chapters and claims, and of this tool."""
    files = [
        *(root / "lib").rglob("*.py"),
        *(root / "book").rglob("*.md"),
        *(root / "book").glob("claims.toml"),
        *(root / "tests" / "mutation").glob("*.py"),
    ]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(files))).hexdigest()[:16]


def table(rows: list[dict[str, object]]) -> str:
    """Count outcomes by room."""
    heads = (
        "room", "drawn", "equivalent", "not executed", "moves nothing",
        "by a check", "crashed", "missed", "by a test",
    )  # fmt: skip
    lines = ["".join(f"{head:>15s}" for head in heads)]
    rooms = sorted({str(row["room"]) for row in rows})
    for room in [*rooms, "all"]:
        mine = [row for row in rows if room in ("all", row["room"])]
        checks = Counter(row["checks"] for row in mine)
        tests = Counter(row["tests"] for row in mine)
        numbers = (
            len(mine),
            checks["equivalent"],
            checks[IDLE],
            checks[STILL],
            checks[slices.CAUGHT],
            checks[slices.CRASHED],
            checks[slices.SURVIVED],
            tests[slices.CAUGHT],
        )
        lines.append(f"{room:>15s}" + "".join(f"{number:15d}" for number in numbers))
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Draw changes, run them and print a table by room (command line)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=40)
    parser.add_argument("--draw", type=int, default=1, help="seed of the draw")
    parser.add_argument("--build", type=Path, default=ROOT / "_build" / "mutation")
    parser.add_argument("--ledger", type=Path, default=ROOT / "_build" / "quick" / "ledger.json")
    parser.add_argument("--seed", type=int, default=2024)
    options = parser.parse_args(arguments)
    registry = load_registry(ROOT / "book" / "claims.toml")
    library = ROOT / "lib"
    found = list(changes(Reach(ROOT / "lib", ROOT / "book"), library))
    chosen = draw(found, options.number, rng=np.random.default_rng(options.draw))
    print(f"mutation: {len(chosen)} of {len(found)} possible changes", flush=True)
    same = {
        (entry["file"], entry["was"], entry["becomes"])
        for entry in tomllib.loads(EQUIVALENT.read_text(encoding="utf8")).get("change", [])
    }
    seconds = {}
    if options.ledger.is_file():
        entries = json.loads(options.ledger.read_text(encoding="utf8"))["chapters"]
        seconds = {entry["chapter"]: entry["seconds"] for entry in entries}
    place = options.build / "bench-draw"
    place.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(place / "as-it-is", ignore_errors=True)
    bench = Bench(place.resolve(), library, profile="quick", seed=options.seed)
    record = options.build / "draw.json"
    before = json.loads(record.read_text(encoding="utf8")) if record.is_file() else []
    state = _digest(ROOT)
    known = {
        (row["file"], row["was"], row["becomes"]): row for row in before if row["state"] == state
    }
    rows: list[dict[str, object]] = []
    for change in chosen:
        row: dict[str, object] = {**asdict(change), "room": change.room, "said": "", "state": state}
        if (change.file, change.was, change.becomes) in known:
            row |= known[change.file, change.was, change.becomes]
        elif (change.file, change.was, change.becomes) in same:
            row |= {"checks": "equivalent", "tests": "equivalent"}
        else:
            row["checks"], row["said"] = put_to_checks(bench, change, registry, seconds)
            row["tests"] = put_to_tests(bench, change)
        rows.append(row)
        print(f"{row['checks']:>10} {row['tests']:>10} {change.file}:{change.line} {change.kind}")
        print(f"{'':22}{change.was}\n{'':22}{change.becomes}\n{'':22}{row['said']}", flush=True)
        record.write_text(json.dumps(rows, indent=1), encoding="utf8")
    print(table(rows))
    counted = [row for row in rows if row["checks"] in (slices.CAUGHT, slices.SURVIVED)]
    noticed = sum(row["checks"] == slices.CAUGHT for row in counted)
    print(f"mutation: checks notice {noticed} of {len(counted)} that move a number")
    return 0


if __name__ == "__main__":
    sys.exit(main())
