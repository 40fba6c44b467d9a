"""Mutation of the mathematics: does the ledger notice a wrong formula?

``mutations.toml`` lists errors a formula of the library could plausibly have: a sign, a
factor, an index, a term left out. Each is made in a private copy of the library, and the
statements of a chapter that its claim depends on are run against that copy. The claim
must be refused. Mutations marked neutral change nothing and must survive: they, and the
library as it is, show that the procedure can tell.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import local

import numpy as np
import slices

from claimbook.registry import Registry, load_registry
from claimbook.run.execute import read
from claimbook.run.stamps import reachable
from claimbook.slices import needed

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIST = HERE / "mutations.toml"
#: File with the numbers that checks have seen, in the folder of a bench.
SEEN = "seen.npz"
#: A mutation that makes a chapter run for longer has not been caught.
PATIENCE = 900.0


@dataclass(frozen=True)
class Mutation:
    """A wrong formula and the claim that must refuse it.

    Attributes
    ----------
    name : str
    claim : str
        Id in the registry.
    file : str
        Below ``lib``.
    old, new : str
        Text of the file, which occurs exactly once, and what replaces it.
    why : str
        How the error could come about.
    neutral : bool
        Whether it changes nothing, so that the claim must be recorded.
    """

    name: str
    claim: str
    file: str
    old: str
    new: str
    why: str
    neutral: bool = False

    def text(self, library: Path) -> str:
        """Text of the mutated file.

        Raises
        ------
        ValueError
            If the text to replace does not occur exactly once.
        """
        text = (library / self.file).read_text(encoding="utf8")
        count = text.count(self.old)
        if count != 1:
            raise ValueError(f"{self.name}: old must occur once in {self.file}, found {count}")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Result:
    """What became of one run: an outcome of :mod:`slices`, what was said, CPU seconds."""

    outcome: str
    said: str
    seconds: float


def load(path: Path = LIST) -> list[Mutation]:
    """Read a list of mutations."""
    entries = tomllib.loads(path.read_text(encoding="utf8"))["mutation"]
    return [Mutation(**entry) for entry in entries]


@cache
def _code(chapter: Path) -> tuple[str, ...]:
    """Code cells of a chapter but the one with the parameters."""
    return tuple(
        cell.source
        for cell in read(chapter).cells
        if cell.cell_type == "code" and "parameters" not in cell.metadata.get("tags", [])
    )


class Imports:
    """Which files of a library run which, directly or not."""

    def __init__(self, library: Path) -> None:
        self.reach: dict[Path, set[Path]] = {
            path.relative_to(library): {
                found.relative_to(library)
                for found in reachable(path.read_text(encoding="utf8"), library)
            }
            for path in library.rglob("*.py")
        }

    def above(self, file: str) -> set[Path]:
        """Return a file and all that import it, relative to the library."""
        return {path for path, found in self.reach.items() if Path(file) in {path, *found}}


class Bench:
    """A folder with a copy of the library, in which one mutation at a time is made.

    Numba keeps compiled functions under the path, the size and the time of change of their
    source file, and does not look at the functions they call. The copy therefore stays at
    one path with unchanged times, and the mutated file and all that import it are compiled
    anew for every mutation: their ``cache=True`` is turned off.
    """

    def __init__(self, folder: Path, library: Path, *, profile: str, seed: int) -> None:
        self.folder, self.library = folder, library
        self.parameters = {"profile": profile, "seed": seed}
        self.imports = Imports(library)

    def run(
        self,
        chapter: Path,
        claims: Sequence[str],
        mutation: Mutation | None = None,
        *,
        first: bool = False,
    ) -> dict[str, Result]:
        """Run what some claims of a chapter need, against the copy with one mutation or none.

        The run ends with the ``first`` claim that is refused, if that is asked for.
        """
        self._copy(mutation)
        task, result = self.folder / "task.json", self.folder / "result.json"
        for path in (result, self.folder / SEEN):
            path.unlink(missing_ok=True)
        task.write_text(
            json.dumps(
                {
                    "folder": str(chapter.parent),
                    "statements": needed(_code(chapter), claims),
                    "claims": list(claims),
                    "parameters": self.parameters,
                    "first": first,
                    "result": str(result),
                    "seen": str(self.folder / SEEN),
                }
            ),
            encoding="utf8",
        )
        before = os.times()
        said = self._process(task)
        after = os.times()
        seconds = sum(after[2:4]) - sum(before[2:4])
        if not result.is_file():
            return {claim: Result(slices.CRASHED, said, seconds) for claim in claims}
        found = json.loads(result.read_text(encoding="utf8"))
        return {claim: Result(*found[claim], seconds) for claim in claims}

    def seen(self) -> list[np.ndarray]:
        """Numbers that the checks of the last run have seen; none if it crashed."""
        if not (self.folder / SEEN).is_file():
            return []
        with np.load(self.folder / SEEN) as kept:
            return [kept[name] for name in kept.files]

    def _process(self, task: Path) -> str:
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.folder / "lib"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "NUMBA_CACHE_DIR": str(self.folder / "numba"),
            "JAX_COMPILATION_CACHE_DIR": os.environ.get(
                "JAX_COMPILATION_CACHE_DIR", str(self.folder / "jax")
            ),
            "MPLBACKEND": "agg",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        try:
            done = subprocess.run(
                [sys.executable, "-W", "ignore", str(HERE / "slices.py"), str(task)],
                env=environment,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"took more than {PATIENCE:.0f} s"
        return done.stderr.strip()[-2000:]

    def _copy(self, mutation: Mutation | None) -> None:
        copy = self.folder / "lib"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.library, copy, ignore=shutil.ignore_patterns("__pycache__"))
        if mutation is None:
            return
        (copy / mutation.file).write_text(mutation.text(self.library), encoding="utf8")
        for file in self.imports.above(mutation.file):
            text = (copy / file).read_text(encoding="utf8")
            if "cache=True" in text:
                (copy / file).write_text(text.replace("cache=True", "cache=False"), encoding="utf8")


def faults(mutations: Iterable[Mutation], registry: Registry, library: Path) -> list[str]:
    """Reasons why a list of mutations is not in order."""
    found = []
    names: Counter[str] = Counter()
    for mutation in mutations:
        names[mutation.name] += 1
        if mutation.claim not in registry.claims:
            found.append(f"{mutation.name}: no claim {mutation.claim}")
        else:
            chapter = registry.path.parent / f"{registry[mutation.claim].chapter}.md"
            try:
                needed(_code(chapter), [mutation.claim])
            except ValueError as error:
                found.append(f"{mutation.name}: {error}")
        try:
            changed = mutation.text(library)
        except (ValueError, OSError) as error:
            found.append(str(error))
            continue
        same = ast.dump(ast.parse(changed)) == ast.dump(
            ast.parse((library / mutation.file).read_text(encoding="utf8"))
        )
        if same and not mutation.neutral:
            found.append(f"{mutation.name}: the mutated file means the same")
    found += [f"{name}: occurs {count} times" for name, count in names.items() if count > 1]
    return found


def judge(
    mutations: Sequence[Mutation],
    *,
    folder: Path,
    root: Path = ROOT,
    profile: str = "quick",
    seed: int = 2024,
    workers: int = 1,
) -> tuple[dict[str, Result], dict[Mutation, Result]]:
    """Run mutations, and for every claim they concern the library as it is.

    Returns
    -------
    controls : dict
        Claim to its result without a mutation.
    results : dict
        Mutation to its result.
    """
    registry = load_registry(root / "book" / "claims.toml")
    library = root / "lib"
    chapters: dict[str, list[Mutation]] = defaultdict(list)
    for mutation in mutations:
        chapters[registry[mutation.claim].chapter].append(mutation)
    own = local()
    benches = iter(range(workers))

    def bench() -> Bench:
        if not hasattr(own, "bench"):
            place = folder / f"bench-{next(benches)}"
            place.mkdir(parents=True, exist_ok=True)
            own.bench = Bench(place.resolve(), library, profile=profile, seed=seed)
        return own.bench

    def one(name: str, todo: list[Mutation]) -> tuple[dict[str, Result], dict[Mutation, Result]]:
        chapter = root / "book" / f"{name}.md"
        claims = sorted({mutation.claim for mutation in todo})
        controls = bench().run(chapter, claims)
        for claim, result in controls.items():
            if result.outcome != slices.SURVIVED:
                _print("as it is", claim, result)
        results = {}
        for mutation in todo:
            try:
                results[mutation] = bench().run(chapter, [mutation.claim], mutation)[mutation.claim]
            except ValueError as error:  # there is nothing to mutate, or no such claim
                results[mutation] = Result(slices.CRASHED, str(error), 0.0)
            _print(mutation.name, mutation.claim, results[mutation])
        return controls, results

    controls: dict[str, Result] = {}
    results: dict[Mutation, Result] = {}
    with ThreadPoolExecutor(workers) as pool:
        for some, others in pool.map(one, chapters.keys(), chapters.values()):
            controls |= some
            results |= others
    return controls, results


_CHECK = re.compile(r"(check failed|broken check)[: ]+(.*)")


def _print(name: str, claim: str, result: Result) -> None:
    match = _CHECK.search(result.said)
    said = match.group(0) if match else result.said.strip().replace("\n", " ")[-200:]
    print(
        f"{result.outcome:9s}{name:34s}{claim:24s}{result.seconds:6.1f} s  {said[:110]}", flush=True
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the list, print a table and the score (command line)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="mutations to run (default: all)")
    parser.add_argument("--list", type=Path, default=LIST)
    parser.add_argument("--build", type=Path, default=ROOT / "_build" / "mutation")
    parser.add_argument("--profile", choices=("quick", "paper"), default="quick")
    parser.add_argument("--seed", type=int, default=2024)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args(arguments)
    chosen = [one for one in load(options.list) if not options.names or one.name in options.names]
    start = time.perf_counter()
    controls, results = judge(
        chosen,
        folder=options.build,
        profile=options.profile,
        seed=options.seed,
        workers=options.workers,
    )
    wrong = [claim for claim, result in controls.items() if result.outcome != slices.SURVIVED]
    real = {one: result for one, result in results.items() if not one.neutral}
    noticed = [one for one, result in real.items() if result.outcome == slices.CAUGHT]
    neutral = [one for one in results if one.neutral]
    passed = [one for one in neutral if results[one].outcome == slices.SURVIVED]
    print(
        f"mutation: {len(noticed)} of {len(real)} wrong formulas caught, "
        f"{len(passed)} of {len(neutral)} neutral changes passed, "
        f"{len(controls) - len(wrong)} of {len(controls)} claims pass without a mutation "
        f"({time.perf_counter() - start:.0f} s)"
    )
    return int(bool(wrong) or len(noticed) < len(real) or len(passed) < len(neutral))


if __name__ == "__main__":
    sys.exit(main())
