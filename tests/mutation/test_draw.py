"""Random mutations are changes of formulas, of reached lines, and spread over all rooms."""

import ast
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import draw
import numpy as np
import pytest
import slices
from mutate import ROOT, Mutation, Result
from reach import Reach

LIBRARY = ROOT / "lib"


@pytest.fixture(scope="module")
def changes() -> list[draw.Change]:
    """All changes of the library."""
    return list(draw.changes(Reach(ROOT / "lib", ROOT / "book"), LIBRARY))


@pytest.mark.nightly
def test_each_change_is_another_formula(changes: list[draw.Change]) -> None:
    """A change that cannot be parsed, or means the same, would count as noticed or missed."""
    rng = np.random.default_rng(1)
    for index in rng.choice(len(changes), 60, replace=False):
        mutation = changes[index].mutation(LIBRARY)
        assert ast.dump(ast.parse(mutation.new)) != ast.dump(ast.parse(mutation.old))
        assert mutation.new.count("\n") == mutation.old.count("\n")


def test_draws_are_spread_over_rooms_and_kinds(changes: list[draw.Change]) -> None:
    """The largest room must not take all draws, nor operators."""
    rooms = {change.room for change in changes}
    assert {"problems", "laws", "dmft", "spectra", "kernels"} <= rooms
    assert rooms.isdisjoint(draw.OUTSIDE)
    chosen = draw.draw(changes, 3 * len(rooms), rng=np.random.default_rng(2))
    assert set(Counter(change.room for change in chosen).values()) == {3}
    assert {change.kind for change in chosen} == {"operator", "sign", "constant", "exponent"}
    assert len(set(chosen)) == len(chosen)
    again = draw.draw(changes, 3 * len(rooms), rng=np.random.default_rng(2))
    assert again == chosen


def test_refusals_tolerances_and_infinities_are_no_formulas() -> None:
    """No chapter has bad input; what follows a refusal, and its other branch, counts."""
    text = (
        "def f(x):\n"
        "    if x < -LOW or 3 * x > 1:\n"
        "        raise ValueError(f'x must be at least {-LOW}')\n"
        "    elif x > 0:\n"
        "        x = 5 * x\n"
        "    k = _validate.integer('k', 7 * x, least=0, most=x - 1)\n"
        "    x = solve(x + 9, atol=3 * EPS)\n"
        "    return max(-np.inf, -x)\n"
    )
    starts = np.cumsum([0, *(len(line) for line in text.splitlines(keepends=True))])
    found = list(draw._places(ast.parse(text).body[0], text.encode(), starts))
    assert [(kind, text[a:b]) for kind, (a, b), _ in found] == [
        ("operator", "*"),
        ("constant", "5"),
        ("operator", "*"),
        ("constant", "7"),
        ("operator", "+"),
        ("constant", "9"),
        ("sign", "-"),
    ]


def test_reach_follows_names_through_packages(tmp_path) -> None:
    """Through re-exports, aliases and attributes of modules, and no further."""
    package = tmp_path / "lib" / "toy"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from toy.one import outer\n")
    (package / "one.py").write_text(
        "from toy import two\n\ndef outer():\n    return two.inner()\n\ndef idle():\n    return 1\n"
    )
    (package / "two.py").write_text("def inner():\n    return 2\n")
    book = tmp_path / "book"
    book.mkdir()
    cell = "---\nkernelspec:\n  name: python3\n---\n```{code-cell} python\n"
    (book / "a.md").write_text(f"{cell}import toy as t\nt.outer()\n```\n")
    (book / "b.md").write_text(f"{cell}from toy.two import inner\n```\n")
    found = Reach(tmp_path / "lib", book).chapters
    assert found["toy.one", "outer"] == {"a"} and found["toy.two", "inner"] == {"a"}
    assert ("toy.one", "idle") not in found


def test_table_counts_each_outcome_once() -> None:
    """A crash is no catch, and an equivalent change is neither caught nor missed."""
    rows = [
        {"room": "laws", "checks": "caught", "tests": "caught"},
        {"room": "laws", "checks": "crashed", "tests": "caught"},
        {"room": "dmft", "checks": "survived", "tests": "survived"},
        {"room": "dmft", "checks": "idle", "tests": "caught"},
        {"room": "dmft", "checks": "still", "tests": "caught"},
        {"room": "dmft", "checks": "equivalent", "tests": "equivalent"},
    ]
    lines = draw.table(rows).splitlines()
    assert lines[1].split() == ["dmft", "4", "1", "1", "1", "0", "0", "1", "2"]
    assert lines[-1].split() == ["all", "6", "1", "1", "1", "1", "1", "1", "4"]


@pytest.mark.nightly
def test_an_error_stands_in_front_of_the_changed_statement(changes: list[draw.Change]) -> None:
    """Whether a chapter executes a statement is told by an error in its place: it must be one."""
    rng = np.random.default_rng(3)
    for index in rng.choice(len(changes), 60, replace=False):
        change = changes[index]
        stopped = change.stopped(LIBRARY)
        added = stopped.new.splitlines()
        (place,) = [k for k, line in enumerate(added) if "RuntimeError('executed')" in line]
        assert ast.parse(stopped.new)
        assert place <= change.line - 1
        assert added[:place] + added[place + 1 :] == stopped.old.splitlines()


def test_chapters_that_name_a_function_come_first(
    changes: list[draw.Change], tmp_path: Path
) -> None:
    """Others may reach it through parts that do not tell one formula from another."""
    change = replace(changes[0], definition="law", chapters=("a", "b", "c"))
    for name, text in {"a": "other.laws(2)", "b": "law(2)", "c": "law(1)"}.items():
        (tmp_path / f"{name}.md").write_text(text)
    registry = SimpleNamespace(path=tmp_path / "claims.toml", of_chapter=lambda name: [])
    seen: list[str] = []
    bench = SimpleNamespace(
        library=LIBRARY, run=lambda chapter, *_, **__: seen.append(chapter.stem) or {}
    )
    draw.put_to_checks(bench, change, registry, {"a": 1.0, "b": 3.0, "c": 2.0})
    assert seen == ["c", "b", "a"]


def test_a_change_that_moves_no_number_is_told_from_one_that_is_missed(
    changes: list[draw.Change], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No verdict depends on the first; the second is missed once three chapters have seen it."""
    chapters = tuple("abcdefgh")
    change = replace(changes[0], definition="law", chapters=chapters)
    for name in chapters:
        (tmp_path / f"{name}.md").write_text("law(2)")
    registry = SimpleNamespace(
        path=tmp_path / "claims.toml", of_chapter=lambda name: [SimpleNamespace(id=name)]
    )
    ran: list[str] = []

    def run(chapter: Path, claims: list[str], mutation: Mutation, *, first: bool) -> dict:
        ran.append(chapter.stem)
        stopped = "RuntimeError('executed')" in mutation.new
        return {claims[0]: Result(slices.CRASHED if stopped else slices.SURVIVED, "", 0.0)}

    bench = SimpleNamespace(library=LIBRARY, run=run, seen=lambda: [np.array([1.0, 2.0])])
    for seen, outcome, visited in (
        ([1.0, 2.0 + 1e-9], draw.STILL, draw.MOST_STILL),
        ([1.0, 2.1], slices.SURVIVED, draw.MOST),
    ):
        ran.clear()
        monkeypatch.setattr(draw, "as_it_is", lambda *_, seen=seen: [np.array(seen)])
        assert draw.put_to_checks(bench, change, registry, {})[0] == outcome
        assert len(set(ran)) == visited
