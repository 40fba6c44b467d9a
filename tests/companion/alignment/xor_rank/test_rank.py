"""Error rate of counting classes against enumeration, simulation and actual blocks."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from companion.alignment.xor_rank.rank import missed_probability
from traindyn.problems import TwoLayerMixture
from traindyn.problems.two_layer.equilibria import FixedSet
from traindyn.problems.two_layer.spectra import LimitSpectra


@pytest.mark.parametrize(
    ("least", "weights"),
    [([2], None), ([1, 1], None), ([1, 2, 0], [0.2, 0.3, 0.1]), ([1, 1, 1, 1], None)],
)
def test_enumeration(least: list[int], weights: list[float] | None) -> None:
    """A wrong conditional probability or an off-by-one in the counts."""
    samples, shares = 6, np.array(weights or [0.25] * len(least))
    cells = np.append(shares, 1 - shares.sum())
    missed = sum(
        np.prod(cells[list(draw)])
        for draw in product(range(cells.size), repeat=samples)
        if any(draw.count(c) < enough for c, enough in enumerate(least))
    )
    assert missed_probability(samples, least, weights=weights) == pytest.approx(missed, abs=1e-13)


def test_too_many_wanted() -> None:
    """Fewer samples than classes always miss one; nothing wanted is never missed."""
    assert missed_probability(3, [1, 1, 1, 1]) == pytest.approx(1.0)
    assert missed_probability(3, [0, 0]) == pytest.approx(0.0)
    assert missed_probability(3, np.array([], dtype=int)) == 0.0


def test_blocks_without_noise() -> None:
    """The threshold of the docstring misses a class of an actual block as often as stated.

    False-alarm probability 1e-6: 5 standard deviations of a binomial. The control takes the
    chance that a class is not seen at all.
    """
    ridge, samples, repeats = 0.03, 12, 1000
    problem = TwoLayerMixture.xor(5, 12, precision=np.inf, ridge=ridge)
    state = FixedSet(problem, (0, 0, 2, 3, 3)).point([1.0, 2.0, 1.0, 3.0, 1.0])
    small, point = problem.embed(state)
    level = LimitSpectra(ridge, (True, False, True, True)).second_layer("hessian")[0]
    generator, wrong = np.random.default_rng(7), 0
    for _ in range(repeats):
        sample = small.sample(samples, rng=generator)
        weights, features, _ = small.factors("hessian", (5, 5), point, sample)
        values = np.linalg.eigvalsh((features.T * weights) @ features / samples)
        wrong += int(np.sum(values > level / 2) != 3)
    expected = missed_probability(samples, [samples // 8 + 1] * 3)
    unseen = missed_probability(samples, [1] * 3)
    spread = 5 * np.sqrt(expected * (1 - expected) * repeats)
    assert abs(wrong - repeats * expected) < spread
    assert abs(wrong - repeats * unseen) > spread


@pytest.mark.parametrize(
    ("samples", "least", "weights", "name"),
    [
        (0, [1], None, "samples"),
        (5, [-1], None, "least"),
        (5, [1.5], None, "least"),
        (5, [[1]], None, "least"),
        (5, [1, 1], [0.5], "weights"),
        (5, [1], [0.0], "weights"),
        (5, [1, 1], [0.6, 0.6], "weights"),
    ],
)
def test_refused(samples: int, least: list, weights: list | None, name: str) -> None:
    """Arguments out of range are named."""
    with pytest.raises(ValueError, match=name):
        missed_probability(samples, least, weights=weights)
