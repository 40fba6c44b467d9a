"""The bound over a ball of parameters: its parts against simulation and quadrature."""

from __future__ import annotations

import numpy as np
import pytest

from companion.alignment.alignment import SLOPES, cube, log_probability
from traindyn.problems import KGaussianMixture, Sample
from traindyn.problems.base import MATRICES, Matrix
from traindyn.problems.k_gmm import Point
from traindyn.spectra import blocks, tails

OPTIONS = {"k": 3, "dimension": 100, "sample_ratio": 1e5, "radius": 5.0}


@pytest.mark.parametrize("matrix", MATRICES)
def test_matrices_of_one_input_change_no_faster_than_said(matrix: Matrix) -> None:
    """At random points, by differences along the input; a sixth of the constant is too small."""
    rng, step = np.random.default_rng(3), 1e-5
    problem = KGaussianMixture.orthonormal(3, 4, precision=2.0, ridge=0.1)
    factor, slope = tails.MIXTURE[matrix], SLOPES[matrix]
    rates, tops = [], []
    data = problem.sample(400, rng=rng)
    for Y, label in zip(data.inputs, data.labels):
        one = Sample(Y[None], np.array([label]))
        x, h = rng.standard_normal((2, 3))[:, :, None] * Y
        h *= step / np.linalg.norm(h)
        high, low = (
            blocks.full(problem, matrix, Point(x / (Y @ Y) + sign * h), one).dense()
            for sign in (1, -1)
        )
        rates.append(np.linalg.norm(high - low, 2) / (2 * step * (Y @ Y) ** 1.5))
        tops.append(np.linalg.eigvalsh(high)[-1] / (Y @ Y))
    assert slope / 6 < max(rates) <= slope
    assert factor / 4 < max(tops) <= factor


@pytest.mark.parametrize("dimension", [1, 2, 5, 20])
def test_means_of_cubes_stay_below_their_bound(dimension: int) -> None:
    """Simulated means of few inputs, with the probability that Markov's inequality allows."""
    rng = np.random.default_rng(dimension)
    Y = rng.standard_normal((20_000, 2, dimension))
    Y[..., 0] += 1
    means = (np.linalg.norm(Y, axis=-1) ** 3).mean(axis=1)
    assert np.mean(means > np.e * cube(dimension)) <= np.exp(-dimension)
    moment = np.mean(means ** min(dimension, 2)) ** (1 / min(dimension, 2))
    assert moment < cube(dimension) <= 29 * dimension**1.5


def test_the_bound_has_the_form_of_the_lemma() -> None:
    """BGHJ Lemma 8.1: it falls with the samples to exp(-d), a multiple of log d is enough."""
    few, more, many = (
        log_probability(0.5, matrix="hessian", **OPTIONS | {"sample_ratio": ratio})
        for ratio in (10.0, 19_400.0, 1e6)
    )
    assert few == 0.0 > more > many == pytest.approx(-100, abs=1e-9)
    smaller = log_probability(
        0.5, matrix="hessian", **OPTIONS | {"sample_ratio": 19_400.0, "radius": 1}
    )
    assert smaller < more
    for dimension in (100, 10_000):
        enough = log_probability(
            0.5, matrix="hessian", k=3, dimension=dimension, radius=5.0,
            sample_ratio=4500 * np.log(dimension),
        )  # fmt: skip
        assert enough / dimension < -0.99


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 1}, "k must be"),
        ({"dimension": 0}, "dimension must be"),
        ({"sample_ratio": 0.0}, "sample_ratio must be"),
        ({"radius": -1.0}, "radius must be"),
        ({"matrix": "other"}, "matrix must be"),
        ({"t": 0.0}, "t must be"),
    ],
)
def test_refusals(change, message: str) -> None:
    """Names of the arguments."""
    options = {"t": 0.5, "matrix": "hessian", **OPTIONS, **change}
    with pytest.raises(ValueError, match=message):
        log_probability(**options)
