"""The list of wrong formulas is in order, and the ledger refuses some of them.

`make mutation` runs the whole list; here are the cheapest.
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import mutate
import numpy as np
import pytest
import slices
from mutate import Mutation

from claimbook.registry import Registry, load_registry

LIBRARY = mutate.ROOT / "lib"
CHEAP = ("form-variance", "removal-bound", "neutral-resolvent")


@pytest.fixture(scope="module")
def mutations() -> list[Mutation]:
    """Read the list."""
    return mutate.load()


@pytest.fixture(scope="module")
def registry() -> Registry:
    """Read the claims."""
    return load_registry(mutate.ROOT / "book" / "claims.toml")


@pytest.mark.nightly
def test_every_mutation_can_be_made_and_belongs_to_a_claim(
    mutations: list[Mutation], registry: Registry
) -> None:
    """Otherwise a formula that was rewritten would drop out of the list in silence."""
    assert mutate.faults(mutations, registry, LIBRARY) == []
    # Controls: text that is not there or stands there twice, no change, no such claim.
    good = mutations[0]
    bad = [
        Mutation("absent", good.claim, good.file, "no such formula", "", "x"),
        Mutation("twice", good.claim, good.file, "import", "", "x"),
        Mutation("idle", good.claim, good.file, good.old, good.old + "  # same", "x"),
        Mutation("unknown", "OWN-none", good.file, good.old, good.new, "x"),
    ]
    found = mutate.faults(bad, registry, LIBRARY)
    assert [fault.split(":")[0] for fault in found] == [one.name for one in bad]


def test_the_list_covers_all_sources_and_enough_claims(
    mutations: list[Mutation], registry: Registry
) -> None:
    """No source and no room is spared."""
    real = [one for one in mutations if not one.neutral]
    claims = {one.claim for one in real}
    sources = Counter(registry[claim].source for claim in claims)
    assert len(real) >= 48 and len(claims) >= 40
    assert set(sources) == set(registry.sources) and min(sources.values()) >= 7
    assert len(mutations) - len(real) >= 2
    assert len({Path(one.file).parts[:2] for one in real}) >= 9


@pytest.mark.nightly
def test_the_ledger_refuses_wrong_formulas_and_lets_neutral_changes_pass(
    mutations: list[Mutation], tmp_path: Path
) -> None:
    """From the copy of the library to the claim's verdict."""
    chosen = [one for one in mutations if one.name in CHEAP]
    assert len(chosen) == len(CHEAP)
    controls, results = mutate.judge(chosen, folder=tmp_path)
    assert {result.outcome for result in controls.values()} == {slices.SURVIVED}
    for mutation, result in results.items():
        wanted = slices.SURVIVED if mutation.neutral else slices.CAUGHT
        assert result.outcome == wanted, (mutation.name, result.said)


def test_what_calls_a_mutated_function_is_compiled_anew(tmp_path: Path) -> None:
    """Numba does not look at the functions that a compiled one calls."""
    bench = mutate.Bench(tmp_path, LIBRARY, profile="quick", seed=1)
    mutation = Mutation(
        "x", "", "traindyn/kernels/arc_cosine.py", "sine = math.sqrt(", "sine = 2 * (", "x"
    )
    bench._copy(mutation)
    copy = tmp_path / "lib"
    kept = {
        path.relative_to(copy).as_posix()
        for path in copy.rglob("*.py")
        if "cache=True" in path.read_text(encoding="utf8")
    }
    assert kept.isdisjoint({"traindyn/kernels/arc_cosine.py", "traindyn/kernels/dual.py"})
    # A file that does not reach the mutated one keeps its compiled functions.
    assert "traindyn/catapults/maps.py" in kept


def test_the_numbers_that_checks_see_are_compared_up_to_rounding(
    tmp_path: Path,
) -> None:
    """A tolerance, an element that is not the worst, the control: each of them counts."""
    cell = (
        "import numpy as np\nfrom claimbook import Control, follows_law, identity\n"
        "identity('x', observed=[1.0, 2.0], expected=[1.0, {second}], tolerance={tolerance},\n"
        "         reason='r', control=Control('c', expected=[{control}, 2.0]))\n"
        "follows_law('y', samples=np.linspace(0.001, 0.999, 500), false_alarm=1e-6,\n"
        "            cdf=lambda x: np.clip(x, 0, 1) ** {power},\n"
        "            control=Control('c', cdf=lambda x: np.clip(x, 0, 1) ** 3))\n"
    )
    seen = {}
    for name, change in {
        "as it is": {}, "second": {"second": 2.01}, "tolerance": {"tolerance": 0.2},
        "control": {"control": 4.0}, "law": {"power": 1.01},
        "rounding": {"tolerance": 0.1 + 1e-12},
    }.items():  # fmt: skip
        text = cell.format(
            **({"second": 2.0, "tolerance": 0.1, "control": 3.0, "power": 1} | change)
        )
        task = tmp_path / "task.json"
        names = {key: str(tmp_path / key) for key in ("folder", "result")}
        (tmp_path / "folder").mkdir(exist_ok=True)
        kept = tmp_path / f"{name}.npz"
        task.write_text(
            json.dumps(
                {"statements": [text], "claims": [], "parameters": {}, "first": False}
                | names
                | {"seen": str(kept)}
            )
        )
        subprocess.run([sys.executable, str(Path(slices.__file__)), str(task)], check=True)
        with np.load(kept) as found:
            seen[name] = [found[key] for key in found.files]
    assert seen["as it is"] and slices.same(seen["as it is"], seen["rounding"])
    for name in ("second", "tolerance", "control", "law"):
        assert not slices.same(seen["as it is"], seen[name]), name


def test_numbers_of_every_kind_are_compared_each_on_its_own_scale() -> None:
    """A truth value, a small number beside a large one, an infinity."""
    base = [1e-10, 1e6, np.True_, [1.0, np.inf], 2 + 1j]
    first = list(slices._numbers(base))
    for place, other in ((0, 5e-3), (2, np.False_), (3, [7.0, np.inf]), (3, [1.0, -np.inf]),
                         (4, 2 + 1.1j)):  # fmt: skip
        changed = [*base[:place], other, *base[place + 1 :]]
        assert not slices.same(first, list(slices._numbers(changed))), other
    assert slices.same(first, list(slices._numbers([1e-10, 1e6 + 1e-3, *base[2:]])))
